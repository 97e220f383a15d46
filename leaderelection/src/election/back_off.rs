//! Rule 6: the pauses after failures, for an election and for each lock of a session.

use std::time::Duration;

use super::input::Jitter;
use super::rules::Rules;
use crate::timings::JITTER_FACTOR;

/// The first pause after a failure. The pause doubles with each further failure, up to the retry period.
const FIRST: Duration = Duration::from_millis(100);

/// The factor by which the pauses of a candidate grow whose requests are refused permanently.
pub(crate) const SLOW: u32 = 5;

/// The number of consecutive failures, which is the exponent of the next pause.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct BackOff(u8);

impl BackOff {
    /// Returns the pause after another failure, with full jitter.
    pub(crate) fn next(&mut self, rules: &Rules, jitter: Jitter) -> Duration {
        let longest = FIRST.saturating_mul(1 << self.0.min(31)).min(rules.retry_period);
        // A count that went on would make states differ that do not.
        self.0 = self.0.saturating_add(u8::from(longest < rules.retry_period));
        jitter.of(longest)
    }
}

impl Rules {
    /// client-go's pause between a candidate's tries: one retry period, and up to 1.2 more.
    pub(crate) fn poll_pause(&self, jitter: Jitter) -> Duration {
        self.retry_period + self.poll_jitter(jitter)
    }

    pub(super) fn poll_jitter(&self, jitter: Jitter) -> Duration {
        jitter.of(self.retry_period.mul_f64(JITTER_FACTOR))
    }
}
