//! Whether the lock can be read at all, before anybody waits for it.

use std::time::Duration;

use leaderelection::clock::{Clock as _, LocalInstant, SystemClock};
use leaderelection::{LockError, ObjectStoreBasedLock as _, StoreErrorKind};
use tokio::time::{sleep, timeout};

use crate::exit::Failure;
use crate::lock::Lock;
use crate::timing::Timing;

/// How long to look at a lock that cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Patience {
    /// Once.
    Once,
    /// Again and again, until this long after we began.
    For(Duration, LocalInstant),
}

/// Who holds the lock. A store that refuses fails at once, and one that is out of reach when `patience` is
/// over: a slip in the URL must not wait for ever.
pub(super) async fn holder(lock: &Lock, timing: &Timing, patience: Patience) -> Result<Option<String>, Failure> {
    let now = SystemClock.now();
    let (limit, began) = match patience {
        Patience::Once => (timing.request_timeout(), now),
        Patience::For(limit, began) => (limit, began),
    };
    let request_timeout = timing.request_timeout().min(limit);
    let mut last = None;
    let attempts = timeout((began + limit).saturating_since(now), async {
        loop {
            match timeout(request_timeout, lock.get()).await {
                Ok(Ok(found)) => return Ok(found.map(|found| found.record.holder_identity)),
                Ok(Err(error)) if patience == Patience::Once || !is_transient(&error) => return Err(error),
                Ok(Err(error)) => last = Some(error),
                Err(_) => last = None,
            }
            sleep((timing.retry() / 2).min(Duration::from_secs(1))).await;
        }
    });
    match attempts.await {
        Ok(holder) => Ok(holder?.filter(|holder| !holder.is_empty())),
        Err(_) => Err(last.map_or_else(|| Failure::silent(&lock.describe(), request_timeout), Failure::from)),
    }
}

fn is_transient(error: &LockError) -> bool {
    matches!(error.kind(), StoreErrorKind::Rejected | StoreErrorKind::Ambiguous)
}
