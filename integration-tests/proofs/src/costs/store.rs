//! A store that counts its requests.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

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
    counters: Arc<Counters>,
}

#[derive(Debug, Default)]
struct Counters {
    writes: AtomicU64,
    reads: AtomicU64,
    listings: AtomicU64,
    deletions: AtomicU64,
}

impl Counted {
    pub(super) fn requests(&self) -> Requests {
        let Counters { writes, reads, listings, deletions } = &*self.counters;
        let [writes, reads, listings, deletions] =
            [writes, reads, listings, deletions].map(|counter| counter.load(Ordering::Relaxed));
        Requests { writes, reads, listings, deletions }
    }
}

#[async_trait]
impl ConditionalStore for Counted {
    async fn get(&self, key: &str) -> Result<Option<VersionedObject>, StoreError> {
        self.counters.reads.fetch_add(1, Ordering::Relaxed);
        self.inner.get(key).await
    }

    async fn put(&self, key: &str, body: Bytes, precondition: &Precondition) -> Result<Version, StoreError> {
        self.counters.writes.fetch_add(1, Ordering::Relaxed);
        self.inner.put(key, body, precondition).await
    }

    async fn delete(&self, key: &str, expected: &Version) -> Result<(), StoreError> {
        self.counters.deletions.fetch_add(1, Ordering::Relaxed);
        self.inner.delete(key, expected).await
    }

    async fn list(&self, prefix: &str) -> Result<Vec<ListedObject>, StoreError> {
        let listed = self.inner.list(prefix).await?;
        let pages = listed.len().div_ceil(PAGE).max(1);
        self.counters.listings.fetch_add(pages as u64, Ordering::Relaxed);
        Ok(listed)
    }

    fn describe(&self, key: &str) -> String {
        self.inner.describe(key)
    }

    fn has_unique_versions(&self) -> bool {
        self.inner.has_unique_versions()
    }
}
