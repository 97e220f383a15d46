//! The locks that this process competes for, one or one for every slot, of which it leads one at a time; and the writes that
//! they refuse. The elector keeps trying, and `run` decides whether to wait.

use std::time::Duration;

use futures_util::future::{FutureExt as _, select_all};
use leaderelection::handle::Operation;
use leaderelection::{LeaderHandle, StoreErrorKind};

use super::first_read::Held;
use crate::exit::{Exit, Failure, exit_of};

pub(super) fn is_led(locks: &[LeaderHandle]) -> bool {
    locks.iter().any(LeaderHandle::is_leader)
}

/// Completes when the status of any lock changes. Cancellation safe.
pub(super) async fn changed(locks: &mut [LeaderHandle]) {
    if select_all(locks.iter_mut().map(|lock| lock.changed().boxed())).await.0.is_err() {
        std::future::pending::<()>().await;
    }
}

/// The holders, if every lock is held by another process.
pub(super) fn held_by_others(locks: &[LeaderHandle]) -> Option<Vec<Held>> {
    locks.iter().map(held_by_other).collect()
}

fn held_by_other(lock: &LeaderHandle) -> Option<Held> {
    let status = lock.status();
    let holder = status.leader.filter(|leader| leader != lock.identity())?;
    let (lease, seen_for) = status.observed.map(|seen| (seen.lease_duration, seen.unchanged_for)).unwrap_or_default();
    Some(Held { holder, lease, seen_for })
}

/// The failure of the store that kept this process from leading; `None` if it waited for other holders.
pub(super) fn failure_of_store(locks: &[LeaderHandle]) -> Option<Failure> {
    let failed = |lock: &LeaderHandle| {
        let error = lock.last_error().filter(|_| held_by_other(lock).is_none())?;
        Some(Failure::new(Exit::Unavailable, error.message))
    };
    locks.iter().find_map(last_refusal).or_else(|| locks.iter().find_map(failed))
}

/// Completes with the next refusal. Cancellation safe.
pub(super) async fn next_refusal(locks: &mut [LeaderHandle]) -> Failure {
    select_all(locks.iter_mut().map(|lock| refused(lock).boxed())).await.0
}

async fn refused(lock: &mut LeaderHandle) -> Failure {
    while lock.next_error().await.is_ok() {
        if let Some(failure) = last_refusal(lock) {
            return failure;
        }
    }
    std::future::pending().await
}

/// Returns the refusal of the last write, if the lock has not changed since: a changed lock shows that another
/// candidate can write. While another candidate holds the lock, the elector does not write.
fn last_refusal(lock: &LeaderHandle) -> Option<Failure> {
    let status = lock.status();
    let error = status.last_error?;
    let unchanged_for = status.observed.map(|lease| lease.unchanged_for);
    is_refusal(error.kind, error.operation, error.age, unchanged_for)
        .then(|| Failure::new(exit_of(error.kind), error.message))
}

fn is_refusal(kind: StoreErrorKind, operation: Operation, age: Duration, unchanged_for: Option<Duration>) -> bool {
    let is_write = operation != Operation::Get;
    kind == StoreErrorKind::Fatal && is_write && unchanged_for.is_none_or(|unchanged_for| unchanged_for >= age)
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
