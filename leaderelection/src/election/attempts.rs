//! The writes of this candidate that got no positive answer (rule 6).

use std::sync::Arc;

use leaderelection_protocol::record::is_same_write;

use super::effect::Purpose;
use super::limits::Limits;
use super::visitor::Visitor;
use crate::clock::LocalInstant;
use crate::lock::record::LeaderElectionRecord;

/// One write that was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Attempt {
    pub(super) token: u64,
    pub(super) sent_at: LocalInstant,
    pub(super) purpose: Purpose,
    /// The times with which the write was sent.
    pub(super) limits: Limits,
}

impl Attempt {
    pub(super) fn lease_until(&self) -> LocalInstant {
        self.sent_at + self.limits.lease
    }
}

/// A write that got no positive answer.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Unanswered {
    pub(super) record: Arc<LeaderElectionRecord>,
    pub(super) attempt: Attempt,
    /// `true` if the store left the outcome open, and did not claim that the write was refused.
    pub(super) doubted: bool,
}

/// All unanswered writes. They replace the same version, so at most one of them ever lands.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Attempts {
    unanswered: Vec<Unanswered>,
    /// `true` if the object has to be read before anything is written.
    pub(super) must_read: bool,
}

impl Attempts {
    /// Remembers a write. A write that is older than its lease demands a read. If the read shows that the write has not
    /// landed, [the write is forgotten](Self::forget_old).
    pub(super) fn remember(&mut self, now: LocalInstant, write: Unanswered) {
        self.unanswered.push(write);
        self.must_read |= self.unanswered.iter().any(|write| now >= write.attempt.lease_until());
    }

    /// Forgets the writes that are older than their leases, after a read showed that none has landed so far. If such a
    /// write lands after all, its window is over, and the write counts as one of another candidate.
    pub(super) fn forget_old(&mut self, now: LocalInstant) {
        self.unanswered.retain(|write| now < write.attempt.lease_until());
    }

    /// Returns the attempt of this candidate that wrote `record`, if there is one. The write id tells, because a process that
    /// shares the identity may have written the same name and token. What decides must be the same, too: somebody who has
    /// changed the record since, such as an operator who has emptied it, may have kept the id.
    pub(super) fn written_by_us(&self, record: &LeaderElectionRecord) -> Option<Attempt> {
        self.unanswered.iter().find(|write| is_same_write(record, &*write.record)).map(|write| write.attempt)
    }

    pub(super) fn last(&self) -> Option<&Unanswered> {
        self.unanswered.last()
    }

    /// Forgets all attempts: one of them has landed, none can land any more, or their outcome does not matter. Returns
    /// the attempts that the store had left in doubt.
    pub(super) fn clear(&mut self) -> impl Iterator<Item = Unanswered> + use<> {
        self.must_read = false;
        std::mem::take(&mut self.unanswered).into_iter().filter(|write| write.doubted)
    }

    pub(super) fn visit(&mut self, visitor: &mut impl Visitor) {
        let may_land = |write: &Unanswered| write.record.write_id.as_deref().is_some_and(|id| visitor.may_land(id));
        self.unanswered.retain(may_land);
        for write in &mut self.unanswered {
            visitor.moment(&mut write.attempt.sent_at);
        }
    }
}
