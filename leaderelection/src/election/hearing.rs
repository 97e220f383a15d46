//! Rules 15 and 16: the messages of a leader, and the reads that confirm or contradict them.
//!
//! A message dates a write that the store shows, and does nothing else for a takeover: every write of a candidate
//! replaces a version that a read has shown. The id of a write is drawn when the write is sent, and nobody can name it
//! before that.

use super::visitor::Visitor;
use crate::clock::LocalInstant;
use crate::lock::record::LeaderElectionRecord;

/// The messages of the leader of the term that the last read showed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Hearing {
    /// The newest write that a message has reported.
    pub(super) newest: Option<HeardWrite>,
    /// The moment until which messages postpone reads; `None` unless the last read confirmed the newest of them.
    pub(super) spares_until: Option<LocalInstant>,
    /// `true` if the read in flight was sent after a message that no read had answered. Later messages do not change
    /// that.
    pub(super) is_asked: bool,
    /// `true` if nothing counts for the rest of the term: the store contradicted the peer, or the peer said that the term
    /// is over.
    pub(super) is_closed: bool,
}

/// A write that a message has reported.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct HeardWrite {
    pub(super) write_id: String,
    pub(super) number: u64,
    pub(super) at: LocalInstant,
    pub(super) proof: Proof,
}

/// The state of the read that confirms or contradicts a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Proof {
    /// No read was sent after this message.
    Unasked,
    /// A read was sent after this message; its answer has not arrived.
    Asked,
    /// A read that was sent after this message was answered, or a read has shown the write.
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

    /// The moment at which a message reported the write of `record`, if one did.
    pub(super) fn date_of(&self, record: &LeaderElectionRecord) -> Option<LocalInstant> {
        self.newest.as_ref().filter(|newest| newest.wrote(record)).map(|newest| newest.at)
    }

    /// The moment of the newest message, if no read has answered it so far.
    pub(super) fn unanswered_since(&self) -> Option<LocalInstant> {
        self.newest.as_ref().filter(|newest| newest.proof != Proof::Answered).map(|newest| newest.at)
    }

    pub(super) fn visit(&mut self, visitor: &mut impl Visitor) {
        if let Some(newest) = &mut self.newest {
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
