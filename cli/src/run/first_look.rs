//! A first read of the lock, before the wait for leadership begins.

use std::time::Duration;

use leaderelection::clock::{Clock as _, LocalInstant, SystemClock};
use leaderelection::{Bounded, LockError, ObjectStoreBasedLock as _, StoreErrorKind, TimeLimit, Timings};
use tokio::time::sleep;

use crate::exit::{Exit, Failure};
use crate::lock::{Lock, LockUrl};

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

impl Held {
    /// The failure of a candidate that does not wait.
    pub(super) fn failure(&self, lock: &LockUrl) -> Failure {
        let Self { holder, lease, seen_for } = self;
        let [lease, seen, enough] = [*lease, (*seen_for).min(*lease), lease.saturating_mul(2)].map(|time| {
            humantime::format_duration(Duration::from_millis(u64::try_from(time.as_millis()).unwrap_or(u64::MAX)))
        });
        let message = format!(
            "{lock} is held by {holder}; its lease of {lease} was seen for {seen}, and only a holder that does not renew \
             it for {lease} is dead; to wait that long, use --wait-timeout {enough} in place of --no-wait"
        );
        Failure::new(Exit::Held, message)
    }
}

/// Returns the holder of the lock. A refusal by the store fails at once, and an unreachable store fails when
/// `patience` is over: an error in the URL must not cause an endless wait.
pub(super) async fn holder(lock: &Lock, timings: &Timings, patience: Patience) -> Result<Option<Held>, Failure> {
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
                Ok(found) => return Ok(found.map(|found| found.record)),
                Err(error) if patience == Patience::Once || !is_transient(&error) => return Err(error),
                Err(error) => last = Some(error),
            }
            sleep((timings.retry_period() / 2).min(Duration::from_secs(1))).await;
        }
    };
    match TimeLimit::new(limit).of_setting(setting).answer_since(began, attempts).await {
        Ok(record) => Ok(record?.filter(|record| !record.is_released()).map(|record| Held {
            holder: record.holder_identity,
            lease: record.lease_duration,
            seen_for: Duration::ZERO,
        })),
        Err(silence) => Err(last.map_or_else(|| silence.of(&lock.describe()).into(), Failure::from)),
    }
}

fn is_transient(error: &LockError) -> bool {
    matches!(error.kind(), StoreErrorKind::Rejected | StoreErrorKind::Ambiguous)
}
