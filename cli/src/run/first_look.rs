//! Whether the lock can be read at all, before anybody waits for it.

use std::time::Duration;

use leaderelection::{LockError, ObjectStoreBasedLock as _, StoreErrorKind};

use crate::exit::Failure;
use crate::lock::Lock;
use crate::timing::Timing;

/// Who holds the lock. A store that refuses fails at once, and one that is out of reach after a lease:
/// a slip in the URL must not wait for ever.
pub(super) async fn holder(lock: &Lock, timing: &Timing) -> Result<Option<String>, Failure> {
    let mut last = None;
    let attempts = tokio::time::timeout(timing.lease, async {
        loop {
            match read(lock, timing.request_timeout()).await {
                Ok(holder) => return Ok(holder),
                Err(Trouble::Error(error)) if !is_transient(&error) => return Err(error),
                Err(trouble) => last = Some(trouble),
            }
            tokio::time::sleep((timing.retry() / 2).min(Duration::from_secs(1))).await;
        }
    });
    match attempts.await {
        Ok(result) => Ok(result?),
        Err(_) => Err(match last {
            Some(Trouble::Error(error)) => error.into(),
            Some(Trouble::Silence) | None => Failure::silent(&lock.describe(), timing.request_timeout()),
        }),
    }
}

enum Trouble {
    Error(LockError),
    Silence,
}

async fn read(lock: &Lock, patience: Duration) -> Result<Option<String>, Trouble> {
    match tokio::time::timeout(patience, lock.get()).await {
        Ok(Ok(found)) => Ok(found.map(|found| found.record.holder_identity).filter(|holder| !holder.is_empty())),
        Ok(Err(error)) => Err(Trouble::Error(error)),
        Err(_) => Err(Trouble::Silence),
    }
}

fn is_transient(error: &LockError) -> bool {
    matches!(error.kind(), StoreErrorKind::Rejected | StoreErrorKind::Ambiguous)
}
