//! Rules 6 and 10: when the next request goes out.

use std::time::Duration;

use super::input::{Failure, Jitter};
use super::rules::Rules;
use super::visitor::Visitor;
use crate::clock::LocalInstant;
use crate::timings::JITTER_FACTOR;

/// The first pause after a failure. It doubles with each further one, up to the retry period.
const FIRST_BACK_OFF: Duration = Duration::from_millis(100);

/// A candidate whose requests are refused for good asks this many times more slowly.
const SLOW: u32 = 5;

/// All timers of an election's requests. Nothing else decides when a request goes out.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Pacing {
    /// Consecutive failures, the exponent of the back-off.
    failures: u8,
    /// The moment before which nothing is sent, after a request that failed.
    pause_until: LocalInstant,
    /// The moment before which the store asked not to be called again. Outlives the term.
    asked_until: LocalInstant,
    /// The moment before which nothing is written: after a failed write, or while standing back.
    write_after: LocalInstant,
    /// The moment at which a candidate reads next.
    look_at: LocalInstant,
}

impl Pacing {
    /// A candidate reads at once, and writes nothing for `stand_back`.
    pub(super) fn begin(&mut self, now: LocalInstant, stand_back: Duration) {
        self.restart(now);
        self.look_at = now;
        self.write_after = now + stand_back;
    }

    /// Failures of what has ended delay nothing that begins now.
    pub(super) fn restart(&mut self, now: LocalInstant) {
        self.failures = 0;
        self.pause_until = now;
        self.write_after = now;
    }

    /// A write of ours landed, or the object has changed: failures of before say nothing any more.
    pub(super) fn made_progress(&mut self) {
        self.failures = 0;
    }

    /// A read showed that a write landed whose answer was bad. The pause was for a write that failed, and the
    /// window of this one may be about to close.
    pub(super) fn write_at_once(&mut self, now: LocalInstant) {
        self.write_after = now;
    }

    /// A candidate has read the object, and reads it again after a poll's pause (rule 10).
    pub(super) fn looked(&mut self, rules: &Rules, now: LocalInstant, jitter: Jitter) {
        self.look_at = now + poll_pause(rules, jitter);
    }

    /// A read showed that an unanswered write has not landed: the write is tried again after a pause.
    pub(super) fn write_again(&mut self, rules: &Rules, now: LocalInstant, jitter: Jitter) {
        self.write_after = now + self.back_off(rules, jitter);
    }

    /// A write may have landed or not. The read comes at once; another write, if it comes to that, after a pause.
    pub(super) fn in_doubt(&mut self, rules: &Rules, now: LocalInstant, failure: Failure, jitter: Jitter) {
        self.obey(rules, now, failure);
        self.write_after = self.write_after.max(now + self.back_off(rules, jitter));
    }

    /// A request failed and is to be tried again after a pause.
    pub(super) fn failed(&mut self, rules: &Rules, now: LocalInstant, failure: Failure, jitter: Jitter) {
        self.obey(rules, now, failure);
        self.pause_until = now + self.back_off(rules, jitter);
    }

    /// A candidate's request failed for a reason that will hardly go away.
    pub(super) fn failed_for_good(&mut self, rules: &Rules, now: LocalInstant, failure: Failure, jitter: Jitter) {
        self.obey(rules, now, failure);
        let back_off = self.back_off(rules, jitter);
        self.pause_until = now + back_off.max(poll_pause(rules, jitter) * SLOW);
    }

    /// A candidate's read failed. That is no reason to miss the moment at which the lease expires.
    pub(super) fn look_failed(&mut self, rules: &Rules, now: LocalInstant, failure: Failure, jitter: Jitter) {
        self.obey(rules, now, failure);
        let back_off = self.back_off(rules, jitter);
        self.look_at = now + back_off.max(poll_pause(rules, jitter));
    }

    /// The next moment at which a request may go out that nothing but the pauses delays.
    pub(super) fn soonest(&self) -> LocalInstant {
        self.pause_until.max(self.asked_until)
    }

    /// The next moment for a write that is wanted `at`.
    pub(super) fn write(&self, at: LocalInstant) -> LocalInstant {
        at.max(self.write_after).max(self.soonest())
    }

    /// The next moment at which a candidate reads.
    pub(super) fn look(&self) -> LocalInstant {
        self.look_at.max(self.soonest())
    }

    /// A store that asks for more than a lease is asked again after one.
    fn obey(&mut self, rules: &Rules, now: LocalInstant, failure: Failure) {
        let asked = failure.retry_after.unwrap_or_default().min(rules.lease_duration);
        self.asked_until = self.asked_until.max(now + asked);
    }

    fn back_off(&mut self, rules: &Rules, jitter: Jitter) -> Duration {
        let longest = FIRST_BACK_OFF.saturating_mul(1 << self.failures.min(31)).min(rules.retry_period);
        if longest < rules.retry_period {
            self.failures += 1;
        }
        jitter.of(longest)
    }

    pub(super) fn visit(&mut self, visitor: &mut impl Visitor) {
        visitor.timer(&mut self.pause_until);
        visitor.timer(&mut self.asked_until);
        visitor.timer(&mut self.write_after);
        visitor.timer(&mut self.look_at);
    }
}

/// client-go's pause between a candidate's tries: a retry period and up to 1.2 more.
fn poll_pause(rules: &Rules, jitter: Jitter) -> Duration {
    rules.retry_period + jitter.of(rules.retry_period.mul_f64(JITTER_FACTOR))
}
