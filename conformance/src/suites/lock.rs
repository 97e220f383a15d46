//! The suite for locks: a lock is a store of one record, and passes the checks that an election of a store depends on.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use leaderelection::implement::{ConditionalStore, ListedPage, PageToken, Precondition, Version, VersionedObject};
use leaderelection::lock::DEFAULT_MAX_LEASE_DURATION;
use leaderelection::{LeaderElectionRecord, LockError, ObjectStoreBasedLock, StoreError, StoreErrorKind};

use super::effort::Effort;
use super::run::{must_pass, prober};
use crate::probe::CheckKind;

/// Checks that the locks of `new_lock`, made from a key and an identity, keep the contract of
/// [`ObjectStoreBasedLock`].
///
/// A lock cannot be deleted, so no object may exist at the keys: let `new_lock` put a fresh prefix before the
/// keys, and delete the objects under that prefix afterwards. The suite takes no prefix itself, because only `new_lock`
/// knows where a lock has its object: a Lease has no folders, and a lock of two has two places. Locks with the same key compete for one record. A
/// call that the store rejects is repeated, so that a store with a rate limit can pass, if slowly. Use a
/// runtime with several threads: the races depend on it.
///
/// A lock that is made of two, such as a `Majority`, passes only if the store of its second lock limits no rates: after the
/// first half of a write is committed, a rejection of the second half is answered as
/// [`Ambiguous`](StoreErrorKind::Ambiguous). Check the two locks by themselves as well, because the first one decides every
/// race and hides what is wrong with the conditions of the second.
///
/// # Panics
///
/// If a lock breaks its contract, or answers nothing but errors.
pub async fn check_lock<L: ObjectStoreBasedLock>(
    new_lock: impl Fn(&str, &str) -> L + Send + Sync + 'static,
    effort: Effort,
) {
    let prober = prober(Arc::new(Records { new_lock, made: AtomicUsize::new(0) }), "", effort);
    for kind in CheckKind::ALL.into_iter().filter(|kind| kind.is_required()) {
        must_pass(&prober, kind).await;
    }
}

/// The records of many locks as the objects of a store. Every call has a lock of its own, as that of another process: no
/// lock may depend on what it remembers.
struct Records<F> {
    new_lock: F,
    made: AtomicUsize,
}

impl<L: ObjectStoreBasedLock, F: Fn(&str, &str) -> L> Records<F> {
    fn lock(&self, key: &str) -> L {
        let identity = format!("candidate-{}", self.made.fetch_add(1, Ordering::Relaxed));
        let lock = (self.new_lock)(&key.replace('/', "-"), &identity);
        assert_eq!(lock.identity(), identity, "{}: `identity` is the name that the lock was made for", lock.describe());
        lock
    }
}

impl<F> fmt::Debug for Records<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Records").finish_non_exhaustive()
    }
}

#[async_trait]
impl<L: ObjectStoreBasedLock, F: Fn(&str, &str) -> L + Send + Sync + 'static> ConditionalStore for Records<F> {
    async fn get(&self, key: &str) -> Result<Option<VersionedObject>, StoreError> {
        let Some(found) = self.lock(key).get().await.map_err(as_of_a_store)? else { return Ok(None) };
        let write = found.record.write_id.clone().unwrap_or_default();
        let is_whole = found.record == record(&found.record.holder_identity, &write);
        // A record that lacks something was written by nobody.
        let body = if is_whole { write } else { format!("{:?}", found.record) };
        Ok(Some(VersionedObject::new(body, found.version).with_age(found.age)))
    }

    async fn put(&self, key: &str, body: Bytes, precondition: &Precondition) -> Result<Version, StoreError> {
        let lock = self.lock(key);
        // Every write has an ID of its own, by which a lock may recognise it.
        let record = record(lock.identity(), &String::from_utf8_lossy(&body));
        match precondition {
            Precondition::Absent => lock.create(&record).await,
            Precondition::Matches(expected) => lock.update(&record, expected).await,
        }
        .map_err(as_of_a_store)
    }

    async fn delete(&self, _: &str, expected: Option<&Version>) -> Result<(), StoreError> {
        match expected {
            Some(_) => Err(StoreError::new(StoreErrorKind::Fatal, "a lock cannot be deleted")),
            None => Ok(()),
        }
    }

    async fn list_page(&self, _: &str, _: Option<&PageToken>, _: Option<u16>) -> Result<ListedPage, StoreError> {
        Err(StoreError::new(StoreErrorKind::Fatal, "locks cannot be listed"))
    }

    fn describe(&self, key: &str) -> String {
        self.lock(key).describe()
    }

    fn min_write_interval(&self) -> Option<Duration> {
        None
    }
}

fn as_of_a_store(error: LockError) -> StoreError {
    let retry_after = error.retry_after();
    StoreError::new(error.kind(), error.in_full()).with_retry_after(retry_after)
}

/// A record with fields that this library does not know.
fn record(identity: &str, write: &str) -> LeaderElectionRecord {
    let json = r#"{"leaseDuration":"15s","acquireTime":"2026-02-02T10:15:30.000001Z","renewTime":"2026-02-02T10:15:40.000000Z",
        "holderIdentity":"","leaderTransitions":7,"strategy":"OldestEmulationVersion",
        "notes":{"free": ["text, ☃ and all", null, 1.0e2]}}"#;
    let mut record = match LeaderElectionRecord::from_json(json.as_bytes(), DEFAULT_MAX_LEASE_DURATION) {
        Ok(record) => record,
        Err(error) => unreachable!("the suite's own record is one: {error}"),
    };
    (record.holder_identity, record.write_id) = (identity.to_owned(), Some(write.to_owned()));
    record
}
