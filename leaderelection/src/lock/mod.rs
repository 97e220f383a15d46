//! The lock: one record, read and written by compare-and-swap.

pub(crate) mod advertised;
pub(crate) mod bounded;
pub(crate) mod identity;
pub(crate) mod incompatible_record;
pub(crate) mod job;
pub(crate) mod memory;
pub(crate) mod object_lock;
pub(crate) mod record;
pub(crate) mod refused;
pub(crate) mod versioned;

use std::error::Error as StdError;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;

use crate::store::{ConditionalStore, StoreError, StoreErrorKind, Version};
use crate::util::causes::with_causes;

pub use bounded::{Bounded, TimeLimit};
pub use identity::{MAX_IDENTITY_BYTES, unique_identity};
pub use incompatible_record::IncompatibleRecord;
pub use job::{JobId, JobOutcome, REMEMBERED_JOBS};
pub use memory::{MemoryLock, MemoryStore};
pub use object_lock::ObjectLock;
pub use record::{
    DEFAULT_MAX_LEASE_DURATION, HolderRank, LeaderElectionRecord, LockParts, MAX_LEADER_TRANSITIONS, PeerAddress,
    RecordError, UnknownFields,
};
pub(crate) use versioned::VersionedRecord;

/// The lock for which candidates compete: one [`LeaderElectionRecord`] in an object store.
///
/// This trait corresponds to client-go's `resourcelock.Interface`, with one difference: the lock is stateless.
/// The caller passes the version that an update replaces, so no call depends on an earlier call.
///
/// [`ObjectLock`] implements this trait over any [`ConditionalStore`]. The contract of that trait applies here too: one
/// attempt per call, honest error kinds, and a dropped call may still take effect.
#[async_trait]
pub trait ObjectStoreBasedLock: fmt::Debug + Send + Sync + 'static {
    /// Reads the record and its version from one response. Returns `None` if no object exists.
    ///
    /// # Errors
    ///
    /// [`StoreErrorKind::Unreadable`] if the object is not a record.
    async fn get(&self) -> Result<Option<VersionedRecord>, LockError>;

    /// Writes the first record. Fails with [`StoreErrorKind::Conflict`] if an object exists.
    ///
    /// # Errors
    ///
    /// Any [`StoreErrorKind`] except [`Unreadable`](StoreErrorKind::Unreadable).
    async fn create(&self, record: &LeaderElectionRecord) -> Result<Version, LockError>;

    /// Replaces the record of version `expected`. Fails with [`StoreErrorKind::Conflict`] if the object has another
    /// version or does not exist.
    ///
    /// # Errors
    ///
    /// Any [`StoreErrorKind`] except [`Unreadable`](StoreErrorKind::Unreadable).
    async fn update(&self, record: &LeaderElectionRecord, expected: &Version) -> Result<Version, LockError>;

    /// The name that this candidate writes into `holderIdentity`. Every candidate needs a different name.
    fn identity(&self) -> &str;

    /// The name of the lock for people, such as `s3://bucket/key`. The name contains no secrets.
    fn describe(&self) -> String;

    /// The longest lease duration that this lock accepts when it reads a record. A configuration with a longer
    /// lease is refused.
    fn max_lease_duration(&self) -> Duration {
        DEFAULT_MAX_LEASE_DURATION
    }

    /// The store that holds the lock, and the key of the lock's object in that store. The default, `None`,
    /// means that the lock is not one object in a store.
    /// [`store_check`](crate::LeaderElectionConfigBuilder::store_check) needs this object.
    fn object(&self) -> Option<(Arc<dyn ConditionalStore>, &str)> {
        None
    }

    /// The stores and keys of all objects that the lock is made of. The default is [`object`](Self::object), if there
    /// is one. [`keep_history`](crate::LeaderElectionConfigBuilder::keep_history) keeps a history beside each of them.
    fn objects(&self) -> Vec<(Arc<dyn ConditionalStore>, String)> {
        self.object().map(|(store, key)| (store, key.to_owned())).into_iter().collect()
    }

    /// The number of parts that the leader does not write until its term ends, because they have larger tokens.
    /// The default, `None`, means that the lock has no parts. The metric is `leader_election_parts_left_out`.
    fn parts_left_out(&self) -> Option<usize> {
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

    fn object(&self) -> Option<(Arc<dyn ConditionalStore>, &str)> {
        (**self).object()
    }

    fn objects(&self) -> Vec<(Arc<dyn ConditionalStore>, String)> {
        (**self).objects()
    }

    fn parts_left_out(&self) -> Option<usize> {
        (**self).parts_left_out()
    }
}

/// What failed: the beginning of the message of a `LockError`.
pub(crate) mod action {
    pub(crate) const READ: &str = "cannot read lock";
    pub(crate) const CREATE: &str = "cannot create lock";
    pub(crate) const UPDATE: &str = "cannot update lock";
}

/// The error of a lock that could not be read or written. The message names the lock, and
/// [`source`](StdError::source) returns the cause. `Debug` prints the [full text](Self::in_full) and the kind.
#[derive(thiserror::Error)]
#[error("{action} {lock}")]
pub struct LockError {
    kind: StoreErrorKind,
    action: &'static str,
    lock: String,
    retry_after: Option<Duration>,
    #[source]
    source: Box<dyn StdError + Send + Sync>,
}

impl fmt::Debug for LockError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({:?})", self.in_full(), self.kind)
    }
}

impl LockError {
    /// Creates an error of `kind` about `lock`. `action` names the failed action, such as `"cannot read lock"`.
    pub fn new(
        kind: StoreErrorKind,
        action: &'static str,
        lock: impl Into<String>,
        source: impl Into<Box<dyn StdError + Send + Sync>>,
    ) -> Self {
        Self { kind, action, lock: lock.into(), retry_after: None, source: source.into() }
    }

    pub(crate) fn from_store(action: &'static str, lock: String, error: StoreError) -> Self {
        let retry_after = error.retry_after();
        Self::new(error.kind(), action, lock, error).with_retry_after(retry_after)
    }

    /// Adds the time for which the store asked clients to send nothing. Whatever the error, a candidate waits that
    /// long, but at most one lease duration. A leader may try to renew once during that time, just before its term ends
    /// (rule 6).
    #[must_use]
    pub fn with_retry_after(mut self, retry_after: Option<Duration>) -> Self {
        self.retry_after = retry_after;
        self
    }

    /// The error and its causes on one line. If the cause is a [`StoreError`], which names the lock, only the
    /// cause is returned.
    #[must_use]
    pub fn in_full(&self) -> String {
        self.source.downcast_ref::<StoreError>().map_or_else(|| with_causes(self), |error| with_causes(error))
    }

    /// What is known about the effect of the failed call.
    #[must_use]
    pub fn kind(&self) -> StoreErrorKind {
        self.kind
    }

    /// The time for which the store asked clients to send nothing.
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        self.retry_after
    }
}
