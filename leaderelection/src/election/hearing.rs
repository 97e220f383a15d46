//! Rules 15 and 16: the words of a leader, and the store's answers about them.
//!
//! What was heard dates what the store shows, and does nothing else for a takeover: every write of a candidate replaces a
//! version that a read has shown. The id of a write is drawn when the write is sent, and nobody can name it before that.

use super::visitor::Visitor;
use crate::clock::LocalInstant;
use crate::record::LeaderElectionRecord;

/// The words of the leader of the term that the store showed last.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Hearing {
    /// The newest write that was heard of.
    pub(super) newest: Option<HeardWrite>,
    /// The moment until which the leader's words spare reads; `None` unless the last read confirmed the newest of them.
    pub(super) spares_until: Option<LocalInstant>,
    /// `true` if the read in flight was sent after a word that no read had answered. Words that come later cannot take
    /// that back.
    pub(super) is_asked: bool,
    /// `true` if nothing counts for the rest of the term: the store contradicted the peer, or the peer said that the term
    /// is over.
    pub(super) is_closed: bool,
}

/// A write that was heard of.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct HeardWrite {
    pub(super) write_id: String,
    pub(super) number: u64,
    pub(super) at: LocalInstant,
    pub(super) proof: Proof,
}

/// The store's part in what was heard.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Proof {
    /// No read was sent since.
    Unasked,
    /// A read was sent since, and no answer has come.
    Asked,
    /// A read that was sent since was answered, or a read has shown the write.
    Answered,
}

impl Hearing {
    /// Remembers that a read is sent.
    pub(super) fn asked(&mut self) {
        self.is_asked = self.unanswered_since().is_some();
        if let Some(newest) = &mut self.newest
            && newest.proof == Proof::Unasked
        {
            newest.proof = Proof::Asked;
        }
    }

    /// The moment at which the write of `record` was heard of, if it was.
    pub(super) fn date_of(&self, record: &LeaderElectionRecord) -> Option<LocalInstant> {
        self.newest.as_ref().filter(|newest| newest.wrote(record)).map(|newest| newest.at)
    }

    /// The moment of the newest word, if no read has answered it so far.
    pub(super) fn unanswered_since(&self) -> Option<LocalInstant> {
        self.newest.as_ref().filter(|newest| newest.proof != Proof::Answered).map(|newest| newest.at)
    }

    pub(super) fn visit(&mut self, visitor: &mut impl Visitor) {
        if let Some(newest) = &mut self.newest {
            visitor.write_id(&mut newest.write_id);
            visitor.number(&mut newest.number);
            visitor.moment(&mut newest.at);
        }
        if let Some(spares_until) = &mut self.spares_until {
            visitor.timer(spares_until);
        }
    }
}

impl HeardWrite {
    pub(super) fn wrote(&self, record: &LeaderElectionRecord) -> bool {
        record.write_id.as_ref() == Some(&self.write_id)
    }
}
