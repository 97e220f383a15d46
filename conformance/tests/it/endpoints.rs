//! A bucket behind two endpoints, each of which serializes its own writes and knows nothing of the other's.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use leaderelection::clock::TokioClock;
use leaderelection::implement::{
    ConditionalStore, ConditionalStoreExt, ListedPage, PageToken, Precondition, Version, VersionedObject,
};
use leaderelection::{MemoryStore, StoreError, StoreErrorKind};
use leaderelection_conformance::{CheckKind, Endpoints, Outcome, ProbeConfig, Verdict, measure, probe};
use tokio::sync::Mutex;
use tokio::task::yield_now;

/// One endpoint: its writes are one after the other, and the writes of other endpoints come in between.
#[derive(Debug)]
struct Endpoint {
    bucket: MemoryStore,
    turn: Mutex<()>,
}

impl Endpoint {
    fn of(bucket: &MemoryStore) -> Arc<Self> {
        Arc::new(Self { bucket: bucket.clone(), turn: Mutex::default() })
    }

    async fn version(&self, key: &str) -> Result<Option<Version>, StoreError> {
        Ok(self.bucket.get(key).await?.map(|object| object.version))
    }
}

#[async_trait]
impl ConditionalStore for Endpoint {
    async fn get(&self, key: &str) -> Result<Option<VersionedObject>, StoreError> {
        self.bucket.get(key).await
    }

    async fn put(&self, key: &str, body: Bytes, precondition: &Precondition) -> Result<Version, StoreError> {
        let _turn = self.turn.lock().await;
        let holds = match precondition {
            Precondition::Absent => self.version(key).await?.is_none(),
            Precondition::Matches(expected) => self.version(key).await?.as_ref() == Some(expected),
        };
        if !holds {
            return Err(StoreError::new(StoreErrorKind::Conflict, format!("{key}: the condition does not hold")));
        }
        yield_now().await;
        let now = self.version(key).await?.map_or(Precondition::Absent, Precondition::Matches);
        self.bucket.put(key, body, &now).await
    }

    async fn delete(&self, key: &str, expected: Option<&Version>) -> Result<(), StoreError> {
        self.bucket.delete(key, expected).await
    }

    async fn list_page(
        &self,
        prefix: &str,
        token: Option<&PageToken>,
        limit: Option<u16>,
    ) -> Result<ListedPage, StoreError> {
        self.bucket.list_page(prefix, token, limit).await
    }

    fn describe(&self, key: &str) -> String {
        self.bucket.describe(key)
    }

    fn min_write_interval(&self) -> Option<Duration> {
        self.bucket.min_write_interval()
    }
}

fn config() -> ProbeConfig {
    ProbeConfig::new().clock(TokioClock::new())
}

#[tokio::test(start_paused = true)]
async fn two_winners_show_only_at_two_endpoints() {
    let bucket = MemoryStore::new();
    let report = probe(Endpoint::of(&bucket), &config()).await;
    assert_eq!(report.verdict(), Verdict::Fit, "{report}");
    let report = probe(Endpoints::new(Endpoint::of(&bucket), vec![Endpoint::of(&bucket)]), &config()).await;
    assert_eq!(report.verdict(), Verdict::Unfit, "{report}");
    let failed = report.checks().iter().find(|check| check.outcome() == Outcome::Failed).unwrap();
    assert_eq!(failed.kind(), CheckKind::RacingCreators, "{report}");
}

#[tokio::test(start_paused = true)]
async fn a_measurement_writes_and_reads_and_leaves_nothing_behind() {
    let store = MemoryStore::new();
    let measured = measure(store.clone(), &config(), 100).await.unwrap();
    assert_eq!((measured.latencies.count(), measured.failed), (100, 0));
    assert_eq!(measured.leftovers, Vec::<String>::new());
    assert!(store.list("").await.unwrap().is_empty());
}
