//! A store that goes wrong by plan.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use leaderelection::{
    ConditionalStore, ListedObject, MemoryStore, Precondition, StoreError, StoreErrorKind, Version, VersionedObject,
};

use crate::support::Fault;

/// One call of a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Call {
    Get,
    Put,
}

/// A [`MemoryStore`] whose calls go wrong by plan. Clones are one store.
#[derive(Clone)]
pub(super) struct Troubled {
    pub(super) inner: MemoryStore,
    /// The `Retry-After` of all errors.
    pub(super) retry_after: Option<Duration>,
    plan: Arc<dyn Fn(Call, usize) -> Option<Fault> + Send + Sync>,
    requests: Arc<AtomicUsize>,
}

impl Troubled {
    /// Creates a store whose faults `plan` chooses, from the call and the number of earlier calls.
    pub(super) fn new(plan: impl Fn(Call, usize) -> Option<Fault> + Send + Sync + 'static) -> Self {
        Self { inner: MemoryStore::new(), retry_after: None, plan: Arc::new(plan), requests: Arc::default() }
    }

    pub(super) fn requests(&self) -> usize {
        self.requests.load(Ordering::SeqCst)
    }

    async fn through<T>(
        &self,
        call: Call,
        request: impl Future<Output = Result<T, StoreError>> + Send,
    ) -> Result<T, StoreError> {
        let error = |kind: StoreErrorKind| StoreError::new(kind, "by plan").with_retry_after(self.retry_after);
        match (self.plan)(call, self.requests.fetch_add(1, Ordering::SeqCst)) {
            None => request.await,
            Some(fault) => fault.befall(request, error).await,
        }
    }
}

impl fmt::Debug for Troubled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Troubled").field("inner", &self.inner).finish_non_exhaustive()
    }
}

#[async_trait]
impl ConditionalStore for Troubled {
    async fn get(&self, key: &str) -> Result<Option<VersionedObject>, StoreError> {
        self.through(Call::Get, self.inner.get(key)).await
    }

    async fn put(&self, key: &str, body: Bytes, precondition: &Precondition) -> Result<Version, StoreError> {
        self.through(Call::Put, self.inner.put(key, body, precondition)).await
    }

    async fn delete(&self, key: &str, expected: &Version) -> Result<(), StoreError> {
        self.inner.delete(key, expected).await
    }

    async fn list(&self, prefix: &str) -> Result<Vec<ListedObject>, StoreError> {
        self.inner.list(prefix).await
    }

    fn describe(&self, key: &str) -> String {
        self.inner.describe(key)
    }
}
