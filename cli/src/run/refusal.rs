//! What the lock refuses to the elector, which goes on trying: whether to wait for better times is for `run` to say.

use async_trait::async_trait;
use leaderelection::{
    ConditionalStore, LeaderElectionRecord, LockError, ObjectStoreBasedLock, StoreErrorKind, Version, VersionedRecord,
    with_causes,
};
use tokio::sync::watch;

use crate::exit::{Exit, Failure, exit_of};
use crate::lock::Lock;

/// A write that was refused for good, though nobody else held the lock: or it would not have been tried.
#[derive(Clone, Debug)]
struct Refusal {
    exit: Exit,
    message: String,
    /// What it was to replace.
    expected: Option<Version>,
}

/// Tells of refusals.
#[derive(Clone, Debug)]
pub(super) struct Refusals(watch::Receiver<Option<Refusal>>);

impl Refusals {
    /// Why the lock cannot be had, if its last write was refused and nobody has written since.
    pub(super) fn last(&self) -> Option<Failure> {
        self.0.borrow().as_ref().map(|refusal| Failure::new(refusal.exit, refusal.message.clone()))
    }

    /// Completes with the next one. Cancellation safe.
    pub(super) async fn next(&mut self) -> Failure {
        while self.0.changed().await.is_ok() {
            if let Some(failure) = self.last() {
                return failure;
            }
        }
        std::future::pending().await
    }
}

/// A lock that remembers what was refused.
#[derive(Debug)]
pub(super) struct WatchedLock {
    lock: Lock,
    refusal: watch::Sender<Option<Refusal>>,
}

impl WatchedLock {
    pub(super) fn new(lock: Lock) -> (Self, Refusals) {
        let (refusal, refusals) = watch::channel(None);
        (Self { lock, refusal }, Refusals(refusals))
    }

    fn written(&self, result: Result<Version, LockError>, expected: Option<&Version>) -> Result<Version, LockError> {
        match &result {
            Err(error) if error.kind() == StoreErrorKind::Fatal => {
                let (exit, message) = (exit_of(error.kind()), with_causes(error));
                self.refusal.send_replace(Some(Refusal { exit, message, expected: expected.cloned() }));
            }
            Err(error) if error.kind() != StoreErrorKind::Conflict => {}
            _ => drop(self.refusal.send_replace(None)),
        }
        result
    }
}

#[async_trait]
impl ObjectStoreBasedLock for WatchedLock {
    async fn get(&self) -> Result<Option<VersionedRecord>, LockError> {
        let found = self.lock.get().await?;
        let version = found.as_ref().map(|found| &found.version);
        self.refusal.send_if_modified(|refusal| {
            // Somebody else can write.
            refusal.take_if(|refusal| refusal.expected.as_ref() != version).is_some()
        });
        Ok(found)
    }

    async fn create(&self, record: &LeaderElectionRecord) -> Result<Version, LockError> {
        self.written(self.lock.create(record).await, None)
    }

    async fn update(&self, record: &LeaderElectionRecord, expected: &Version) -> Result<Version, LockError> {
        self.written(self.lock.update(record, expected).await, Some(expected))
    }

    fn identity(&self) -> &str {
        self.lock.identity()
    }

    fn describe(&self) -> String {
        self.lock.describe()
    }

    fn max_lease_duration(&self) -> std::time::Duration {
        self.lock.max_lease_duration()
    }

    fn object(&self) -> Option<(&dyn ConditionalStore, &str)> {
        self.lock.object()
    }
}
