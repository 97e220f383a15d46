//! A store that counts its requests.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use bytes::Bytes;
use leaderelection::store::{ListedObject, ListedPage, PageToken};
use leaderelection::{ConditionalStore, MemoryStore, Precondition, StoreError, Version, VersionedObject};

use super::case::Requests;

/// A [`MemoryStore`] that counts its requests.
#[derive(Clone, Debug, Default)]
pub(super) struct Counted {
    inner: MemoryStore,
    requests: Arc<Mutex<Requests>>,
}

impl Counted {
    pub(super) fn requests(&self) -> Requests {
        *self.requests.lock().unwrap()
    }

    fn count(&self, count: impl FnOnce(&mut Requests)) {
        count(&mut self.requests.lock().unwrap());
    }
}

#[async_trait]
impl ConditionalStore for Counted {
    async fn get(&self, key: &str) -> Result<Option<VersionedObject>, StoreError> {
        self.count(|requests| requests.reads += 1);
        self.inner.get(key).await
    }

    async fn put(&self, key: &str, body: Bytes, precondition: &Precondition) -> Result<Version, StoreError> {
        self.count(|requests| requests.writes += 1);
        self.inner.put(key, body, precondition).await
    }

    async fn delete(&self, key: &str, expected: &Version) -> Result<(), StoreError> {
        self.count(|requests| requests.deletions += 1);
        self.inner.delete(key, expected).await
    }

    async fn list(&self, prefix: &str) -> Result<Vec<ListedObject>, StoreError> {
        ListedPage::all(self, prefix).await
    }

    async fn list_page(
        &self,
        prefix: &str,
        token: Option<&PageToken>,
        at_most: Option<u16>,
    ) -> Result<ListedPage, StoreError> {
        self.count(|requests| requests.listings += 1);
        self.inner.list_page(prefix, token, at_most).await
    }

    fn describe(&self, key: &str) -> String {
        self.inner.describe(key)
    }

    fn has_unique_versions(&self) -> bool {
        self.inner.has_unique_versions()
    }
}
