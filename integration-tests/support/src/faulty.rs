//! A store whose calls are noted, and go wrong by plan.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use leaderelection::implement::{ConditionalStore, ListedPage, PageToken, Precondition, Version, VersionedObject};
use leaderelection::{MemoryStore, StoreError, StoreErrorKind};

/// A fault of a call.
#[derive(Clone, Copy, Debug)]
pub enum Fault {
    /// The call has no effect, and is answered with this error.
    Refuse(StoreErrorKind),
    /// The call has its effect, and is answered with this error.
    ApplyThen(StoreErrorKind),
    /// The call has no effect, and is never answered.
    Hang,
    /// The call has its effect, and is never answered.
    ApplyThenHang,
}

impl Fault {
    /// Applies the fault to `call`.
    ///
    /// # Errors
    ///
    /// The error of the fault.
    pub async fn befall<T, E>(
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
pub enum Call {
    /// A read.
    Get,
    /// A write.
    Put,
    /// A deletion, with a condition or without.
    Delete,
    /// A listing.
    List,
}

type Plan = dyn Fn(Call, &str, usize) -> Option<Fault> + Send + Sync;

/// A store whose calls are noted, and go wrong by plan. Clones are one store.
#[derive(Clone)]
pub struct Faulty<S = MemoryStore> {
    /// The store behind, whose calls do not go wrong and are not noted.
    pub inner: S,
    /// The `Retry-After` of all errors.
    pub retry_after: Option<Duration>,
    plan: Arc<Mutex<Arc<Plan>>>,
    notes: Arc<Mutex<Notes>>,
}

#[derive(Debug, Default)]
struct Notes {
    calls: Vec<(Call, String)>,
    /// The number of calls that were taken out.
    taken: usize,
}

impl Faulty {
    /// Creates a store in memory. `plan` returns the fault of a call, from the key or prefix, and the number of earlier calls.
    pub fn new(plan: impl Fn(Call, &str, usize) -> Option<Fault> + Send + Sync + 'static) -> Self {
        let store = Self::default();
        store.fail(plan);
        store
    }
}

impl Default for Faulty {
    fn default() -> Self {
        Self::around(MemoryStore::new())
    }
}

impl<S> Faulty<S> {
    /// Wraps a store. Nothing goes wrong yet.
    pub fn around(inner: S) -> Self {
        let plan: Arc<Plan> = Arc::new(|_, _, _| None);
        Self { inner, retry_after: None, plan: Arc::new(Mutex::new(plan)), notes: Arc::default() }
    }

    /// Lets calls go wrong from now on.
    pub fn fail(&self, plan: impl Fn(Call, &str, usize) -> Option<Fault> + Send + Sync + 'static) {
        *lock(&self.plan) = Arc::new(plan);
    }

    /// Lets every call be refused from now on.
    pub fn begin_outage(&self, kind: StoreErrorKind) {
        self.fail(move |_, _, _| Some(Fault::Refuse(kind)));
    }

    /// Ends all faults.
    pub fn recover(&self) {
        self.fail(|_, _, _| None);
    }

    /// The number of calls so far.
    #[must_use]
    pub fn requests(&self) -> usize {
        let notes = lock(&self.notes);
        notes.taken + notes.calls.len()
    }

    /// The number of calls of a kind since the last call of this function.
    #[must_use]
    pub fn count(&self, kind: Call) -> usize {
        lock(&self.notes).calls.iter().filter(|(call, _)| *call == kind).count()
    }

    /// The calls since the last call of this function.
    #[must_use]
    pub fn take_calls(&self) -> Vec<(Call, String)> {
        let mut notes = lock(&self.notes);
        notes.taken += notes.calls.len();
        std::mem::take(&mut notes.calls)
    }

    /// The keys of the writes since the last call of this function.
    #[must_use]
    pub fn take_writes(&self) -> Vec<String> {
        let writes = self.take_calls().into_iter().filter(|(call, _)| matches!(call, Call::Put | Call::Delete));
        writes.map(|(_, key)| key).collect()
    }

    async fn through<T>(
        &self,
        call: Call,
        key: &str,
        answer: impl Future<Output = Result<T, StoreError>> + Send,
    ) -> Result<T, StoreError> {
        let before = {
            let mut notes = lock(&self.notes);
            notes.calls.push((call, key.to_owned()));
            notes.taken + notes.calls.len() - 1
        };
        let plan = Arc::clone(&lock(&self.plan));
        match plan(call, key, before) {
            None => answer.await,
            Some(fault) => {
                fault
                    .befall(answer, |kind| {
                        StoreError::new(kind, format!("injected for {key}")).with_retry_after(self.retry_after)
                    })
                    .await
            }
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap()
}

impl<S> fmt::Debug for Faulty<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Faulty").finish_non_exhaustive()
    }
}

#[async_trait]
impl<S: ConditionalStore> ConditionalStore for Faulty<S> {
    async fn get(&self, key: &str) -> Result<Option<VersionedObject>, StoreError> {
        self.through(Call::Get, key, self.inner.get(key)).await
    }

    async fn put(&self, key: &str, body: Bytes, precondition: &Precondition) -> Result<Version, StoreError> {
        self.through(Call::Put, key, self.inner.put(key, body, precondition)).await
    }

    async fn delete(&self, key: &str, expected: Option<&Version>) -> Result<(), StoreError> {
        self.through(Call::Delete, key, self.inner.delete(key, expected)).await
    }

    async fn list_page(
        &self,
        prefix: &str,
        token: Option<&PageToken>,
        limit: Option<u16>,
    ) -> Result<ListedPage, StoreError> {
        self.through(Call::List, prefix, self.inner.list_page(prefix, token, limit)).await
    }

    fn describe(&self, key: &str) -> String {
        self.inner.describe(key)
    }

    fn min_write_interval(&self) -> Option<Duration> {
        self.inner.min_write_interval()
    }
}
