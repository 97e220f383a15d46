//! Rule 6: what a request without a good answer means.

use std::time::Duration;

use super::attempts::Attempt;
use super::{Election, EndReason, Failure, Jitter, Phase};
use crate::clock::LocalInstant;
use crate::store::StoreErrorKind;

impl Election {
    pub(super) fn on_write_failure(&mut self, now: LocalInstant, attempt: Attempt, failure: Failure, jitter: Jitter) {
        // Even a write that was "refused" is remembered: a proxy may have lied (rule 6).
        self.attempts.remember(attempt);
        self.asked_until = now + self.asked_pause(&failure);
        let pause = self.back_off(jitter, Some(&failure));
        match failure.kind {
            StoreErrorKind::Conflict | StoreErrorKind::Ambiguous | StoreErrorKind::Unreadable => {
                // The read comes at once; another write, if it comes to that, after the pause.
                self.attempts.must_read = true;
                self.write_after = self.write_after.max(now + pause);
            }
            StoreErrorKind::Fatal if matches!(self.phase, Phase::Following) => {
                self.hold_off = now + self.slow_pause(jitter);
            }
            StoreErrorKind::Rejected | StoreErrorKind::Fatal => self.hold_off = now + pause,
        }
    }

    pub(super) fn on_read_failure(&mut self, now: LocalInstant, failure: Failure, jitter: Jitter) {
        self.asked_until = self.asked_until.max(now + self.asked_pause(&failure));
        match self.phase {
            Phase::Following => self.on_candidate_read_failure(now, failure, jitter),
            Phase::Holding(_) | Phase::Stopping { .. } | Phase::Releasing { .. }
                if failure.kind == StoreErrorKind::Unreadable =>
            {
                self.remember_own_lease(now);
                self.not_ours_any_more(now, EndReason::Unreadable);
            }
            _ => self.hold_off = now + self.back_off(jitter, Some(&failure)),
        }
    }

    fn on_candidate_read_failure(&mut self, now: LocalInstant, failure: Failure, jitter: Jitter) {
        if failure.kind == StoreErrorKind::Unreadable {
            // Whatever is there now, it is not to be written over: no write before a good read.
            self.attempts.clear();
            self.attempts.must_read = true;
        }
        let back_off = self.back_off(jitter, Some(&failure));
        let slowly = matches!(failure.kind, StoreErrorKind::Fatal | StoreErrorKind::Unreadable);
        match (slowly, self.attempts.must_read) {
            (true, _) => self.hold_off = now + self.slow_pause(jitter).max(back_off),
            (false, true) => self.hold_off = now + back_off,
            // A read that failed is no reason to miss the moment at which the lease expires.
            (false, false) => self.next_read = now + self.poll_pause(jitter).max(back_off),
        }
    }

    /// The pause after a failure: 100 ms doubling to the retry period, full jitter, and not less than
    /// the store asked for (rule 6). A store that asks for more than a lease is asked again after one.
    pub(super) fn back_off(&mut self, jitter: Jitter, failure: Option<&Failure>) -> Duration {
        const FIRST: Duration = Duration::from_millis(100);
        let longest = FIRST.saturating_mul(1 << self.failures.min(31)).min(self.rules.retry_period);
        if longest < self.rules.retry_period {
            self.failures += 1;
        }
        jitter.of(longest).max(failure.map_or(Duration::ZERO, |failure| self.asked_pause(failure)))
    }

    fn asked_pause(&self, failure: &Failure) -> Duration {
        failure.retry_after.unwrap_or_default().min(self.rules.lease_duration)
    }
}
