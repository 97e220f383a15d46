//! A first read of the lock, before the wait for leadership begins.

use std::sync::Arc;
use std::time::Duration;

use leaderelection::clock::{Clock as _, LocalInstant, SystemClock};
use leaderelection::handle::Operation;
use leaderelection::lock::{Bounded, TimeLimit};
use leaderelection::{LeaderElectionRecord, LockError, ObjectStoreBasedLock, StoreErrorKind, Timings};
use tokio::time::sleep;

use crate::exit::{Exit, Failure};
use crate::lock::LockUrl;

/// The time for which an unreadable lock is read again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Patience {
    /// One read.
    Once,
    /// Repeated reads, until the duration has passed since the given moment.
    For(Duration, LocalInstant),
}

/// The lease of a holder, as far as this process has seen it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Held {
    pub(super) holder: String,
    pub(super) lease: Duration,
    pub(super) seen_for: Duration,
}

/// The failure of a candidate that does not wait for these holders.
pub(super) fn held(held: &[Held], lock: &LockUrl) -> Failure {
    let [lease, seen, enough] = {
        let lease = held.iter().map(|held| held.lease).max().unwrap_or_default();
        let seen_for = held.iter().map(|held| held.seen_for).min().unwrap_or_default();
        [lease, seen_for.min(lease), lease.saturating_mul(2)].map(|time| {
            humantime::format_duration(Duration::from_millis(u64::try_from(time.as_millis()).unwrap_or(u64::MAX)))
        })
    };
    let instead = format!("use --wait-timeout {enough} instead of --no-wait");
    let message = match held {
        [Held { holder, .. }] => format!(
            "{lock} is held by {holder} (lease {lease}, watched for {seen}); if {holder} is dead, that shows only after {lease} without \
             a renewal: {instead}"
        ),
        held => format!(
            "all {} slots of {lock} are held by {}; if one of them is dead, that shows only after {lease} without a renewal of its \
             session: {instead}",
            held.len(),
            names(held)
        ),
    };
    Failure::new(Exit::Held, message)
}

/// The names of the holders.
pub(super) fn names(held: &[Held]) -> String {
    held.iter().map(|held| held.holder.as_str()).collect::<Vec<_>>().join(", ")
}

/// The lock at the first poll.
pub(super) enum FirstRead {
    /// The job was done before.
    Done,
    /// The other holders, if this process would have to wait for them.
    Held(Option<Vec<Held>>),
}

/// Returns the record of the lock, as `until_read` does.
pub(super) async fn record(
    lock: &Arc<dyn ObjectStoreBasedLock>,
    timings: &Timings,
    patience: Patience,
) -> Result<Option<LeaderElectionRecord>, Failure> {
    let read = async |limit: &TimeLimit| Bounded::new(lock.clone(), limit.clone()).get().await;
    Ok(until_read(&lock.describe(), timings, patience, read).await?.map(|found| found.record))
}

/// Returns the holder that a record names.
pub(super) fn holder(record: LeaderElectionRecord) -> Option<Held> {
    (!record.is_released()).then_some(Held {
        holder: record.holder_identity,
        lease: record.lease_duration,
        seen_for: Duration::ZERO,
    })
}

/// Reads until an answer comes. A refusal by the store fails at once, and an unreachable store fails when `patience` is
/// over: an error in the URL must not cause an endless wait, unless somebody says how long.
pub(super) async fn until_read<T>(
    name: &str,
    timings: &Timings,
    patience: Patience,
    read: impl AsyncFn(&TimeLimit) -> Result<T, LockError>,
) -> Result<T, Failure> {
    let (limit, began) = match patience {
        Patience::Once => (timings.request_timeout(), SystemClock.now()),
        Patience::For(limit, began) => (limit, began),
    };
    let request_timeout = timings.request_timeout();
    let setting = if request_timeout <= limit { "--request-timeout" } else { "--wait-timeout" };
    let each = TimeLimit::new(request_timeout.min(limit)).of_setting(setting);
    let mut last = None;
    let attempts = async {
        loop {
            match read(&each).await {
                Ok(found) => return Ok(found),
                Err(error) if patience == Patience::Once || !is_transient(&error) => return Err(error),
                Err(error) => {
                    // As the elector says it, which does not ask yet.
                    let (request, chain) = (Operation::Get.name(), error.in_full());
                    tracing::warn!(request, error = chain, "a request to the lock failed; trying again");
                    last = Some(error);
                }
            }
            sleep(timings.retry_period().min(Duration::from_secs(1))).await;
        }
    };
    match TimeLimit::new(limit).of_setting(setting).answer_since(began, attempts).await {
        Ok(found) => Ok(found?),
        Err(silence) => Err(last.map_or_else(|| silence.of(name).into(), Failure::from)),
    }
}

fn is_transient(error: &LockError) -> bool {
    matches!(error.kind(), StoreErrorKind::Rejected | StoreErrorKind::Ambiguous)
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use leaderelection::StoreErrorKind::{Fatal, Rejected, Unreadable};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn only_a_waiting_caller_retries_a_store_that_may_answer_later() {
        let timings = Timings::new(Duration::from_secs(15), Duration::from_secs(10), Duration::from_secs(2)).unwrap();
        let waits = Patience::For(Duration::from_secs(3600), SystemClock.now());
        for (patience, kind, reads) in [
            (Patience::Once, Rejected, 1),
            (Patience::Once, Fatal, 1),
            (waits, Rejected, 3),
            (waits, StoreErrorKind::Ambiguous, 3),
            (waits, Fatal, 1),
            (waits, Unreadable, 1),
        ] {
            let read = Cell::new(0);
            let found = until_read("lock", &timings, patience, async |_: &TimeLimit| {
                read.set(read.get() + 1);
                if read.get() == 3 { Ok(()) } else { Err(LockError::new(kind, "cannot read lock", "a", "injected")) }
            });
            assert_eq!(found.await.is_ok(), reads == 3, "{kind:?}");
            assert_eq!(read.get(), reads, "{patience:?} {kind:?}");
        }
    }
}
