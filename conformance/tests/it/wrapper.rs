//! A store around another one, which forwards the required methods and nothing else.

use std::time::Duration;

use bytes::Bytes;
use leaderelection::implement::{
    ConditionalStore, ConditionalStoreExt, ListedObject, ListedPage, PageToken, Precondition, Version, VersionedObject,
    async_trait,
};
use leaderelection::{MemoryStore, StoreError, StoreErrorKind};
use leaderelection_conformance::{Effort, ProbeConfig, Verdict, check_store, probe};

use crate::broken_store::{Breakage, Broken};

#[derive(Clone, Debug)]
struct Wrapper<S>(S);

#[async_trait]
impl<S: ConditionalStore> ConditionalStore for Wrapper<S> {
    async fn get(&self, key: &str) -> Result<Option<VersionedObject>, StoreError> {
        self.0.get(key).await
    }

    async fn put(&self, key: &str, body: Bytes, precondition: &Precondition) -> Result<Version, StoreError> {
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
async fn a_wrapper_of_the_required_methods_conforms_and_passes_the_probe() {
    let store = Wrapper(MemoryStore::new());
    check_store(store.clone(), "suite", Effort::default()).await;
    assert_eq!(probe(store, &ProbeConfig::default()).await.verdict(), Verdict::Fit);
}

#[tokio::test]
async fn a_wrapper_writes_and_deletes_on_the_same_conditions() {
    let store = Wrapper(MemoryStore::new());
    let first = store.put("key", "one".into(), &Precondition::Absent).await.unwrap();
    let again = store.put("key", "two".into(), &Precondition::Absent).await.unwrap_err();
    assert_eq!(again.kind(), StoreErrorKind::Conflict);
    let second = store.put("key", "two".into(), &Precondition::Matches(first.clone())).await.unwrap();
    assert_eq!(store.delete("key", Some(&first)).await.unwrap_err().kind(), StoreErrorKind::Conflict);
    assert_eq!(store.0.get("key").await.unwrap().map(|found| found.version), Some(second));
    store.discard("key").await.unwrap();
    store.discard("key").await.unwrap();
    assert_eq!(store.0.get("key").await.unwrap(), None);
}

/// A default of `discard` that reads and deletes by a version would fail here.
#[tokio::test]
async fn a_wrapper_discards_in_a_store_that_deletes_by_no_version() {
    let store = Wrapper(Broken::new(Breakage::NoConditionalDelete));
    let version = store.put("key", "one".into(), &Precondition::Absent).await.unwrap();
    assert_eq!(store.delete("key", Some(&version)).await.unwrap_err().kind(), StoreErrorKind::Fatal);
    store.discard("key").await.unwrap();
    assert_eq!(store.get("key").await.unwrap(), None);
}

#[tokio::test]
async fn a_wrapper_lists_page_by_page_what_the_store_inside_lists() {
    let store = Wrapper(MemoryStore::new());
    for n in 0..2_500 {
        store.put(&format!("locks/{n:04}"), "one".into(), &Precondition::Absent).await.unwrap();
    }
    let first = store.list_page("locks/", None, Some(2)).await.unwrap();
    assert_eq!(ListedObject::keys(first.objects), ["locks/0000", "locks/0001"]);
    assert!(first.next.is_some());
    let listed = store.list("locks/").await.unwrap();
    assert_eq!(listed.len(), 2_500);
    assert_eq!(listed, store.0.list("locks/").await.unwrap());
}
