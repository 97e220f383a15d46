//! The writes that the lock refuses to the elector. The elector keeps trying, and `run` decides whether to wait.

use leaderelection::handle::Operation;
use leaderelection::{LeaderHandle, StoreErrorKind};

use crate::exit::{Failure, exit_of};

/// Returns the refusal of the last write, if the lock has not changed since: a changed lock shows that another
/// candidate can write. While another candidate holds the lock, the elector does not write.
pub(super) fn last(handle: &LeaderHandle) -> Option<Failure> {
    let status = handle.status();
    let error = status.last_error?;
    let refused = error.kind == StoreErrorKind::Fatal && error.operation != Operation::Get;
    let unchanged = status.observed.is_none_or(|lease| lease.unchanged_for >= error.age);
    (refused && unchanged).then(|| Failure::new(exit_of(error.kind), error.message))
}

/// Completes with the next refusal. Cancellation safe.
pub(super) async fn next(handle: &mut LeaderHandle) -> Failure {
    while handle.next_error().await.is_ok() {
        if let Some(failure) = last(handle) {
            return failure;
        }
    }
    std::future::pending().await
}
