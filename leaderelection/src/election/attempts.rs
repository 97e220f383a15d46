//! The writes of this candidate that got no positive answer (rule 6).

use std::time::Duration;

use super::effect::Purpose;
use super::visitor::Visitor;
use crate::clock::LocalInstant;
use crate::record::LeaderElectionRecord;

/// One write that was sent.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Attempt {
    pub(super) write_id: String,
    pub(super) token: u64,
    pub(super) sent_at: LocalInstant,
    pub(super) purpose: Purpose,
    /// `true` if the store left the outcome open, and did not claim that the write was refused.
    pub(super) doubted: bool,
}

/// All unanswered writes. They replace the same version, so at most one of them ever lands.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Attempts {
    unanswered: Vec<Attempt>,
    /// `true` if the object has to be read before anything is written.
    pub(super) must_read: bool,
}

impl Attempts {
    /// Remembers a write. A write that is older than `lease` demands a read. If the read shows that the write has not
    /// landed, [the write is forgotten](Self::forget_old).
    pub(super) fn remember(&mut self, now: LocalInstant, lease: Duration, attempt: Attempt) {
        self.unanswered.push(attempt);
        self.must_read |= self.unanswered.iter().any(|attempt| now >= attempt.sent_at + lease);
    }

    /// Forgets the writes that are older than `lease`, after a read showed that none has landed so far. If such a write
    /// lands after all, its window is over, and the write counts as one of another candidate.
    pub(super) fn forget_old(&mut self, now: LocalInstant, lease: Duration) {
        self.unanswered.retain(|attempt| now < attempt.sent_at + lease);
    }

    /// Returns the attempt of this candidate that wrote `record`, if there is one. Only the write id decides, because a
    /// process that shares the identity may have written the same name and token.
    pub(super) fn written_by_us(&self, record: &LeaderElectionRecord) -> Option<Attempt> {
        let write_id = record.write_id.as_deref()?;
        self.unanswered.iter().find(|attempt| attempt.write_id == write_id).cloned()
    }

    pub(super) fn last(&self) -> Option<&Attempt> {
        self.unanswered.last()
    }

    /// Forgets all attempts: one of them has landed, none can land any more, or their outcome does not matter. Returns
    /// the attempts that the store had left in doubt.
    pub(super) fn clear(&mut self) -> impl Iterator<Item = Attempt> + use<> {
        self.must_read = false;
        std::mem::take(&mut self.unanswered).into_iter().filter(|attempt| attempt.doubted)
    }

    pub(super) fn visit(&mut self, visitor: &mut impl Visitor) {
        self.unanswered.retain(|attempt| visitor.may_land(&attempt.write_id));
        for attempt in &mut self.unanswered {
            visitor.write_id(&mut attempt.write_id);
            visitor.moment(&mut attempt.sent_at);
        }
    }
}
