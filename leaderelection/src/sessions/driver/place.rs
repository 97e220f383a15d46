//! The place of a fleet's objects in a store, and the requests about these objects.

use std::sync::Arc;

use crate::lock::LockError;
use crate::lock::bounded::TimeLimit;
use crate::lock::object_lock::ObjectLock;
use crate::sessions::keys::{self, LOCKS, SESSIONS};
use crate::sessions::machine::Page;
use crate::store::{ConditionalStore, ListedObject, PageToken, StoreError, StoreErrorKind, Version};

/// The sessions and the locks under one prefix of a store.
#[derive(Clone, Debug)]
pub(super) struct Place {
    store: Arc<dyn ConditionalStore>,
    prefix: Arc<str>,
    beside: Arc<str>,
    limit: TimeLimit,
}

impl Place {
    pub(super) fn new(store: Arc<dyn ConditionalStore>, prefix: &str, limit: TimeLimit) -> Self {
        // The store's check writes beside this key. Inside a folder, its objects would be listed as sessions or locks.
        let beside = keys::key(prefix, SESSIONS, "").trim_end_matches('/').into();
        Self { store, prefix: prefix.into(), beside, limit }
    }

    pub(super) fn session(&self, id: &str) -> String {
        keys::key(&self.prefix, SESSIONS, id)
    }

    pub(super) fn lock(&self, name: &str) -> String {
        keys::key(&self.prefix, LOCKS, name)
    }

    /// The store, and a key beside those of the sessions and locks. No object has this key.
    pub(super) fn object(&self) -> (Arc<dyn ConditionalStore>, &str) {
        (Arc::clone(&self.store), &self.beside)
    }

    /// The name of the prefix for people.
    pub(super) fn describe(&self) -> String {
        self.store.describe(&self.prefix)
    }

    pub(super) fn describe_lock(&self, name: &str) -> String {
        self.store.describe(&self.lock(name))
    }

    /// The object at `key`, as a lock for which nobody competes, and the time that a request about it may take.
    pub(super) fn at(&self, key: String) -> (ObjectLock<Arc<dyn ConditionalStore>>, TimeLimit) {
        (ObjectLock::new(Arc::clone(&self.store), key, "").of_any_record(), self.limit.clone())
    }

    pub(super) async fn delete(&self, key: &str, expected: &Version) -> Result<(), LockError> {
        self.ask("cannot delete session", key, (*self.store).delete(key, Some(expected))).await
    }

    /// Returns a page of the objects in a folder, by their names there.
    pub(super) async fn list(&self, folder: &str, from: Option<PageToken>) -> Result<Page<Arc<str>>, LockError> {
        let prefix = keys::key(&self.prefix, folder, "");
        let page = self.ask("cannot list", &prefix, (*self.store).list_page(&prefix, from.as_ref(), None)).await?;
        let named = |object: ListedObject| Some((object.key.strip_prefix(&prefix)?.into(), object.version));
        Ok(Page { listed: page.objects.into_iter().filter_map(named).collect(), next: page.next })
    }

    async fn ask<T>(
        &self,
        action: &'static str,
        key: &str,
        call: impl Future<Output = Result<T, StoreError>>,
    ) -> Result<T, LockError> {
        let describe = || self.store.describe(key);
        match self.limit.answer(call).await {
            Ok(answer) => answer.map_err(|error| LockError::from_store(action, describe(), error)),
            // Silence is not a rejection: the request may still take effect (rule 6).
            Err(silence) => Err(LockError::new(StoreErrorKind::Ambiguous, action, describe(), silence)),
        }
    }
}
