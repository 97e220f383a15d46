//! The suites on a store that is made of one that can only create.

use std::sync::Mutex;
use std::time::Duration;

use bytes::Bytes;
use leaderelection::implement::{
    ConditionalStore, ConditionalStoreExt, ListedPage, PageToken, Precondition, Version, VersionedObject, async_trait,
};
use leaderelection::{MemoryStore, ObjectLock, StoreError, StoreErrorKind};
use leaderelection_conformance::{
    Check, CheckKind, Effort, ProbeConfig, StoreKind, Verdict, check_lock, check_store, probe, probe_create_only,
};
use leaderelection_sequenced::{Content, CreateOnlyStore, Entry, MemoryCreateOnlyStore, SequencedStore};

#[tokio::test(flavor = "multi_thread")]
async fn a_sequenced_store_conforms() {
    let objects = MemoryCreateOnlyStore::new();
    check_store(SequencedStore::new(objects.clone()), "suite", Effort::default()).await;
    assert!(SequencedStore::new(objects).list("").await.unwrap().is_empty(), "the suite deletes what it wrote");
}

/// Every candidate has a store of its own, as in a process of its own.
#[tokio::test(flavor = "multi_thread")]
async fn a_lock_of_a_sequenced_store_conforms() {
    let objects = MemoryCreateOnlyStore::new();
    let new_lock =
        move |key: &str, identity: &str| ObjectLock::new(SequencedStore::new(objects.clone()), key, identity);
    check_lock(new_lock, Effort::default()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sequenced_store_with_a_history_conforms() {
    check_store(SequencedStore::new(MemoryCreateOnlyStore::new()).keep(40), "suite", Effort::default()).await;
    check_store(SequencedStore::new(MemoryCreateOnlyStore::new()).keep(1), "suite", Effort::default()).await;
}

/// A store that can only create, with a fault.
#[derive(Debug)]
struct Faulty {
    objects: MemoryCreateOnlyStore,
    fault: Breakage,
    /// The keys of the first moment, for listings that are late.
    stale: Mutex<Vec<Entry>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Breakage {
    /// It creates over what exists, as Alibaba OSS and Tencent COS do in buckets with versions.
    IgnoresTheCondition,
    /// A listing shows what the listing before it should have shown.
    ListsLate,
}

#[async_trait]
impl CreateOnlyStore for Faulty {
    async fn read(&self, key: &str) -> Result<Option<Content>, StoreError> {
        self.objects.read(key).await
    }

    async fn create(&self, key: &str, content: Bytes) -> Result<(), StoreError> {
        if self.fault == Breakage::IgnoresTheCondition {
            self.objects.remove(key).await?;
        }
        self.objects.create(key, content).await
    }

    async fn list(&self, prefix: &str, after: Option<&str>) -> Result<Vec<Entry>, StoreError> {
        let now = self.objects.list(prefix, after).await?;
        if self.fault == Breakage::ListsLate {
            return Ok(std::mem::replace(&mut *self.stale.lock().unwrap(), now));
        }
        Ok(now)
    }

    async fn remove(&self, key: &str) -> Result<(), StoreError> {
        self.objects.remove(key).await
    }

    fn describe(&self, key: &str) -> String {
        self.objects.describe(key)
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_that_can_only_create_is_called_one() {
    let report = probe_create_only(MemoryCreateOnlyStore::new(), &ProbeConfig::new()).await;
    assert_eq!((report.verdict(), report.kind()), (Verdict::Fit, StoreKind::CreateOnly), "{report}");
    assert!(report.leftovers().is_empty(), "{report}");
    assert!(report.to_string().contains("kind of store: create only"), "{report}");

    let report = probe(MemoryStore::new(), &ProbeConfig::new()).await;
    assert_eq!((report.verdict(), report.kind()), (Verdict::Fit, StoreKind::Full), "{report}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_whose_creations_or_listings_are_false_is_called_unfit() {
    for (fault, check) in
        [(Breakage::IgnoresTheCondition, CheckKind::CreateAgain), (Breakage::ListsLate, CheckKind::ListedAtOnce)]
    {
        let objects = Faulty { objects: MemoryCreateOnlyStore::new(), fault, stale: Mutex::default() };
        let report = probe_create_only(objects, &ProbeConfig::new()).await;
        assert_eq!((report.verdict(), report.kind()), (Verdict::Unfit, StoreKind::Neither), "{report}");
        assert_eq!(report.decisive().map(Check::kind), Some(check), "{report}");
    }
}

/// A store with an interface for updates that it does not implement, as the S3 interface of some stores.
#[derive(Debug)]
struct RefusesUpdates(MemoryStore);

#[async_trait]
impl ConditionalStore for RefusesUpdates {
    async fn get(&self, key: &str) -> Result<Option<VersionedObject>, StoreError> {
        self.0.get(key).await
    }

    async fn put(&self, key: &str, body: Bytes, precondition: &Precondition) -> Result<Version, StoreError> {
        if let Precondition::Matches(_) = precondition {
            return Err(StoreError::new(StoreErrorKind::Fatal, "501 Not Implemented"));
        }
        self.0.put(key, body, precondition).await
    }

    async fn delete(&self, key: &str, expected: Option<&Version>) -> Result<(), StoreError> {
        self.0.delete(key, expected).await
    }

    async fn list_page(
        &self,
        prefix: &str,
        token: Option<&PageToken>,
        limit: Option<u16>,
    ) -> Result<ListedPage, StoreError> {
        self.0.list_page(prefix, token, limit).await
    }

    fn describe(&self, key: &str) -> String {
        self.0.describe(key)
    }

    fn min_write_interval(&self) -> Option<Duration> {
        self.0.min_write_interval()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_that_refuses_updates_is_told_how_to_elect_all_the_same() {
    let report = probe(RefusesUpdates(MemoryStore::new()), &ProbeConfig::new()).await;
    assert_eq!((report.verdict(), report.kind()), (Verdict::Inconclusive, StoreKind::CreateOnly), "{report}");
    assert!(report.to_string().contains("SequencedStore"), "{report}");
}
