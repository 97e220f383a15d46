//! Polling schedule with back-off and `Retry-After`: when to send the next request (rules 6, 10 and 20).

use std::time::Duration;

use super::back_off::{BackOff, SLOW};
use super::{Jitter, Pace, Visitor};
use crate::LocalInstant;

/// The timers of an election's requests: pauses after failures, the store's `Retry-After`, and polls.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Pacing {
    failures: BackOff,
    /// The moment before which nothing is sent, because a request has failed.
    pause_until: LocalInstant,
    /// The moment before which the store asked clients to send nothing. This moment outlives the term.
    asked_until: LocalInstant,
    /// `true` if a leader has sent a request before `asked_until`, and no request has succeeded since.
    has_insisted: bool,
    /// The moment before which nothing is written: after a failed write, or while standing back.
    write_after: LocalInstant,
    /// The moment at which a candidate reads next.
    poll_at: LocalInstant,
}

impl Pacing {
    /// Begins a candidacy that reads at once, and writes nothing for `stand_back`.
    pub fn begin(&mut self, now: LocalInstant, stand_back: Duration) {
        self.restart(now);
        self.poll_at = now;
        self.write_after = now + stand_back;
    }

    /// Clears the delays after failures, because a candidacy or a release begins.
    pub fn restart(&mut self, now: LocalInstant) {
        self.failures = BackOff::default();
        self.pause_until = now;
        self.write_after = now;
    }

    /// Forgets earlier failures, because a write was committed or others have changed the object.
    pub fn made_progress(&mut self) {
        self.failures = BackOff::default();
    }

    /// Ends the pause after a failed write, because a read showed that the write was committed. Its window may be about to close.
    pub fn write_at_once(&mut self, now: LocalInstant) {
        self.write_after = now;
    }

    /// Schedules the next read of a candidate, after the pause between polls (rules 10 and 20). `is_renewed` is `true` if
    /// this read showed that the leader renews its lease.
    pub fn polled(&mut self, pace: &Pace, now: LocalInstant, is_renewed: bool, jitter: Jitter) {
        let interval = if is_renewed { pace.follower_interval } else { pace.retry_period };
        self.poll_at = now + interval + pace.poll_jitter(jitter);
    }

    /// Pauses before a write is sent again, because a read showed that it was not committed.
    pub fn write_again(&mut self, pace: &Pace, now: LocalInstant, jitter: Jitter) {
        self.write_after = now + self.failures.next(pace.retry_period, jitter);
    }

    /// Pauses before the next write, because the outcome of a write is unknown. The read that shows the outcome does not wait.
    pub fn in_doubt(&mut self, pace: &Pace, now: LocalInstant, jitter: Jitter) {
        self.write_after = self.write_after.max(now + self.failures.next(pace.retry_period, jitter));
    }

    /// Pauses before any request, because a request has failed.
    pub fn failed(&mut self, pace: &Pace, now: LocalInstant, jitter: Jitter) {
        self.pause_until = now + self.failures.next(pace.retry_period, jitter);
    }

    /// Schedules a candidate's next request after a read whose failure is probably permanent.
    pub fn poll_failed_for_good(&mut self, pace: &Pace, now: LocalInstant, jitter: Jitter) {
        self.pause_until = now + self.long_pause(pace, jitter);
    }

    /// Schedules a candidate's next write after a write whose failure is probably permanent. The candidate polls as before, because
    /// it may be allowed to read, and must know who leads.
    pub fn write_failed_for_good(&mut self, pace: &Pace, now: LocalInstant, jitter: Jitter) {
        self.write_after = now + self.long_pause(pace, jitter);
    }

    fn long_pause(&mut self, pace: &Pace, jitter: Jitter) -> Duration {
        self.failures.next(pace.retry_period, jitter).max(pace.poll_pause(jitter) * SLOW)
    }

    /// Schedules the next read after a candidate's read has failed. The candidate still acts when the lease expires.
    pub fn poll_failed(&mut self, pace: &Pace, now: LocalInstant, jitter: Jitter) {
        let back_off = self.failures.next(pace.retry_period, jitter);
        self.poll_at = now + back_off.max(pace.poll_pause(jitter));
    }

    /// Postpones the next read until this moment.
    pub fn put_off(&mut self, until: LocalInstant) {
        self.poll_at = self.poll_at.max(until);
    }

    /// Schedules the next read at this moment, unless it is due earlier.
    pub fn poll_by(&mut self, at: LocalInstant) {
        self.poll_at = self.poll_at.min(at);
    }

    /// The next moment at which the pauses allow a request.
    pub fn soonest(&self) -> LocalInstant {
        self.pause_until
    }

    /// The next moment at which the pauses allow a write that is due `at`.
    pub fn write(&self, at: LocalInstant) -> LocalInstant {
        at.max(self.write_after).max(self.soonest())
    }

    /// The next moment at which a candidate reads.
    pub fn next_poll(&self) -> LocalInstant {
        self.poll_at.max(self.soonest())
    }

    /// The moment before which nothing is sent, because the store asked for that. A leader waits only until its
    /// `last_chance`, unless it has already sent a request during this wait, and none has succeeded since.
    pub fn silent_until(&self, last_chance: Option<LocalInstant>) -> LocalInstant {
        let last_chance = last_chance.filter(|_| !self.has_insisted);
        last_chance.map_or(self.asked_until, |at| self.asked_until.min(at))
    }

    /// Records that a request is sent.
    pub fn sent(&mut self, now: LocalInstant) {
        self.has_insisted |= now < self.asked_until;
    }

    /// Records an answer without an error.
    pub fn answered(&mut self) {
        self.has_insisted = false;
    }

    /// Follows a `Retry-After` of the store, for at most one lease.
    pub fn apply_retry_after(&mut self, pace: &Pace, now: LocalInstant, retry_after: Option<Duration>) {
        let asked = retry_after.unwrap_or_default().min(pace.lease_duration);
        self.asked_until = self.asked_until.max(now + asked);
    }

    /// Shows every moment to a model checker.
    pub fn visit(&mut self, visitor: &mut impl Visitor) {
        visitor.timer(&mut self.pause_until);
        visitor.timer(&mut self.asked_until);
        visitor.timer(&mut self.write_after);
        visitor.timer(&mut self.poll_at);
    }
}
