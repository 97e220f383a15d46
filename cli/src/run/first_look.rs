//! A first read of the lock, before the wait for leadership begins.

use std::time::Duration;

use leaderelection::clock::{Clock as _, LocalInstant, SystemClock};
use leaderelection::{Bounded, LockError, ObjectStoreBasedLock as _, StoreErrorKind, TimeLimit, Timings};
use tokio::time::sleep;

use crate::exit::Failure;
use crate::lock::Lock;

/// The time for which an unreadable lock is read again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Patience {
    /// One read.
    Once,
    /// Repeated reads, until the duration has passed since the given moment.
    For(Duration, LocalInstant),
}

/// Returns the holder of the lock. A refusal by the store fails at once, and an unreachable store fails when
/// `patience` is over: an error in the URL must not cause an endless wait.
pub(super) async fn holder(lock: &Lock, timings: &Timings, patience: Patience) -> Result<Option<String>, Failure> {
    let (limit, began) = match patience {
        Patience::Once => (timings.request_timeout(), SystemClock.now()),
        Patience::For(limit, began) => (limit, began),
    };
    let request_timeout = timings.request_timeout();
    let setting = if request_timeout <= limit { "--request-timeout" } else { "--wait-timeout" };
    let lock = Bounded::new(lock.clone(), TimeLimit::new(request_timeout.min(limit)).of_setting(setting));
    let mut last = None;
    let attempts = async {
        loop {
            match lock.get().await {
                Ok(found) => return Ok(found.map(|found| found.record.holder_identity)),
                Err(error) if patience == Patience::Once || !is_transient(&error) => return Err(error),
                Err(error) => last = Some(error),
            }
            sleep((timings.retry_period() / 2).min(Duration::from_secs(1))).await;
        }
    };
    match TimeLimit::new(limit).of_setting(setting).answer_since(began, attempts).await {
        Ok(holder) => Ok(holder?.filter(|holder| !holder.is_empty())),
        Err(silence) => Err(last.map_or_else(|| silence.of(&lock.describe()).into(), Failure::from)),
    }
}

fn is_transient(error: &LockError) -> bool {
    matches!(error.kind(), StoreErrorKind::Rejected | StoreErrorKind::Ambiguous)
}
