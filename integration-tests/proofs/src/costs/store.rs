//! A store that counts its requests.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use bytes::Bytes;
use leaderelection::store::ListedObject;
use leaderelection::{ConditionalStore, MemoryStore, Precondition, StoreError, Version, VersionedObject};

use super::case::Requests;

/// The largest number of objects in one answer to a listing, as on S3. A longer listing takes several requests.
const PAGE: usize = 1_000;

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
        let listed = self.inner.list(prefix).await?;
        let pages = listed.len().div_ceil(PAGE).max(1);
        self.count(|requests| requests.listings += pages as u64);
        Ok(listed)
    }

    fn describe(&self, key: &str) -> String {
        self.inner.describe(key)
    }

    fn has_unique_versions(&self) -> bool {
        self.inner.has_unique_versions()
    }
}
