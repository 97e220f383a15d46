//! Waiting for a store that rejects calls for now.

use std::time::Duration;

use leaderelection::{StoreError, StoreErrorKind};

/// The number of times that a call is tried if the store rejects it every time.
pub(crate) const TRIES: usize = 10;

/// The pause after a rejected call, unless the store asks for another pause. The pause is long enough for a
/// store that accepts one write per second to an object.
pub(crate) const PAUSE: Duration = Duration::from_secs(1);

/// Repeats a call that the store rejects, as its callers would.
pub(crate) async fn patiently<T, S, A>(sleep: impl Fn(Duration) -> S, call: impl Fn() -> A) -> Result<T, StoreError>
where
    S: Future<Output = ()>,
    A: Future<Output = Result<T, StoreError>>,
{
    for _ in 1..TRIES {
        let answer = call().await;
        match &answer {
            Err(error) if error.kind() == StoreErrorKind::Rejected => sleep(error.retry_after().unwrap_or(PAUSE)).await,
            _ => return answer,
        }
    }
    call().await
}
