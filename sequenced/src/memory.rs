//! A store in memory that can only create, with faults on order, for tests.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::future::BoxFuture;
use tokio::time::Instant;

use super::store::{Content, CreateOnlyStore, Entry};
use leaderelection::{StoreError, StoreErrorKind};

/// A [`CreateOnlyStore`] in memory. Clones share their objects.
///
/// The ages that it tells are exact, by tokio's clock. A call fails only where the contract requires an error, or where
/// a hook lets it fail: [`with_hook`](Self::with_hook) gives a test the word before and after every request.
///
/// ```
/// use leaderelection_sequenced::{CreateOnlyStore, MemoryCreateOnlyStore};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let store = MemoryCreateOnlyStore::new();
/// store.create("key/1", "one".into()).await?;
/// assert!(store.create("key/1", "two".into()).await.is_err());
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Default)]
pub struct MemoryCreateOnlyStore {
    objects: Arc<Mutex<BTreeMap<String, Stored>>>,
    hook: Option<Hook>,
}

type Hook = Arc<dyn Fn(Request, bool) -> BoxFuture<'static, Result<(), StoreError>> + Send + Sync>;

/// A request to a [`MemoryCreateOnlyStore`], for its hook.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Request {
    /// A read of a key.
    Read(String),
    /// A creation at a key.
    Create(String, Bytes),
    /// A listing of a prefix, after a key.
    List(String, Option<String>),
    /// A removal of a key.
    Remove(String),
}

#[derive(Debug)]
struct Stored {
    content: Bytes,
    created_at: Instant,
}

impl MemoryCreateOnlyStore {
    /// Creates an empty store.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns a view of the same objects whose requests pass `hook` twice: with `false` before the request is carried
    /// out, and with `true` afterwards. An error of the hook is the answer to the request. A hook may also wait.
    #[must_use]
    pub fn with_hook<F>(&self, hook: F) -> Self
    where
        F: Fn(Request, bool) -> BoxFuture<'static, Result<(), StoreError>> + Send + Sync + 'static,
    {
        Self { objects: Arc::clone(&self.objects), hook: Some(Arc::new(hook)) }
    }

    /// Returns the keys of all objects, in order.
    #[must_use]
    pub fn keys(&self) -> Vec<String> {
        self.objects().keys().cloned().collect()
    }

    fn objects(&self) -> MutexGuard<'_, BTreeMap<String, Stored>> {
        // No change to the objects can panic half-way, so the data behind a poisoned lock is consistent.
        self.objects.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn call<T>(
        &self,
        request: Request,
        carry_out: impl FnOnce(&mut BTreeMap<String, Stored>) -> Result<T, StoreError> + Send,
    ) -> Result<T, StoreError> {
        if let Some(hook) = &self.hook {
            hook(request.clone(), false).await?;
        }
        let answer = carry_out(&mut self.objects());
        if let Some(hook) = &self.hook {
            hook(request, true).await?;
        }
        answer
    }
}

impl fmt::Debug for MemoryCreateOnlyStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryCreateOnlyStore").field("objects", &self.objects).finish_non_exhaustive()
    }
}

#[async_trait]
impl CreateOnlyStore for MemoryCreateOnlyStore {
    async fn read(&self, key: &str) -> Result<Option<Content>, StoreError> {
        let show = |stored: &Stored| Content::new(stored.content.clone()).with_age(Some(stored.created_at.elapsed()));
        self.call(Request::Read(key.to_owned()), |objects| Ok(objects.get(key).map(show))).await
    }

    async fn create(&self, key: &str, content: Bytes) -> Result<(), StoreError> {
        self.call(Request::Create(key.to_owned(), content.clone()), |objects| {
            if objects.contains_key(key) {
                let message = format!("{} exists: read it", self.describe(key));
                return Err(StoreError::new(StoreErrorKind::Conflict, message));
            }
            objects.insert(key.to_owned(), Stored { content, created_at: Instant::now() });
            Ok(())
        })
        .await
    }

    async fn list(&self, prefix: &str, after: Option<&str>) -> Result<Vec<Entry>, StoreError> {
        let request = Request::List(prefix.to_owned(), after.map(str::to_owned));
        let is_asked_for = |key: &str| key.starts_with(prefix) && after.is_none_or(|after| key > after);
        let show = |(key, stored): (&String, &Stored)| Entry::new(key, Some(stored.content.len() as u64));
        self.call(request, |objects| Ok(objects.iter().filter(|(key, _)| is_asked_for(key)).map(show).collect())).await
    }

    async fn remove(&self, key: &str) -> Result<(), StoreError> {
        self.call(Request::Remove(key.to_owned()), |objects| {
            objects.remove(key);
            Ok(())
        })
        .await
    }

    fn describe(&self, key: &str) -> String {
        format!("memory:{key}")
    }
}
