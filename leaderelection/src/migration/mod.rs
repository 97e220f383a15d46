//! One lock made of two, for a move from one lock to another without a gap.

pub mod view;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;

use crate::lock::action::UPDATE;
use crate::lock::record::LeaderElectionRecord;
use crate::lock::{LockError, ObjectStoreBasedLock, VersionedRecord};
use crate::store::{StoreErrorKind, Version};
use crate::timings::config_error::ConfigError;

use view::{Half, Notice, Versions, View, order};

/// Two locks that a candidate holds together: the lock of the second of three rollouts that move a service from an old
/// lock to a new one without a gap.
///
/// The replicas use the old lock only, then both, then the new lock only. A `Migration` is a lock like any other, so an
/// elector on it has one [`Leadership`](crate::Leadership), with one fencing token, and its callbacks are the same. It
/// keeps the rules M1 to M9 of the [protocol](crate::protocol):
///
/// - A candidate takes the old lock first and then the new one, and leads when both show its write. It releases them in
///   the opposite order, after its work has ended.
/// - The fencing token is larger than those in both locks, and is written into both. So whoever leads later on one of
///   them alone has a larger token.
/// - A crash costs one lease and not two, because both leases run out at the same time.
/// - While somebody leads on one of the locks alone, nobody leads on both. The log names that leader.
///
/// Replicas that use only the old lock and replicas that use only the new one must never run together: neither of them
/// reads what the other writes. The log reports an error if it sees two leaders.
///
/// A leader makes two writes where it makes one on a single lock, and a candidate two reads. The elector's request timeout
/// is for both together. A `Migration` belongs to one elector. An operator's interventions of
/// [`admin`](crate::admin) are for each of the two locks by itself, and no [store
/// check](crate::LeaderElectionConfigBuilder::store_check) is possible.
///
/// ```
/// use leaderelection::{LeaderCallbacks, LeaderElectionConfig, MemoryLock, MemoryStore, Migration, unique_identity};
///
/// let identity = unique_identity();
/// let old = MemoryLock::new(MemoryStore::new(), "locks/old", &identity);
/// let new = MemoryLock::new(MemoryStore::new(), "locks/new", &identity);
/// let lock = Migration::new(old, new)?;
/// let config = LeaderElectionConfig::builder(lock, LeaderCallbacks::new()).release_on_cancel(true).build()?;
/// # Ok::<(), leaderelection::ConfigError>(())
/// ```
#[derive(Debug)]
pub struct Migration {
    old: Arc<dyn ObjectStoreBasedLock>,
    new: Arc<dyn ObjectStoreBasedLock>,
    view: Mutex<View>,
}

impl Migration {
    /// Joins the lock that is in use and the lock that is to be used. To go back, keep the order: `old` is always the lock
    /// that is older.
    ///
    /// # Errors
    ///
    /// The locks have different identities.
    pub fn new(old: impl ObjectStoreBasedLock, new: impl ObjectStoreBasedLock) -> Result<Self, ConfigError> {
        if old.identity() != new.identity() {
            let problem = format!(
                "({:?} for the old lock, {:?} for the new one) must be the same for both locks",
                old.identity(),
                new.identity()
            );
            return Err(ConfigError::new("identity", problem));
        }
        let view = Mutex::new(View::new(new.identity()));
        Ok(Self { old: Arc::new(old), new: Arc::new(new), view })
    }

    fn lock(&self, half: Half) -> &dyn ObjectStoreBasedLock {
        match half {
            Half::Old => &*self.old,
            Half::New => &*self.new,
        }
    }

    fn view(&self) -> MutexGuard<'_, View> {
        // The view is whole after every step of it.
        self.view.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes the record into both locks, one after the other (M2 and M6).
    async fn write(&self, record: &LeaderElectionRecord, expected: Versions) -> Result<Version, LockError> {
        self.view().writes(record);
        let [first, second] = order(record);
        let mut written = Versions::default();
        *written.of(first) = Some(self.put(first, record, &expected).await?);
        match self.put(second, record, &expected).await {
            Ok(version) => {
                *written.of(second) = Some(version);
                Ok(self.view().wrote(record, written))
            }
            Err(error) => {
                self.give_back(record, first, &written, error.kind()).await;
                Err(self.half_written(error))
            }
        }
    }

