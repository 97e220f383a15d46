//! The pauses after failures (rule 6), and the limit of requests in flight (rule S9).

use std::time::Duration;

use leaderelection_protocol::policy::back_off::SLOW;

use super::LockId;
use super::member::Member;
use crate::clock::LocalInstant;
use crate::election::{Failure, Jitter};
use crate::store::StoreErrorKind;

impl Member {
    /// The number of locks that have electors.
    pub(super) fn number_of_locks(&self) -> usize {
        self.locks.len() - self.vacant.len()
    }

    /// Computes how many requests may be in flight from now on. Those of the local session do not count.
    pub(super) fn update_in_flight_limit(&mut self, now: LocalInstant) {
        let most = self.rules.max_in_flight(self.number_of_locks());
        self.in_flight_limit = self.concurrency.limit(now, most, self.rules.election.retry_period);
    }

    /// Returns `true` if another request may be sent.
    pub(super) fn may_send_more(&self) -> bool {
        self.table.requests() + self.housekeeping_in_flight < self.in_flight_limit
    }

    /// Follows a `Retry-After`, for at most one lease. After a rejection, sends fewer requests at a time.
    pub(super) fn apply_retry_after(&mut self, now: LocalInstant, failure: Option<Failure>) {
        let asked = failure.and_then(|failure| failure.retry_after).unwrap_or_default();
        self.asked_until = self.asked_until.max(now + asked.min(self.rules.election.lease_duration));
        if failure.is_some_and(|failure| failure.kind == StoreErrorKind::Rejected) {
            let most = self.rules.max_in_flight(self.number_of_locks());
            self.concurrency.refused(now, most, self.rules.election.retry_period);
            self.update_in_flight_limit(now);
        }
    }

    /// The pause after a failure of a request about one lock.
    pub(super) fn back_off(&mut self, id: LockId, kind: StoreErrorKind, jitter: Jitter) -> Duration {
        let Self { rules, locks, .. } = self;
        let pace = rules.election.pace();
        let poll = pace.poll_pause(jitter);
        // Each lock has its own back-off (rule 6), so that a lock whose requests always fail does not slow down others.
        let pause = locks.get_mut(id.0 as usize).map_or(poll, |lock| lock.failures.next(pace.retry_period, jitter));
        match kind {
            StoreErrorKind::Fatal | StoreErrorKind::Unreadable => poll * SLOW,
            _ => pause,
        }
    }

    pub(super) fn poll_pause(&self, jitter: Jitter) -> Duration {
        self.rules.election.pace().poll_pause(jitter)
    }
}
