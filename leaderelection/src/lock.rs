//! The lock: one record, read and written by compare-and-swap.

use std::error::Error as StdError;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;

use crate::record::{DEFAULT_MAX_LEASE_DURATION, LeaderElectionRecord};
use crate::store::{ConditionalStore, StoreError, StoreErrorKind, Version};

/// Where candidates compete: one [`LeaderElectionRecord`] in an object store.
///
/// client-go's `resourcelock.Interface`, with one difference: the lock is stateless. The version that
/// an update replaces is passed in, so nothing depends on which call came before.
///
/// [`ObjectLock`](crate::ObjectLock) implements it over any [`ConditionalStore`](crate::ConditionalStore),
/// whose contract applies here too: one attempt per call, honest error kinds, and a dropped call may
/// still take effect.
#[async_trait]
pub trait ObjectStoreBasedLock: fmt::Debug + Send + Sync + 'static {
    /// Reads the record and its version from one response; `None` if there is no object.
    ///
    /// # Errors
    ///
    /// [`StoreErrorKind::Unreadable`] if the object is not a record.
    async fn get(&self) -> Result<Option<VersionedRecord>, LockError>;

    /// Writes the first record; fails with [`StoreErrorKind::Conflict`] if there is an object.
    ///
    /// # Errors
    ///
    /// Any [`StoreErrorKind`] but [`Unreadable`](StoreErrorKind::Unreadable).
    async fn create(&self, record: &LeaderElectionRecord) -> Result<Version, LockError>;

    /// Replaces the record; fails with [`StoreErrorKind::Conflict`] if its version is not `expected`.
    ///
    /// # Errors
    ///
    /// Any [`StoreErrorKind`] but [`Unreadable`](StoreErrorKind::Unreadable).
    async fn update(&self, record: &LeaderElectionRecord, expected: &Version) -> Result<Version, LockError>;

    /// The name this candidate writes into `holderIdentity`. Unique among the candidates.
    fn identity(&self) -> &str;

    /// What people call the lock, such as `s3://bucket/key`. Holds no secrets.
    fn describe(&self) -> String;

    /// The longest lease that this lock believes when it reads a record. A configuration with a longer
    /// one is refused.
    fn max_lease_duration(&self) -> Duration {
        DEFAULT_MAX_LEASE_DURATION
    }

    /// The store that holds the lock and its object's key there; `None`, the default, if it is not one
    /// object in a store. For [`require_probe`](crate::LeaderElectionConfigBuilder::require_probe).
    fn object(&self) -> Option<(&dyn ConditionalStore, &str)> {
        None
    }
}

#[async_trait]
impl<L: ObjectStoreBasedLock + ?Sized> ObjectStoreBasedLock for Arc<L> {
    async fn get(&self) -> Result<Option<VersionedRecord>, LockError> {
        (**self).get().await
    }

    async fn create(&self, record: &LeaderElectionRecord) -> Result<Version, LockError> {
        (**self).create(record).await
    }

    async fn update(&self, record: &LeaderElectionRecord, expected: &Version) -> Result<Version, LockError> {
        (**self).update(record, expected).await
    }

    fn identity(&self) -> &str {
        (**self).identity()
    }

    fn describe(&self) -> String {
        (**self).describe()
    }

    fn max_lease_duration(&self) -> Duration {
        (**self).max_lease_duration()
    }

    fn object(&self) -> Option<(&dyn ConditionalStore, &str)> {
        (**self).object()
    }
}

/// A record, and the version it had in the same response.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct VersionedRecord {
    /// What the object says.
    pub record: LeaderElectionRecord,
    /// The version of exactly this record.
    pub version: Version,
}

impl VersionedRecord {
    /// A record and its version, both from the same response.
    #[must_use]
    pub fn new(record: LeaderElectionRecord, version: Version) -> Self {
        Self { record, version }
    }
}

/// Why a lock could not be read or written. Names the lock; the cause is its
/// [`source`](StdError::source).
#[derive(Debug, thiserror::Error)]
#[error("{action} {lock}")]
pub struct LockError {
    kind: StoreErrorKind,
    action: &'static str,
    lock: String,
    retry_after: Option<Duration>,
    #[source]
    source: Box<dyn StdError + Send + Sync>,
}

impl LockError {
    /// An error of `kind` about `lock`. `action` says what failed, such as `"cannot read lock"`.
    pub fn new(
        kind: StoreErrorKind,
        action: &'static str,
        lock: impl Into<String>,
        source: impl Into<Box<dyn StdError + Send + Sync>>,
    ) -> Self {
        Self { kind, action, lock: lock.into(), retry_after: None, source: source.into() }
    }

    pub(crate) fn from_store(action: &'static str, lock: String, error: StoreError) -> Self {
        Self { kind: error.kind(), action, lock, retry_after: error.retry_after(), source: error.into() }
    }

    /// What is known about the effect.
    #[must_use]
    pub fn kind(&self) -> StoreErrorKind {
        self.kind
    }

    /// How long the store asked to be left alone.
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        self.retry_after
    }
}
