//! The writes that the lock refuses to the elector. The elector keeps trying, and `run` decides whether to wait.

use std::time::Duration;

use leaderelection::handle::Operation;
use leaderelection::{LeaderHandle, StoreErrorKind};

use crate::exit::{Failure, exit_of};

/// Returns the refusal of the last write, if the lock has not changed since: a changed lock shows that another
/// candidate can write. While another candidate holds the lock, the elector does not write.
pub(super) fn last(handle: &LeaderHandle) -> Option<Failure> {
    let status = handle.status();
    let error = status.last_error?;
    let unchanged_for = status.observed.map(|lease| lease.unchanged_for);
    is_refusal(error.kind, error.operation, error.age, unchanged_for)
        .then(|| Failure::new(exit_of(error.kind), error.message))
}

fn is_refusal(kind: StoreErrorKind, operation: Operation, age: Duration, unchanged_for: Option<Duration>) -> bool {
    let is_write = operation != Operation::Get;
    kind == StoreErrorKind::Fatal && is_write && unchanged_for.is_none_or(|unchanged_for| unchanged_for >= age)
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

#[cfg(test)]
mod tests {
    use leaderelection::StoreErrorKind::{Fatal, Rejected};
    use leaderelection::handle::Operation::{Create, Get, Update};

    use super::*;

    #[test]
    fn a_write_is_refused_unless_the_lock_has_changed_since() {
        for (kind, operation, unchanged_for, refused) in [
            (Fatal, Create, None, true),
            (Fatal, Update, Some(10), true),
            (Fatal, Update, Some(11), true),
            (Fatal, Update, Some(9), false),
            (Fatal, Get, None, false),
            (Rejected, Update, None, false),
        ] {
            let unchanged_for = unchanged_for.map(Duration::from_secs);
            let found = is_refusal(kind, operation, Duration::from_secs(10), unchanged_for);
            assert_eq!(found, refused, "{kind:?} {operation:?} {unchanged_for:?}");
        }
    }
}
