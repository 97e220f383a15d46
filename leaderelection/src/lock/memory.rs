//! A store in memory, for doc tests and for the tests of programs that use the library.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use tokio::time::Instant;

use crate::lock::object_lock::ObjectLock;
use crate::store::{
    ConditionalStore, ListedObject, ListedPage, PageToken, Precondition, StoreError, StoreErrorKind, Version,
    VersionedObject,
};
use crate::util::sync::Mutex;

/// The largest number of objects in one page of a listing, as on S3.
const PAGE: usize = 1_000;

/// A lock in a [`MemoryStore`].
pub type MemoryLock = ObjectLock<MemoryStore>;

/// A [`ConditionalStore`] in memory. Clones share their objects.
///
/// Versions are unique, even after an object is deleted and created again. Their
/// [ages](VersionedObject::age) are exact, by tokio's clock. A call fails only where the contract requires an error.
///
/// ```
/// use leaderelection::implement::{ConditionalStore, Precondition};
/// use leaderelection::MemoryStore;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let store = MemoryStore::new();
/// let first = store.put("key", "one".into(), &Precondition::Absent).await?;
/// let second = store.put("key", "two".into(), &Precondition::Matches(first.clone())).await?;
/// assert!(store.put("key", "three".into(), &Precondition::Matches(first)).await.is_err());
/// assert_eq!(store.get("key").await?.map(|object| object.version), Some(second));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Default)]
pub struct MemoryStore {
    objects: Arc<Mutex<Objects>>,
}

#[derive(Debug, Default)]
struct Objects {
    by_key: BTreeMap<String, Stored>,
    writes: u64,
}

#[derive(Debug)]
struct Stored {
    body: Bytes,
    version: Version,
    written_at: Instant,
}

impl Stored {
    fn read(&self) -> VersionedObject {
        let age = self.written_at.elapsed();
        VersionedObject { body: self.body.clone(), version: self.version.clone(), age: Some(age) }
    }
}

impl MemoryStore {
    /// Creates an empty store.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    fn conflict(&self, key: &str, found: Option<&Stored>) -> StoreError {
        let found = found.map_or("there is none".to_owned(), |object| format!("it has version {}", object.version));
        StoreError::new(StoreErrorKind::Conflict, format!("{} changed: {found}", self.describe(key)))
    }
}

#[async_trait]
impl ConditionalStore for MemoryStore {
    async fn get(&self, key: &str) -> Result<Option<VersionedObject>, StoreError> {
        Ok(self.objects.lock().by_key.get(key).map(Stored::read))
    }

    async fn put(&self, key: &str, body: Bytes, precondition: &Precondition) -> Result<Version, StoreError> {
        StoreError::check_body(&body, || self.describe(key))?;
        let mut objects = self.objects.lock();
        let found = objects.by_key.get(key);
        let holds = match precondition {
            Precondition::Absent => found.is_none(),
            Precondition::Matches(expected) => found.is_some_and(|object| object.version == *expected),
        };
        if !holds {
            return Err(self.conflict(key, found));
        }
        objects.writes += 1;
        let version = Version::new(objects.writes.to_string());
        let written = Stored { body, version: version.clone(), written_at: Instant::now() };
        match objects.by_key.get_mut(key) {
            Some(object) => *object = written,
            None => drop(objects.by_key.insert(key.to_owned(), written)),
        }
        Ok(version)
    }

    async fn delete(&self, key: &str, expected: Option<&Version>) -> Result<(), StoreError> {
        let mut objects = self.objects.lock();
        let found = objects.by_key.get(key);
        if expected.is_some_and(|expected| found.is_none_or(|object| object.version != *expected)) {
            return Err(self.conflict(key, found));
        }
        objects.by_key.remove(key);
        Ok(())
    }

    async fn list_page(
        &self,
        prefix: &str,
        token: Option<&PageToken>,
        limit: Option<u16>,
    ) -> Result<ListedPage, StoreError> {
        let start = token.map_or(Bound::Included(prefix), |last| Bound::Excluded(last.as_str()));
        let limit = limit.map_or(PAGE, usize::from).clamp(1, PAGE);
        let objects = self.objects.lock();
        let rest = objects.by_key.range::<str, _>((start, Bound::Unbounded));
        let listed = |(key, object): (&String, &Stored)| ListedObject::new(key, Some(object.version.clone()));
        let mut matching = rest.take_while(|(key, _)| key.starts_with(prefix)).map(listed);
        let page: Vec<_> = matching.by_ref().take(limit).collect();
        let next = page.last().filter(|_| matching.next().is_some()).map(|last| PageToken::new(last.key.as_str()));
        Ok(ListedPage::new(page, next).seekable())
    }

    fn describe(&self, key: &str) -> String {
        format!("memory:{key}")
    }

    fn min_write_interval(&self) -> Option<Duration> {
        None
    }
}
