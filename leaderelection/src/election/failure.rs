//! Rule 6: the meaning of a request without a positive answer.

use std::sync::Arc;

use super::attempts::{Attempt, Unanswered};
use super::effect::Fact;
use super::input::{Failure, Jitter};
use super::machine::Election;
use super::phase::Phase;
use crate::clock::LocalInstant;
use crate::lock::record::LeaderElectionRecord;
use crate::store::StoreErrorKind;

impl Election {
    pub(super) fn on_write_failure(
        &mut self,
        now: LocalInstant,
        write: (Attempt, Arc<LeaderElectionRecord>),
        failure: Failure,
        jitter: Jitter,
    ) {
        let ((attempt, record), doubted) = (write, failure.kind == StoreErrorKind::Ambiguous);
        if doubted {
            self.tell(Fact::Doubted);
        }
        // Even a "refused" write is remembered, because a proxy may have lied.
        self.attempts.remember(now, Unanswered { record, attempt, doubted });
        match failure.kind {
            StoreErrorKind::Conflict | StoreErrorKind::Ambiguous | StoreErrorKind::Unreadable => {
                self.attempts.must_read = true;
                self.pacing.in_doubt(&self.rules, now, jitter);
            }
            StoreErrorKind::Fatal if matches!(self.phase, Phase::Following) => {
                self.pacing.failed_for_good(&self.rules, now, jitter);
            }
            StoreErrorKind::Rejected | StoreErrorKind::Fatal => self.pacing.failed(&self.rules, now, jitter),
        }
    }

    pub(super) fn on_read_failure(&mut self, now: LocalInstant, failure: Failure, jitter: Jitter) {
        match (&self.phase, failure.kind) {
            (Phase::Following, _) => self.on_candidate_read_failure(now, failure, jitter),
            (_, StoreErrorKind::Unreadable) => {
                self.pacing.failed(&self.rules, now, jitter);
                self.on_unreadable_while_holding(now);
            }
            _ => self.pacing.failed(&self.rules, now, jitter),
        }
    }

    fn on_candidate_read_failure(&mut self, now: LocalInstant, failure: Failure, jitter: Jitter) {
        self.settle_later(now);
        if failure.kind == StoreErrorKind::Unreadable {
            // The object must not be overwritten, whatever it holds now: no write before a successful read.
            self.give_up_attempts();
            self.attempts.must_read = true;
        }
        match failure.kind {
            StoreErrorKind::Fatal | StoreErrorKind::Unreadable => {
                self.pacing.failed_for_good(&self.rules, now, jitter);
            }
            _ if self.attempts.must_read => self.pacing.failed(&self.rules, now, jitter),
            _ => self.pacing.look_failed(&self.rules, now, jitter),
        }
    }

    /// Forgets the unanswered writes. None has landed, and none can land any more.
    pub(super) fn give_up_attempts(&mut self) {
        for _ in self.attempts.clear() {
            self.tell(Fact::Resolved { landed: false });
        }
    }
}
