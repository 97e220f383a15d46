//! Exponential back-off with jitter: the pauses after failures (rule 6), of elections, of each lock of a session, and of everything else
//! that retries.

use std::time::Duration;

use super::Jitter;

/// The first pause after a failure. The pause doubles with each further failure, up to the longest.
const FIRST: Duration = Duration::from_millis(100);

/// How much longer a candidate pauses if its requests are rejected permanently.
pub const SLOW: u32 = 5;

/// The number of consecutive failures, which is the exponent of the next pause.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct BackOff(u8);

impl BackOff {
    /// Returns the pause after another failure, with full jitter. In an election, the longest is the retry period.
    pub fn next(&mut self, longest: Duration, jitter: Jitter) -> Duration {
        let pause = FIRST.saturating_mul(1 << self.0.min(31)).min(longest);
        // The count ends here: larger counts have the same effect, but would be different states for an explorer.
        self.0 = self.0.saturating_add(u8::from(pause < longest));
        jitter.of(pause)
    }
}
