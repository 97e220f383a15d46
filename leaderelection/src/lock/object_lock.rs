//! A lock in a store: one object, changed by compare-and-swap.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;

use crate::lock::action::{CREATE, READ, UPDATE};
use crate::lock::identity::unique_identity;
use crate::lock::record::{DEFAULT_MAX_LEASE_DURATION, LeaderElectionRecord, parse_of_session};
use crate::lock::{LockError, ObjectStoreBasedLock, VersionedRecord};
use crate::store::{ConditionalStore, FromEnv, Precondition, StoreError, StoreErrorKind, Version};

/// A lock that is one object in a [`ConditionalStore`].
///
/// ```
/// use leaderelection::{MemoryStore, ObjectLock, ObjectStoreBasedLock, unique_identity};
///
/// let lock = ObjectLock::new(MemoryStore::new(), "locks/scheduler", unique_identity());
/// assert_eq!(lock.describe(), "memory:locks/scheduler");
/// ```
#[derive(Clone, Debug)]
pub struct ObjectLock<S> {
    store: Arc<S>,
    key: String,
    identity: String,
    max_lease_duration: Duration,
    /// `true` if a record that names a session is accepted, too.
    reads_every_record: bool,
}

impl<S: FromEnv> ObjectLock<S> {
    /// Opens the lock at `key` in `place`: the name of a bucket or a container, or the path of a directory. Everything
    /// else comes from the environment. The identity is [unique](unique_identity), unless the caller
    /// [sets another one](Self::with_identity).
    ///
    /// The documentation of `S3Lock`, `GcsLock`, `AzureLock` and `FileLock` in the crate `leaderelection-backends`
    /// names the variables. Nothing is sent to the store yet, so a wrong credential shows only at the first request.
    ///
    /// Cancellation safe: a future that is dropped leaves nothing behind.
    ///
    /// # Errors
    ///
    /// [`StoreErrorKind::Fatal`] if `place` or a setting of the environment is invalid.
    pub async fn from_env(place: &str, key: impl Into<String>) -> Result<Self, StoreError> {
        Ok(Self::new(S::from_env(place).await?, key, unique_identity()))
    }
}

impl<S: ConditionalStore> ObjectLock<S> {
    /// Creates the lock at `key` for the candidate `identity`.
    ///
    /// Every candidate needs an identity of its own: see [`unique_identity`](crate::unique_identity).
    #[must_use]
    pub fn new(store: S, key: impl Into<String>, identity: impl Into<String>) -> Self {
        Self {
            store: Arc::new(store),
            key: key.into(),
            identity: identity.into(),
            max_lease_duration: DEFAULT_MAX_LEASE_DURATION,
            reads_every_record: false,
        }
    }

    /// Sets the identity of this candidate, which no other candidate may have.
    #[must_use]
    pub fn with_identity(mut self, identity: impl Into<String>) -> Self {
        self.identity = identity.into();
        self
    }

    /// Sets the longest lease that may be configured, and that is accepted when a record is read.
    ///
    /// The default is one day. Without this limit, a lease of several years in one faulty configuration would
    /// block every election.
    #[must_use]
    pub fn with_max_lease_duration(mut self, max_lease_duration: Duration) -> Self {
        self.max_lease_duration = max_lease_duration;
        self
    }

    /// The store that holds the lock.
    #[must_use]
    pub fn store(&self) -> &S {
        &self.store
    }

    /// The object's key in the store.
    #[must_use]
    pub fn key(&self) -> &str {
        &self.key
    }

    /// Makes this lock accept the record of a lock that a session holds, too. An elector must not use the result: such
    /// a record has no lease, and would look expired.
    #[cfg(feature = "sessions")]
    pub(crate) fn of_any_record(self) -> Self {
        Self { reads_every_record: true, ..self }
    }

    async fn put(
        &self,
        action: &'static str,
        record: &LeaderElectionRecord,
        precondition: &Precondition,
    ) -> Result<Version, LockError> {
        // If called through the `Arc`, the call would be boxed twice.
        (*self.store)
            .put(&self.key, record.to_json().into(), precondition)
            .await
            .map_err(|error| LockError::from_store(action, self.describe(), error))
    }
}

#[async_trait]
impl<S: ConditionalStore> ObjectStoreBasedLock for ObjectLock<S> {
    async fn get(&self) -> Result<Option<VersionedRecord>, LockError> {
        let object =
            (*self.store).get(&self.key).await.map_err(|error| LockError::from_store(READ, self.describe(), error))?;
        let Some(object) = object else { return Ok(None) };
        let parse = if self.reads_every_record { parse_of_session } else { LeaderElectionRecord::from_json };
        let record = parse(&object.body, self.max_lease_duration)
            .map_err(|error| LockError::new(StoreErrorKind::Unreadable, READ, self.describe(), error))?;
        Ok(Some(VersionedRecord { record, version: object.version, age: object.age }))
    }

    async fn create(&self, record: &LeaderElectionRecord) -> Result<Version, LockError> {
        self.put(CREATE, record, &Precondition::Absent).await
    }

    async fn update(&self, record: &LeaderElectionRecord, expected: &Version) -> Result<Version, LockError> {
        self.put(UPDATE, record, &Precondition::Matches(expected.clone())).await
    }

    fn identity(&self) -> &str {
        &self.identity
    }

    fn describe(&self) -> String {
        self.store.describe(&self.key)
    }

    fn max_lease_duration(&self) -> Duration {
        self.max_lease_duration
    }

    fn object(&self) -> Option<(Arc<dyn ConditionalStore>, &str)> {
        Some((self.store.clone(), &self.key))
    }
}
