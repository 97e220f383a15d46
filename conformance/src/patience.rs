//! Waiting for a store that rejects calls for now.

use std::error::Error;
use std::time::Duration;

use leaderelection::{LockError, StoreError, StoreErrorKind};

/// The number of times that a call is tried if the store rejects it every time.
pub(crate) const TRIES: usize = 10;

/// The pause after a rejected call, unless the store asks for another pause. The pause is long enough for a
/// store that accepts one write per second to an object.
pub(crate) const PAUSE: Duration = Duration::from_secs(1);

/// An error with which a store may have rejected a call.
pub(crate) trait Objection: Error {
    /// The known effect of the call, and the pause that the store asks for.
    fn told(&self) -> (StoreErrorKind, Option<Duration>);
}

impl Objection for StoreError {
    fn told(&self) -> (StoreErrorKind, Option<Duration>) {
        (self.kind(), self.retry_after())
    }
}

impl Objection for LockError {
    fn told(&self) -> (StoreErrorKind, Option<Duration>) {
        (self.kind(), self.retry_after())
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
        let answer = call().await;
        match answer.as_ref().err().map(Objection::told) {
            Some((StoreErrorKind::Rejected, pause)) => sleep(pause.unwrap_or(PAUSE)).await,
            _ => return answer,
        }
    }
    call().await
}