    async fn put(&self, half: Half, record: &LeaderElectionRecord, expected: &Versions) -> Result<Version, LockError> {
        match expected.get(half) {
            None => self.lock(half).create(record).await,
            Some(version) => self.lock(half).update(record, version).await,
        }
    }

    /// Releases the first lock after the write to the second lock has failed for good (M7).
    async fn give_back(&self, record: &LeaderElectionRecord, half: Half, written: &Versions, kind: StoreErrorKind) {
        let Some(version) = written.get(half) else { return };
        let Some(returned) = self.view().gives_back(record, kind) else { return };
        if let Err(error) = self.lock(half).update(&returned, version).await {
            let (lock, error) = (self.lock(half).describe(), error.in_full());
            tracing::debug!(lock, error, "could not give back the half of a write");
        }
    }

    /// Returns the error of a write whose first half has landed (M7).
    fn half_written(&self, error: LockError) -> LockError {
        match error.kind() {
            StoreErrorKind::Conflict | StoreErrorKind::Fatal => error,
            _ => {
                let retry_after = error.retry_after();
                LockError::new(StoreErrorKind::Ambiguous, UPDATE, self.describe(), error).with_retry_after(retry_after)
            }
        }
    }

    fn tell(&self, notice: &Notice) {
        let (old_lock, new_lock) = (self.old.describe(), self.new.describe());
        match notice {
            Notice::OldAlone { leader } => tracing::info!(
                leader,
                old_lock,
                new_lock,
                "a candidate of the old lock leads, and does not hold the new lock; waiting for it"
            ),
            Notice::NewAlone { leader } => tracing::warn!(
                leader,
                old_lock,
                new_lock,
                "the new lock is led by a candidate that does not hold the old lock; waiting for it, because candidates of \
                 the old lock alone must be gone by now"
            ),
            Notice::TwoLeaders { old, new } => tracing::error!(
                old_leader = old,
                new_leader = new,
                old_lock,
                new_lock,
                "the old lock and the new lock are led by two candidates at the same time: stop the replicas that use only \
                 one of the locks, the old or the new"
            ),
        }
    }
}

#[async_trait]
impl ObjectStoreBasedLock for Migration {
    async fn get(&self) -> Result<Option<VersionedRecord>, LockError> {
        let (old, new) = tokio::join!(self.old.get(), self.new.get());
        let (old, new) = match (old, new) {
            (Ok(old), Ok(new)) => (old, new),
            // An object that is no record ends a term. No other error of a read does.
            (Err(_), Err(error)) if error.kind() == StoreErrorKind::Unreadable => return Err(error),
            (Err(error), _) | (_, Err(error)) => return Err(error),
        };
        let (shown, notice) = self.view().show(old, new);
        if let Some(notice) = notice {
            self.tell(&notice);
        }
        Ok(shown)
    }

    async fn create(&self, record: &LeaderElectionRecord) -> Result<Version, LockError> {
        self.write(record, Versions::default()).await
    }

    async fn update(&self, record: &LeaderElectionRecord, expected: &Version) -> Result<Version, LockError> {
        let Some(expected) = Versions::read(expected) else {
            let problem = format!("{expected} is no version of two locks");
            return Err(LockError::new(StoreErrorKind::Conflict, UPDATE, self.describe(), problem));
        };
        self.write(record, expected).await
    }

    fn identity(&self) -> &str {
        self.new.identity()
    }

    fn describe(&self) -> String {
        format!("{} and {}", self.old.describe(), self.new.describe())
    }

    fn max_lease_duration(&self) -> Duration {
        self.old.max_lease_duration().min(self.new.max_lease_duration())
    }
}
