//! The retries of one call: the pauses between them, and when the call gives up.

use std::time::Duration;

use leaderelection_protocol::policy::Jitter;
use leaderelection_protocol::policy::back_off::BackOff;

use crate::clock::Clock;
use crate::store::{StoreError, StoreErrorKind};
use crate::util::random;

/// A call gives up after this many consecutive failures during which no writer made progress.
const MAX_FAILURES: u32 = 8;

/// The longest `Retry-After` that a call waits for. After a longer one, the call fails, and its caller decides.
const MAX_RETRY_AFTER: Duration = Duration::from_secs(30);

/// The longest pause without a `Retry-After`.
const MAX_PAUSE: Duration = Duration::from_secs(2);

/// The state of one call's retries.
#[derive(Debug)]
pub(super) struct Retries<'a> {
    clock: &'a dyn Clock,
    failures: u32,
    pauses: BackOff,
}

impl<'a> Retries<'a> {
    pub(super) fn new(clock: &'a dyn Clock) -> Self {
        Self { clock, failures: 0, pauses: BackOff::default() }
    }

    /// Forgets the failures, because some writer made progress.
    pub(super) fn reset(&mut self) {
        (self.failures, self.pauses) = (0, BackOff::default());
    }

    /// Waits before the next try: the back-off of an election (rule 6), but not less than the store's `Retry-After`.
    /// Returns `false` at once if the call has to give up.
    pub(super) async fn wait_after(&mut self, error: &StoreError) -> bool {
        let retry_after = error.retry_after().unwrap_or_default();
        let is_temporary =
            matches!(error.kind(), StoreErrorKind::Conflict | StoreErrorKind::Rejected | StoreErrorKind::Ambiguous);
        self.failures += 1;
        if !is_temporary || self.failures >= MAX_FAILURES || retry_after > MAX_RETRY_AFTER {
            return false;
        }
        let pause = self.pauses.next(MAX_PAUSE, Jitter::new(random::number()));
        self.clock.sleep_until(self.clock.now() + pause.max(retry_after)).await;
        true
    }
}
