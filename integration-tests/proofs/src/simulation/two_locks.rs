//! The lock of a service that uses several locks as one, as one candidate reaches it.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use leaderelection::election::Failure;
use leaderelection::implement::{Version, VersionedRecord};
use leaderelection::{LeaderElectionRecord, LockError, Majority, ObjectLock, ObjectStoreBasedLock, StoreErrorKind};

use super::names::{Call, Calls, Client};
use super::store::{Connection, Part};
use super::world::World;
use crate::phase::Phase;

/// The lock of a candidate: one lock, or several as one.
#[derive(Debug)]
pub(super) struct TwoLocks {
    lock: Box<dyn ObjectStoreBasedLock>,
    /// The way of the calls, which the oracle sees.
    way: Connection,
    world: Arc<World>,
    calls: Arc<Mutex<Calls>>,
}

impl TwoLocks {
    pub(super) fn new(world: &Arc<World>, (locks, client): (Phase, Client), identity: &str) -> Self {
        let calls = Arc::default();
        let lock = |part: &usize| {
            let part = Part { part: *part, calls: Arc::clone(&calls) };
            ObjectLock::new(Connection::to(part, world, client), "lock", identity)
        };
        let lock: Box<dyn ObjectStoreBasedLock> = match locks.parts {
            [part] => Box::new(lock(part)),
            parts => Box::new(
                Majority::of(parts.iter().map(lock)).and_then(|all| all.needing(locks.needs)).expect("a majority"),
            ),
        };
        Self { lock, way: Connection::new(world, client), world: Arc::clone(world), calls }
    }

    async fn call<T>(
        &self,
        written: Option<(&LeaderElectionRecord, bool)>,
        call: impl Future<Output = Result<T, LockError>>,
        holder: impl FnOnce(&T) -> String,
    ) -> Result<T, LockError> {
        let id = self.way.begins(written);
        self.calls.lock().unwrap().begin(id, self.world.now(), written.map(|(record, _)| record));
        let answer = call.await;
        let Call { was_deceived, shown, .. } = self.calls.lock().unwrap().now;
        let refused = answer.as_ref().err().map(Failure::from);
        let is_plain = refused.is_none_or(|refused| refused.kind != StoreErrorKind::Ambiguous);
        self.way.answered_to(id, refused, !was_deceived && is_plain);
        let is_read = written.is_none();
        let holder = answer.as_ref().map(holder).map_err(Failure::from);
        let shown = is_read.then_some(shown);
        self.way.ends(is_read, holder.as_deref().map(|holder| (shown, holder)).map_err(|refusal| *refusal));
        answer
    }
}

#[async_trait]
impl ObjectStoreBasedLock for TwoLocks {
    async fn get(&self) -> Result<Option<VersionedRecord>, LockError> {
        let holder = |found: &Option<VersionedRecord>| {
            found.as_ref().map_or_else(String::new, |found| found.record.holder_identity.clone())
        };
        self.call(None, self.lock.get(), holder).await
    }

    async fn create(&self, record: &LeaderElectionRecord) -> Result<Version, LockError> {
        self.call(Some((record, true)), self.lock.create(record), |_| record.holder_identity.clone()).await
    }

    async fn update(&self, record: &LeaderElectionRecord, expected: &Version) -> Result<Version, LockError> {
        self.call(Some((record, false)), self.lock.update(record, expected), |_| record.holder_identity.clone()).await
    }

    fn identity(&self) -> &str {
        self.lock.identity()
    }

    fn describe(&self) -> String {
        self.lock.describe()
    }

    fn max_lease_duration(&self) -> Duration {
        self.lock.max_lease_duration()
    }
}
