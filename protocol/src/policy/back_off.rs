//! Exponential back-off with jitter: the pause before each retry (rule 6). Elections, the locks of sessions, and everything else that
//! retries use it.

use std::time::Duration;

use super::Jitter;

/// The pause after the first failure, before jitter. It doubles with each further failure.
const FIRST: Duration = Duration::from_millis(100);

/// A candidate waits for this many poll pauses after a failure that is probably permanent.
pub const SLOW: u32 = 5;

/// The number of consecutive failures, each of which doubles the next pause.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct BackOff(u8);

impl BackOff {
    /// Returns the pause after another failure, with full jitter. `longest` limits the pause; in an election it is the retry period.
    pub fn next(&mut self, longest: Duration, jitter: Jitter) -> Duration {
        let pause = FIRST.saturating_mul(1 << self.0.min(31)).min(longest);
        // The count stops at the longest pause: a larger count has the same effect, but would be another state for a model checker.
        self.0 = self.0.saturating_add(u8::from(pause < longest));
        jitter.of(pause)
    }
}
