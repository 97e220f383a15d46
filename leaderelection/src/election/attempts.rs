//! The writes of ours that got no good answer (rule 6).

use std::collections::VecDeque;

use super::Visitor;
use crate::clock::LocalInstant;
use crate::record::LeaderElectionRecord;

/// How many attempts on one version are remembered. Forgetting the oldest is safe: had it landed, it
/// would count as somebody else's write. But it might cost a term, so a read has to show first that none
/// of them has landed so far.
const MOST: usize = 16;

/// How many are remembered that were given up. A leader, whoever gives a lease back, and a candidate send as
/// many as [`MOST`] each before they read again.
const MOST_GIVEN_UP: usize = 4 * MOST;

/// One write that was sent.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Attempt {
    pub(super) write_id: String,
    pub(super) token: u64,
    pub(super) sent_at: LocalInstant,
    pub(super) purpose: Purpose,
}

/// What a write is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Purpose {
    Acquire,
    Renew,
    Release,
}

/// All unanswered writes. They replace the same version, so at most one of them ever lands.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Attempts {
    unanswered: Vec<Attempt>,
    /// The ids of those that were given up last. One that lands all the same is ours, and means nothing.
    given_up: VecDeque<String>,
    /// Nothing may be written before the object was read again.
    pub(super) must_read: bool,
}

impl Attempts {
    pub(super) fn remember(&mut self, attempt: Attempt) {
        if self.unanswered.len() == MOST {
            let oldest = self.unanswered.remove(0);
            self.give_up(oldest);
        }
        self.unanswered.push(attempt);
        self.must_read |= self.unanswered.len() == MOST;
    }

    /// The attempt that wrote `record`, if one of ours did. Nothing but the write id tells: our name and
    /// token may have been written by a process that shares our identity.
    pub(super) fn written_by_us(&self, record: &LeaderElectionRecord) -> Option<Attempt> {
        let write_id = record.write_id.as_deref()?;
        self.unanswered.iter().find(|attempt| attempt.write_id == write_id).cloned()
    }

    /// Whether this is an attempt that was given up.
    pub(super) fn gave_up(&self, write_id: &str) -> bool {
        self.given_up.iter().any(|given_up| given_up == write_id)
    }

    pub(super) fn last(&self) -> Option<&Attempt> {
        self.unanswered.last()
    }

    pub(super) fn give_up(&mut self, attempt: Attempt) {
        if self.given_up.len() == MOST_GIVEN_UP {
            self.given_up.pop_front();
        }
        self.given_up.push_back(attempt.write_id);
    }

    pub(super) fn clear(&mut self) {
        for attempt in std::mem::take(&mut self.unanswered) {
            self.give_up(attempt);
        }
        self.must_read = false;
    }

    pub(super) fn visit(&mut self, visitor: &mut impl Visitor) {
        self.unanswered.retain(|attempt| visitor.may_land(&attempt.write_id));
        for attempt in &mut self.unanswered {
            visitor.write_id(&mut attempt.write_id);
            visitor.moment(&mut attempt.sent_at);
        }
        self.given_up.retain(|write_id| visitor.may_land(write_id));
        for write_id in &mut self.given_up {
            visitor.write_id(write_id);
        }
    }
}
