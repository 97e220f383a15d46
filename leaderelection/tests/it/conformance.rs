//! The suites pass what is right, and catch every store that is wrong in a known way.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use bytes::Bytes;
use leaderelection::conformance::{Effort, check_lock, check_store};
use leaderelection::{
    ConditionalStore, MemoryLock, MemoryStore, ObjectLock, Precondition, StoreError, StoreErrorKind, Version,
    VersionedObject,
};
use tokio::task::yield_now;

#[tokio::test(flavor = "multi_thread")]
async fn memory_store_conforms() {
    let store = MemoryStore::new();
    check_store(store.clone(), "suite", Effort::default()).await;
    assert_eq!(store.list("").await.unwrap(), Vec::<String>::new(), "the suite cleans up behind itself");
}

#[tokio::test(flavor = "multi_thread")]
async fn memory_lock_conforms() {
    let store = MemoryStore::new();
    check_lock(|key, identity| MemoryLock::new(store.clone(), key, identity), Effort::default()).await;
}

#[tokio::test]
async fn one_thread_suffices() {
    check_store(MemoryStore::new(), "suite", Effort { rounds: 2, racers: 8 }).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_whose_versions_are_hashes_conforms() {
    check_store(Broken::new(Fault::ContentVersions), "suite", Effort::default()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_that_rejects_and_loses_answers_under_load_conforms() {
    check_store(Broken::new(Fault::Overloaded), "suite", Effort::default()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_broken_store_is_caught() {
    for (fault, verdict) in [
        (Fault::ConstantVersion, "a stale update was accepted"),
        (Fault::NoPreconditions, "an update of a missing object was accepted"),
        (Fault::CheckThenAct, "at most one succeeds"),
        (Fault::UpdateCreates, "an update of a missing object was accepted"),
        (Fault::UnconditionalDelete, "a stale deletion was accepted"),
        (Fault::VersionFromAnotherResponse, "a body and a version from the same response"),
        (Fault::HiddenRetry, "must succeed here"),
        (Fault::LostUpdate, "its write is not there"),
        (Fault::ReusedVersions, "created anew, it has the version"),
        (Fault::Cache, "after an update, it holds another body"),
        (Fault::AnySize, "a write of an empty body was accepted"),
        (Fault::ListsEverything, "before anything was created, the list is"),
    ] {
        let message = verdict_on(check_store(Broken::new(fault), "suite", Effort::default())).await;
        assert!(message.contains(verdict), "{fault:?} was caught for another reason: {message}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn locks_on_broken_stores_are_caught() {
    for (fault, verdict) in [
        (Fault::ConstantVersion, "two records have the version same"),
        (Fault::NoPreconditions, "an update of a missing record was accepted"),
        (Fault::CheckThenAct, "at most one succeeds"),
        (Fault::HiddenRetry, "must succeed here"),
        (Fault::LostUpdate, "its write is not there"),
        (Fault::Cache, "after an update, it holds"),
    ] {
        let store = Broken::new(fault);
        let new_lock = move |key: &str, identity: &str| ObjectLock::new(store.clone(), key, identity);
        let message = verdict_on(check_lock(new_lock, Effort::default())).await;
        assert!(message.contains(verdict), "{fault:?} was caught for another reason: {message}");
    }
}

/// The message with which a suite panicked.
async fn verdict_on(suite: impl Future<Output = ()> + Send + 'static) -> String {
    let panic = tokio::spawn(suite).await.expect_err("a broken store passed").into_panic();
    *panic.downcast::<String>().expect("a suite panics with a message")
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    /// Not a fault: one write in three is rejected, one in three applied but answered as ambiguous.
    Overloaded,
    /// Not a fault: the version is a function of the content.
    ContentVersions,
    /// The same, and the store claims that its versions are unique.
    ReusedVersions,
    ConstantVersion,
    NoPreconditions,
    /// Looks, lets others run, and writes whatever they did.
    CheckThenAct,
    UpdateCreates,
    UnconditionalDelete,
    VersionFromAnotherResponse,
    /// Sends every write twice and reports what the second attempt met.
    HiddenRetry,
    /// The first write of a race is acknowledged and not done.
    LostUpdate,
    /// Answers reads with what it read before.
    Cache,
    AnySize,
    ListsEverything,
}

/// A [`MemoryStore`] that is wrong in one way.
#[derive(Clone, Debug)]
struct Broken {
    inner: MemoryStore,
    fault: Fault,
    cache: Arc<Mutex<BTreeMap<String, VersionedObject>>>,
    racing_writes: Arc<AtomicUsize>,
}

impl Broken {
    fn new(fault: Fault) -> Self {
        Self { inner: MemoryStore::new(), fault, cache: Arc::default(), racing_writes: Arc::default() }
    }

    /// What this store says is the version of `object`.
    fn version(&self, object: &VersionedObject) -> Version {
        match self.fault {
            Fault::ConstantVersion => Version::new("same"),
            Fault::ContentVersions | Fault::ReusedVersions => {
                let mut hasher = DefaultHasher::new();
                object.body.hash(&mut hasher);
                Version::new(hasher.finish().to_string())
            }
            _ => object.version.clone(),
        }
    }

    /// The precondition in terms of the store inside.
    async fn translate(&self, key: &str, precondition: &Precondition) -> Precondition {
        match (self.inner.get(key).await.unwrap(), precondition) {
            (Some(object), Precondition::Matches(expected)) if self.version(&object) == *expected => {
                Precondition::Matches(object.version)
            }
            _ => precondition.clone(),
        }
    }

    /// Writes, whatever is there.
    async fn force(&self, key: &str, body: Bytes) -> Result<Version, StoreError> {
        loop {
            let found = self.inner.get(key).await?;
            let precondition = found.map_or(Precondition::Absent, |object| Precondition::Matches(object.version));
            match self.inner.put(key, body.clone(), &precondition).await {
                Err(error) if error.kind() == StoreErrorKind::Conflict => {}
                answer => return answer,
            }
        }
    }
}

fn error(kind: StoreErrorKind) -> StoreError {
    StoreError::new(kind, "broken on purpose")
}

#[async_trait]
impl ConditionalStore for Broken {
    async fn get(&self, key: &str) -> Result<Option<VersionedObject>, StoreError> {
        let Some(mut object) = self.inner.get(key).await? else { return Ok(None) };
        match self.fault {
            Fault::Cache => {
                return Ok(Some(self.cache.lock().unwrap().entry(key.to_owned()).or_insert(object).clone()));
            }
            Fault::VersionFromAnotherResponse => {
                yield_now().await;
                object.version = self.inner.get(key).await?.map_or(object.version, |object| object.version);
            }
            _ => object.version = self.version(&object),
        }
        Ok(Some(object))
    }

    async fn put(&self, key: &str, body: Bytes, precondition: &Precondition) -> Result<Version, StoreError> {
        StoreError::check_body(&body, String::new).or_else(|error| match self.fault {
            Fault::AnySize => Ok(()),
            _ => Err(error),
        })?;
        let racing = body.starts_with(b"creator") || body.starts_with(b"{\"holder") && key.starts_with("race");
        let inner_precondition = self.translate(key, precondition).await;
        match self.fault {
            Fault::AnySize if body.is_empty() => return self.inner.put(key, "empty".into(), precondition).await,
            Fault::NoPreconditions => return self.force(key, body).await,
            Fault::CheckThenAct => {
                let found = self.inner.get(key).await?.map(|object| object.version);
                let holds = match precondition {
                    Precondition::Absent => found.is_none(),
                    Precondition::Matches(expected) => found.as_ref() == Some(expected),
                };
                yield_now().await;
                return if holds { self.force(key, body).await } else { Err(error(StoreErrorKind::Conflict)) };
            }
            Fault::UpdateCreates if self.inner.get(key).await?.is_none() => return self.force(key, body).await,
            // Whatever the first attempt met, the second one is reported.
            Fault::HiddenRetry => drop(self.inner.put(key, body.clone(), precondition).await),
            Fault::LostUpdate if racing => {
                let first = self.racing_writes.fetch_add(1, Ordering::SeqCst) == 0;
                return if first { Ok(Version::new("lost")) } else { Err(error(StoreErrorKind::Conflict)) };
            }
            Fault::Overloaded if racing => match self.racing_writes.fetch_add(1, Ordering::SeqCst) % 3 {
                0 => return Err(error(StoreErrorKind::Rejected)),
                1 => {
                    drop(self.inner.put(key, body, precondition).await);
                    return Err(error(StoreErrorKind::Ambiguous));
                }
                _ => {}
            },
            _ => {}
        }
        let version = self.inner.put(key, body.clone(), &inner_precondition).await?;
        Ok(self.version(&VersionedObject { body, version }))
    }

    async fn delete(&self, key: &str, expected: &Version) -> Result<(), StoreError> {
        let found = self.inner.get(key).await?.ok_or_else(|| error(StoreErrorKind::Conflict))?;
        if self.fault == Fault::UnconditionalDelete || self.version(&found) == *expected {
            return self.inner.delete(key, &found.version).await;
        }
        Err(error(StoreErrorKind::Conflict))
    }

    async fn list(&self, prefix: &str) -> Result<Vec<String>, StoreError> {
        self.inner.list(if self.fault == Fault::ListsEverything { "" } else { prefix }).await
    }

    fn describe(&self, key: &str) -> String {
        self.inner.describe(key)
    }

    fn has_unique_versions(&self) -> bool {
        self.fault != Fault::ContentVersions
    }
}
