//! Pauses between tries, and the end of patience.

use std::time::Duration;

use leaderelection_protocol::policy::Jitter;
use leaderelection_protocol::policy::back_off::BackOff;

use crate::clock::Clock;
use crate::store::{StoreError, StoreErrorKind};
use crate::util::random;

/// The number of consecutive failures, without any writer's progress, after which a call gives up.
pub(super) const MOST_FAILURES: u32 = 8;

/// The longest `Retry-After` that a call waits for. After a longer one, the call fails, and its caller decides.
pub(super) const LONGEST_ASKED: Duration = Duration::from_secs(30);

/// The longest pause that no store has asked for.
const LONGEST: Duration = Duration::from_secs(2);

/// The patience of one call.
#[derive(Debug)]
pub(super) struct Patience<'a> {
    clock: &'a dyn Clock,
    failures: u32,
    pauses: BackOff,
}

impl<'a> Patience<'a> {
    pub(super) fn new(clock: &'a dyn Clock) -> Self {
        Self { clock, failures: 0, pauses: BackOff::default() }
    }

    /// Forgets the failures, because some writer made progress.
    pub(super) fn reset(&mut self) {
        (self.failures, self.pauses) = (0, BackOff::default());
    }

    /// Waits before the next try, as after a failure of an election (rule 6), and not less than the store asked for.
    /// Returns `false` at once if another try would not help or has been made often enough.
    pub(super) async fn wait_out(&mut self, error: &StoreError) -> bool {
        let asked = error.retry_after().unwrap_or_default();
        let passes =
            matches!(error.kind(), StoreErrorKind::Conflict | StoreErrorKind::Rejected | StoreErrorKind::Ambiguous);
        self.failures += 1;
        if !passes || self.failures >= MOST_FAILURES || asked > LONGEST_ASKED {
            return false;
        }
        let pause = self.pauses.next(LONGEST, Jitter::new(random::number()));
        self.clock.sleep_until(self.clock.now() + pause.max(asked)).await;
        true
    }
}
