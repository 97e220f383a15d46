//! One bucket behind several endpoints.

use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use bytes::Bytes;
use leaderelection::StoreError;
use leaderelection::implement::{ConditionalStore, ListedPage, PageToken, Precondition, Version, VersionedObject};

/// A [`ConditionalStore`] whose calls go to several endpoints of one bucket in turn, for a [probe](crate::probe()). A store may
/// keep conditions at each endpoint and have two winners at two.
///
/// Listings use the first endpoint, because the place of a page may be valid at one endpoint alone.
#[derive(Debug)]
pub struct Endpoints<S> {
    first: S,
    others: Vec<S>,
    calls: AtomicUsize,
}

impl<S: ConditionalStore> Endpoints<S> {
    /// Combines stores that reach the same bucket.
    #[must_use]
    pub fn new(first: S, others: Vec<S>) -> Self {
        Self { first, others, calls: AtomicUsize::new(0) }
    }

    fn next(&self) -> &S {
        let call = self.calls.fetch_add(1, Ordering::Relaxed) % (self.others.len() + 1);
        call.checked_sub(1).and_then(|other| self.others.get(other)).unwrap_or(&self.first)
    }
}

#[async_trait]
impl<S: ConditionalStore> ConditionalStore for Endpoints<S> {
    async fn get(&self, key: &str) -> Result<Option<VersionedObject>, StoreError> {
        self.next().get(key).await
    }

    async fn put(&self, key: &str, body: Bytes, precondition: &Precondition) -> Result<Version, StoreError> {
        self.next().put(key, body, precondition).await
    }

    async fn delete(&self, key: &str, expected: Option<&Version>) -> Result<(), StoreError> {
        self.next().delete(key, expected).await
    }

    async fn list_page(
        &self,
        prefix: &str,
        token: Option<&PageToken>,
        limit: Option<u16>,
    ) -> Result<ListedPage, StoreError> {
        self.first.list_page(prefix, token, limit).await
    }

    fn describe(&self, key: &str) -> String {
        self.first.describe(key)
    }

    fn min_write_interval(&self) -> Option<std::time::Duration> {
        self.first.min_write_interval()
    }
}
