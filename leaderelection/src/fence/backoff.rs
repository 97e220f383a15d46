//! Pauses between tries, and the end of patience.

use std::time::Duration;

use rand::RngExt;
use rand::rngs::Xoshiro256PlusPlus;

use crate::clock::Clock;
use crate::store::{StoreError, StoreErrorKind};

/// The number of consecutive failures, without any writer's progress, after which a call gives up.
pub(super) const MOST_FAILURES: u32 = 8;

/// The longest `Retry-After` that a call waits for. After a longer one, the call fails, and its caller decides.
pub(super) const LONGEST_ASKED: Duration = Duration::from_secs(30);

const SHORTEST: Duration = Duration::from_millis(100);
const LONGEST: Duration = Duration::from_secs(2);

/// The patience of one call.
#[derive(Debug)]
pub(super) struct Backoff<'a> {
    clock: &'a dyn Clock,
    failures: u32,
}

impl<'a> Backoff<'a> {
    pub(super) fn new(clock: &'a dyn Clock) -> Self {
        Self { clock, failures: 0 }
    }

    /// Forgets the failures, because some writer made progress.
    pub(super) fn reset(&mut self) {
        self.failures = 0;
    }

    /// Waits before the next try: 100 ms doubling to 2 s, full jitter, and not less than the store asked for.
    /// Returns `false` at once if another try would not help or has been made often enough.
    pub(super) async fn wait_out(&mut self, error: &StoreError) -> bool {
        let asked = error.retry_after().unwrap_or_default();
        let passes =
            matches!(error.kind(), StoreErrorKind::Conflict | StoreErrorKind::Rejected | StoreErrorKind::Ambiguous);
        self.failures += 1;
        if !passes || self.failures >= MOST_FAILURES || asked > LONGEST_ASKED {
            return false;
        }
        let most = SHORTEST.saturating_mul(1 << (self.failures - 1)).min(LONGEST);
        let pause = most.mul_f64(rand::make_rng::<Xoshiro256PlusPlus>().random());
        self.clock.sleep_until(self.clock.now() + pause.max(asked)).await;
        true
    }
}
