//! A correct store with the failures of networks and permissions.

use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use bytes::Bytes;
use leaderelection::{
    ConditionalStore, ListedObject, MemoryStore, Precondition, StoreError, StoreErrorKind, Version, VersionedObject,
};

use crate::broken_store::error;

/// The way in which a call fails.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Fault {
    /// The call has no effect, and is answered with this error.
    Refuse(StoreErrorKind),
    /// The call takes effect, and is answered with this error.
    ApplyThen(StoreErrorKind),
    /// The call has no effect, and is never answered.
    Hang,
    /// The call takes effect, and is never answered.
    ApplyThenHang,
}

impl Fault {
    /// Applies the fault to `call`.
    async fn befall<T, E>(
        self,
        call: impl Future<Output = Result<T, E>> + Send,
        error: impl Fn(StoreErrorKind) -> E,
    ) -> Result<T, E> {
        match self {
            Self::Refuse(kind) => Err(error(kind)),
            Self::ApplyThen(kind) => call.await.and(Err(error(kind))),
            Self::Hang => std::future::pending().await,
            Self::ApplyThenHang => {
                drop(call.await);
                std::future::pending().await
            }
        }
    }
}

/// The kind of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Call {
    Get,
    Put,
    Delete,
}

type Plan = dyn Fn(Call, &str, usize) -> Option<Fault> + Send + Sync;

/// A [`MemoryStore`] whose calls fail according to a plan. Clones share their objects.
#[derive(Clone)]
pub(crate) struct Troubled {
    pub(crate) inner: MemoryStore,
    plan: Arc<Mutex<Arc<Plan>>>,
    requests: Arc<AtomicUsize>,
}

impl Troubled {
    /// Creates a store. `plan` returns the fault of a call, from the object's key and the number of earlier
    /// calls.
    pub(crate) fn new(plan: impl Fn(Call, &str, usize) -> Option<Fault> + Send + Sync + 'static) -> Self {
        let plan: Arc<Plan> = Arc::new(plan);
        Self { inner: MemoryStore::new(), plan: Arc::new(Mutex::new(plan)), requests: Arc::default() }
    }

    pub(crate) fn always(fault: Fault) -> Self {
        Self::new(move |_, _, _| Some(fault))
    }

    /// Ends all faults.
    pub(crate) fn heal(&self) {
        *self.plan.lock().unwrap() = Arc::new(|_, _, _| None);
    }

    pub(crate) fn requests(&self) -> usize {
        self.requests.load(Ordering::SeqCst)
    }

    async fn through<T>(
        &self,
        call: Call,
        key: &str,
        request: impl Future<Output = Result<T, StoreError>> + Send,
    ) -> Result<T, StoreError> {
        let before = self.requests.fetch_add(1, Ordering::SeqCst);
        let plan = Arc::clone(&self.plan.lock().unwrap());
        match plan(call, key, before) {
            None => request.await,
            Some(fault) => {
                let named = |kind: StoreErrorKind| StoreError::new(kind, format!("memory:{key}: {}", error(kind)));
                fault.befall(request, named).await
            }
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
        self.through(Call::Get, key, self.inner.get(key)).await
    }

    async fn put(&self, key: &str, body: Bytes, precondition: &Precondition) -> Result<Version, StoreError> {
        self.through(Call::Put, key, self.inner.put(key, body, precondition)).await
    }

    async fn delete(&self, key: &str, expected: &Version) -> Result<(), StoreError> {
        self.through(Call::Delete, key, self.inner.delete(key, expected)).await
    }

    async fn discard(&self, key: &str) -> Result<(), StoreError> {
        self.through(Call::Delete, key, self.inner.discard(key)).await
    }

    async fn list(&self, prefix: &str) -> Result<Vec<ListedObject>, StoreError> {
        self.inner.list(prefix).await
    }

    fn describe(&self, key: &str) -> String {
        self.inner.describe(key)
    }
}
