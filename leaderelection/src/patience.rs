//! Waiting for a store that rejects calls for now.

use std::time::Duration;

use crate::clock::Clock;
use crate::lock::LockError;
use crate::store::{StoreError, StoreErrorKind};

/// How often a call is tried that the store rejects every time.
pub(crate) const TRIES: usize = 10;

/// What a store has against a call.
pub(crate) trait Objection {
    fn kind(&self) -> StoreErrorKind;
    fn retry_after(&self) -> Option<Duration>;
}

impl Objection for StoreError {
    fn kind(&self) -> StoreErrorKind {
        self.kind()
    }

    fn retry_after(&self) -> Option<Duration> {
        self.retry_after()
    }
}

impl Objection for LockError {
    fn kind(&self) -> StoreErrorKind {
        self.kind()
    }

    fn retry_after(&self) -> Option<Duration> {
        self.retry_after()
    }
}

/// Repeats a call that the store rejects, as its callers would.
pub(crate) async fn patiently<T, E, A>(clock: &dyn Clock, call: impl Fn() -> A) -> Result<T, E>
where
    E: Objection,
    A: Future<Output = Result<T, E>>,
{
    for _ in 1..TRIES {
        match call().await {
            Err(error) if error.kind() == StoreErrorKind::Rejected => pause(clock, error.retry_after()).await,
            answer => return answer,
        }
    }
    call().await
}

/// Waits as long as the store asked, or long enough for one that takes a write a second for an object.
pub(crate) async fn pause(clock: &dyn Clock, asked: Option<Duration>) {
    clock.sleep_until(clock.now() + asked.unwrap_or(Duration::from_secs(1))).await;
}
