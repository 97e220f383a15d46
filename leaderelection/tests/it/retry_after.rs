//! A lock that is not over a store, and asks clients to send nothing for a while.

use std::future::pending;
use std::time::Duration;

use async_trait::async_trait;
use leaderelection::implement::{Version, VersionedRecord};
use leaderelection::{Elector, LeaderElectionRecord, LockError, MemoryStore, ObjectStoreBasedLock, StoreErrorKind};

use crate::support::{Journal, Op, TestLock, elector};

const ASKED: Duration = Duration::from_secs(9);

/// A lock that refuses to create a record, and asks clients to send nothing for a while.
#[derive(Debug)]
struct Overloaded(TestLock);

#[async_trait]
impl ObjectStoreBasedLock for Overloaded {
    async fn get(&self) -> Result<Option<VersionedRecord>, LockError> {
        self.0.get().await
    }

    async fn create(&self, record: &LeaderElectionRecord) -> Result<Version, LockError> {
        self.0.create(record).await?;
        let error = LockError::new(StoreErrorKind::Rejected, "cannot create lock", self.describe(), "overloaded");
        Err(error.with_retry_after(Some(ASKED)))
    }

    async fn update(&self, record: &LeaderElectionRecord, expected: &Version) -> Result<Version, LockError> {
        self.0.update(record, expected).await
    }

    fn identity(&self) -> &str {
        self.0.identity()
    }

    fn describe(&self) -> String {
        self.0.describe()
    }
}

#[tokio::test(start_paused = true)]
async fn a_foreign_lock_that_asks_to_be_left_alone_is_left_alone() {
    let inner = TestLock::new(&MemoryStore::new(), "node-1");
    let elector = elector(Overloaded(inner.clone()), Journal::default().callbacks());
    let mut running = Box::pin(elector.run(pending()));
    let almost = ASKED - Duration::from_millis(1);
    assert!(tokio::time::timeout(almost, &mut running).await.is_err());
    assert_eq!(inner.take_ops(), [Op::Get, Op::Create]);
    assert!(tokio::time::timeout(ASKED, &mut running).await.is_err());
    assert!(!inner.ops().is_empty());
}
