//! Rule 6: the pauses after failures, for an election and for each lock of a session.

use std::time::Duration;

use super::Jitter;

/// The first pause after a failure. The pause doubles with each further failure, up to the retry period.
const FIRST: Duration = Duration::from_millis(100);

/// The factor by which the pauses of a candidate grow whose requests are refused permanently.
pub const SLOW: u32 = 5;

/// The number of consecutive failures, which is the exponent of the next pause.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct BackOff(u8);

impl BackOff {
    /// Returns the pause after another failure, with full jitter.
    pub fn next(&mut self, retry_period: Duration, jitter: Jitter) -> Duration {
        let longest = FIRST.saturating_mul(1 << self.0.min(31)).min(retry_period);
        // A count that went on would make states differ that do not.
        self.0 = self.0.saturating_add(u8::from(longest < retry_period));
        jitter.of(longest)
    }
}
