//! Failure detector by heartbeats, as hints only: the messages of a leader, and the reads that confirm or contradict them
//! (rules 15 and 16). Members of sessions send each other messages in the same way (rule S10).
//!
//! A message has one effect on a takeover: it *dates* a write once a read shows that write. The id of a write is drawn
//! when the write is sent, so nobody can name it earlier. A message alone causes no takeover: every write replaces a
//! version that a read has shown.

use std::mem::replace;

use super::Visitor;
use crate::LocalInstant;
use crate::record::Record;

/// The messages of the leader of the term that the last read showed.
///
/// | state | `newest` | `closed` | left by |
/// |---|---|---|---|
/// | silent | none | – | a message about a write: reported, or done if a read has shown it |
/// | reported | `Confirmation::None` | – | a read is sent: pending; a read shows the write: confirmed |
/// | pending | `Confirmation::Pending` | – | its answer shows the write: confirmed; another write: done; no change: distrusted |
/// | confirmed | `Done`, and polls are suppressed | – | a newer message: reported; any read: done |
/// | done | `Done` | – | a newer message: reported |
/// | distrusted | any | `Distrusted` | a read that shows a new write: open again |
/// | ended | any | `TermEnded` | nothing: the next term has a feed of its own |
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct PeerFeed {
    /// The newest write that a message has reported.
    pub newest: Option<ReportedWrite>,
    /// The moment until which messages postpone reads; `None` unless the last read confirmed the newest of them.
    pub suppress_polls_until: Option<LocalInstant>,
    /// `true` if the read in flight was sent after a message that no earlier read had answered. Later messages do not change this.
    is_asked: bool,
    /// Why the peer's messages are ignored, if they are.
    closed: Option<FeedState>,
}

/// Why a peer's messages are ignored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum FeedState {
    /// The store contradicted the peer. But a late message about an older write looks like a contradiction, too. So the
    /// distrust ends with the next write.
    Distrusted,
    /// The peer reported the end of the term. This lasts for the rest of the term.
    TermEnded,
}

/// Why a message of a peer did not count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum IgnoredReason {
    /// The candidate does not follow a leader.
    NoLeader,
    /// The message names a different term from the one in the last read.
    OtherTerm,
    /// The write is no newer than one that a read has shown or a message has reported.
    NotNewer,
    /// The store has contradicted the peer and shown no new write since, or the peer has reported the end of the term.
    Closed,
}

/// A write that a message has reported.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ReportedWrite {
    /// The id of the write.
    pub write_id: String,
    /// Its number, which grows with each write of the term.
    pub number: u64,
    /// The moment of the message.
    pub at: LocalInstant,
    confirmation: Confirmation,
}

/// The state of the read that confirms or contradicts a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Confirmation {
    /// No read was sent after this message.
    None,
    /// A read was sent after this message; its answer has not arrived.
    Pending,
    /// A read that was sent after this message was answered, or a read has shown the write.
    Done,
}

/// The result of comparing a read with the messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compared {
    /// The read shows the newest write that a message has reported, for the first time.
    Confirmed,
    /// The read was sent after a message, and shows the write that was known before.
    Contradicted,
    /// The read says nothing about the messages.
    Neither,
}

impl PeerFeed {
    /// Takes a message about a write. Only a newer write counts, because a leader that cannot write any more repeats its last
    /// message. `was_shown` is `true` if a read has shown this write.
    pub fn on_write(&mut self, write: ReportedWrite, was_shown: bool) -> Result<(), IgnoredReason> {
        if self.is_closed() {
            return Err(IgnoredReason::Closed);
        }
        if was_shown {
            // The number is kept, so that a later message about an older write is recognized. This message must not replace one that a read
            // may still contradict.
            self.newest.get_or_insert(ReportedWrite { confirmation: Confirmation::Done, ..write });
            return Err(IgnoredReason::NotNewer);
        }
        if self.newest.as_ref().is_some_and(|last| write.number <= last.number || write.write_id == last.write_id) {
            return Err(IgnoredReason::NotNewer);
        }
        self.newest = Some(write);
        Ok(())
    }

    /// Takes a message about the write that the last read has shown. Returns `true` if the store and the session agree (rule S10): the
    /// message is the first one about this write, and no other message waits for a read.
    pub fn agrees(&mut self, write: ReportedWrite) -> bool {
        let is_next = |last: &ReportedWrite| {
            last.confirmation == Confirmation::Done && write.number > last.number && write.write_id != last.write_id
        };
        let agrees = !self.is_closed() && self.newest.as_ref().is_none_or(is_next);
        if agrees {
            self.newest = Some(ReportedWrite { confirmation: Confirmation::Done, ..write });
        }
        agrees
    }

    /// Takes a message about the end of the term. Returns `false` if the peer's messages are ignored.
    pub fn end(&mut self) -> bool {
        let counts = !self.is_closed();
        self.closed.get_or_insert(FeedState::TermEnded);
        counts
    }

    /// Returns `true` if the peer's messages are ignored.
    pub fn is_closed(&self) -> bool {
        self.closed.is_some()
    }

    /// Compares the messages with the record that a read has `found`. `is_same_write` is `true` if the read before showed the same write.
    pub fn compare(&mut self, found: Option<&impl Record<WriteId = String>>, is_same_write: bool) -> Compared {
        self.suppress_polls_until = None;
        let was_asked = replace(&mut self.is_asked, false);
        self.closed.take_if(|closed| *closed == FeedState::Distrusted && found.is_some() && !is_same_write);
        let Some(newest) = &mut self.newest else { return Compared::Neither };
        if found.is_some_and(|found| newest.wrote(found)) {
            let is_confirmed = replace(&mut newest.confirmation, Confirmation::Done) != Confirmation::Done;
            return if is_confirmed && !self.is_closed() { Compared::Confirmed } else { Compared::Neither };
        }
        if was_asked && is_same_write {
            newest.confirmation = Confirmation::Done;
            self.closed.get_or_insert(FeedState::Distrusted);
            return Compared::Contradicted;
        }
        if newest.confirmation == Confirmation::Pending {
            newest.confirmation = Confirmation::Done;
        }
        Compared::Neither
    }

    /// Remembers that a read is sent, which may contradict the messages that came before.
    pub fn asked(&mut self) {
        self.is_asked = self.unanswered_since().is_some();
        if let Some(newest @ ReportedWrite { confirmation: Confirmation::None, .. }) = &mut self.newest {
            newest.confirmation = Confirmation::Pending;
        }
    }

    /// The moment of the newest message, unless a read has answered it.
    pub fn unanswered_since(&self) -> Option<LocalInstant> {
        self.newest.as_ref().filter(|newest| newest.confirmation != Confirmation::Done).map(|newest| newest.at)
    }

    /// Shows every moment and number to a model checker.
    pub fn visit(&mut self, visitor: &mut impl Visitor) {
        if let Some(newest) = &mut self.newest {
            visitor.number(&mut newest.number);
            visitor.moment(&mut newest.at);
        }
        if let Some(suppress_polls_until) = &mut self.suppress_polls_until {
            visitor.timer(suppress_polls_until);
        }
    }
}

impl ReportedWrite {
    /// A write that a message has reported now.
    pub fn new(write_id: String, number: u64, at: LocalInstant) -> Self {
        Self { write_id, number, at, confirmation: Confirmation::None }
    }

    /// Returns `true` if the record is this write.
    pub fn wrote(&self, record: &impl Record<WriteId = String>) -> bool {
        record.write_id() == Some(&self.write_id)
    }
}
