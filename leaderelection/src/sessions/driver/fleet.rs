//! The objects of a fleet in a store: their keys, and the requests that need no record.

use std::sync::Arc;

use crate::lock::LockError;
use crate::lock::bounded::TimeLimit;
use crate::lock::object_lock::ObjectLock;
use crate::sessions::keys::{self, LOCKS, SESSIONS};
use crate::sessions::machine::Page;
use crate::store::{ConditionalStore, ListedObject, PageToken, StoreError, StoreErrorKind, Version};

/// The sessions and the locks under one prefix of a store.
#[derive(Clone, Debug)]
pub(super) struct Fleet {
    store: Arc<dyn ConditionalStore>,
    prefix: Arc<str>,
    check_key: Arc<str>,
    limit: TimeLimit,
}

impl Fleet {
    pub(super) fn new(store: Arc<dyn ConditionalStore>, prefix: &str, limit: TimeLimit) -> Self {
        // The store's check writes beside this key. In the folders, its objects would be listed as sessions or locks.
        let check_key = keys::key(prefix, SESSIONS, "").trim_end_matches('/').into();
        Self { store, prefix: prefix.into(), check_key, limit }
    }

    pub(super) fn session_key(&self, id: &str) -> String {
        keys::key(&self.prefix, SESSIONS, id)
    }

    pub(super) fn lock_key(&self, name: &str) -> String {
        keys::key(&self.prefix, LOCKS, name)
    }

    pub(super) fn store(&self) -> Arc<dyn ConditionalStore> {
        Arc::clone(&self.store)
    }

    /// The store, and the key beside which the store's check writes. No object has this key.
    pub(super) fn check_object(&self) -> (Arc<dyn ConditionalStore>, &str) {
        (self.store(), &self.check_key)
    }

    /// The name of the prefix in messages.
    pub(super) fn describe(&self) -> String {
        self.store.describe(&self.prefix)
    }

    /// The name of a lock in messages.
    pub(super) fn describe_lock(&self, name: &str) -> String {
        self.store.describe(&self.lock_key(name))
    }

    /// The object at `key` as a lock, which a session may hold, and the time limit of a request.
    pub(super) fn lock_at(&self, key: String) -> (ObjectLock<Arc<dyn ConditionalStore>>, TimeLimit) {
        (ObjectLock::new(Arc::clone(&self.store), key, "").of_any_record(), self.limit.clone())
    }

    pub(super) async fn delete(&self, key: &str, expected: &Version) -> Result<(), LockError> {
        self.bounded("cannot delete session", key, (*self.store).delete(key, Some(expected))).await
    }

    /// Returns a page of the objects in a folder. Their names are their keys without the folder.
    pub(super) async fn list(&self, folder: &str, from: Option<PageToken>) -> Result<Page<Arc<str>>, LockError> {
        let prefix = keys::key(&self.prefix, folder, "");
        let page = self.bounded("cannot list", &prefix, (*self.store).list_page(&prefix, from.as_ref(), None)).await?;
        let named = |object: ListedObject| Some((object.key.strip_prefix(&prefix)?.into(), object.version));
        Ok(Page { listed: page.objects.into_iter().filter_map(named).collect(), next: page.next })
    }

    /// Waits for `call` within the time limit.
    async fn bounded<T>(
        &self,
        action: &'static str,
        key: &str,
        call: impl Future<Output = Result<T, StoreError>>,
    ) -> Result<T, LockError> {
        let describe = || self.store.describe(key);
        match self.limit.answer(call).await {
            Ok(answer) => answer.map_err(|error| LockError::from_store(action, describe(), error)),
            // A request without an answer may still take effect (rule 6).
            Err(silence) => Err(LockError::new(StoreErrorKind::Ambiguous, action, describe(), silence)),
        }
    }
}
