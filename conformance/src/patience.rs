//! Waiting for a store that rejects calls for now.

use std::time::Duration;

use leaderelection::{LockError, StoreError, StoreErrorKind};

/// The number of times that a call is tried if the store rejects it every time.
pub(crate) const TRIES: usize = 10;

/// The pause after a rejected call, unless the store asks for another pause. The pause is long enough for a
/// store that accepts one write per second to an object.
pub(crate) const PAUSE: Duration = Duration::from_secs(1);

/// An error with which a store may have rejected a call.
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
pub(crate) async fn patiently<T, E, S, A>(sleep: impl Fn(Duration) -> S, call: impl Fn() -> A) -> Result<T, E>
where
    E: Objection,
    S: Future<Output = ()>,
    A: Future<Output = Result<T, E>>,
{
    for _ in 1..TRIES {
        match call().await {
            Err(error) if error.kind() == StoreErrorKind::Rejected => {
                sleep(error.retry_after().unwrap_or(PAUSE)).await;
            }
            answer => return answer,
        }
    }
    call().await
}
