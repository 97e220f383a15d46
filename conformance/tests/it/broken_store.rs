//! Stores that are wrong in a known way.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::FutureExt;
use leaderelection::implement::{
    ConditionalStore, ConditionalStoreExt, ListedPage, PageToken, Precondition, Version, VersionedObject,
};
use leaderelection::{MemoryStore, StoreError, StoreErrorKind};
use tokio::task::yield_now;
use tokio::time::Instant;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Breakage {
    /// Not a fault: one write in three is rejected, and one in three is applied but answered as ambiguous.
    Overloaded,
    /// Not a fault: an object accepts one write or deletion per second.
    Limited,
    /// Not a fault: the version is a function of the content.
    ContentVersions,
    /// The versions of an object count from one again after its deletion.
    RestartedVersions,
    ConstantVersion,
    NoPreconditions,
    /// Checks the precondition, lets others run, and then writes without another check.
    CheckThenAct,
    /// Like `CheckThenAct`, for updates only.
    CheckThenActOnUpdates,
    /// Like `CheckThenAct`, but some writers, and all readers of the contested object, are denied access.
    CheckThenActOrDeny,
    /// Writes although it refuses.
    WritesAllTheSame,
    UpdateCreates,
    UnconditionalDelete,
    /// Supports no deletion with a condition, and says so.
    NoConditionalDelete,
    /// Like `NoConditionalDelete`, but the object is deleted.
    DeletesAllTheSame,
    /// Compares versions in another spelling than its own.
    RefusesUpdates,
    RefusesCreates,
    RefusesRacers,
    /// Answers everything with a large page.
    Talkative,
    VersionFromAnotherResponse,
    /// Sends every write twice and reports the result of the second attempt.
    HiddenRetry,
    /// Acknowledges the first write of a race without writing.
    LostUpdate,
    /// Answers reads from a cache.
    Cache,
    /// Remembers that an object was missing, and nothing else.
    CachesAbsence,
    AnySize,
    ListsEverything,
    /// Spells versions in listings in another way than elsewhere.
    ListsOtherVersions,
    /// Leaves out an object at the end of each page but the last.
    ForgetsBetweenPages,
    IgnoresWhereAPageBegins,
    /// Tells ages by two clocks that disagree by an hour.
    ExaggeratesAges,
    /// Tells the age of the object instead of that of its version.
    TellsTheAgeOfTheObject,
}

/// A [`MemoryStore`] with one fault.
#[derive(Clone, Debug)]
pub(crate) struct Broken {
    pub(crate) inner: MemoryStore,
    fault: Breakage,
    cache: Arc<Mutex<BTreeMap<String, VersionedObject>>>,
    absent: Arc<Mutex<BTreeSet<String>>>,
    racing_writes: Arc<AtomicUsize>,
    /// The time of the last write to each object.
    written: Arc<Mutex<BTreeMap<String, Instant>>>,
    /// The version with which each object was created last.
    first: Arc<Mutex<BTreeMap<String, u64>>>,
}

impl Broken {
    pub(crate) fn new(fault: Breakage) -> Self {
        Self {
            inner: MemoryStore::new(),
            fault,
            cache: Arc::default(),
            absent: Arc::default(),
            racing_writes: Arc::default(),
            written: Arc::default(),
            first: Arc::default(),
        }
    }

    /// Refuses a write that follows another write too soon.
    fn limit(&self, key: &str) -> Result<(), StoreError> {
        let written = self.written.lock().unwrap();
        let is_too_soon = written.get(key).is_some_and(|written| written.elapsed() < Duration::from_secs(1));
        if is_too_soon { Err(error(StoreErrorKind::Rejected)) } else { Ok(()) }
    }

    fn note_write(&self, key: &str) {
        if self.fault == Breakage::TellsTheAgeOfTheObject {
            return;
        }
        self.written.lock().unwrap().insert(key.to_owned(), Instant::now());
    }

    /// Returns the version that this store reports for the object at `key`.
    fn version(&self, key: &str, object: &VersionedObject) -> Version {
        match self.fault {
            Breakage::RestartedVersions => {
                let first = self.first.lock().unwrap().get(key).copied().unwrap_or_default();
                Version::new((number(&object.version) - first).to_string())
            }
            Breakage::ConstantVersion => Version::new("same"),
            Breakage::ContentVersions => {
                let mut hasher = DefaultHasher::new();
                object.body.hash(&mut hasher);
                Version::new(hasher.finish().to_string())
            }
            _ => object.version.clone(),
        }
    }

    /// Translates the precondition into the versions of the inner store.
    async fn translate(&self, key: &str, precondition: &Precondition) -> Precondition {
        match (self.inner.get(key).await.unwrap(), precondition) {
            (Some(object), Precondition::Matches(expected)) if self.version(key, &object) == *expected => {
                Precondition::Matches(object.version)
            }
            _ => precondition.clone(),
        }
    }

    /// Writes unconditionally.
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

/// Returns the number that the store in memory gives to a write.
fn number(version: &Version) -> u64 {
    version.as_str().parse().unwrap()
}

pub(crate) fn error(kind: StoreErrorKind) -> StoreError {
    StoreError::new(kind, "broken on purpose")
}

#[async_trait]
impl ConditionalStore for Broken {
    async fn get(&self, key: &str) -> Result<Option<VersionedObject>, StoreError> {
        if self.fault == Breakage::CachesAbsence && self.absent.lock().unwrap().contains(key) {
            return Ok(None);
        }
        let Some(mut object) = self.inner.get(key).await? else {
            self.absent.lock().unwrap().insert(key.to_owned());
            return Ok(None);
        };
        match self.fault {
            Breakage::ExaggeratesAges => object.age = object.age.map(|age| age + Duration::from_secs(60 * 60)),
            Breakage::TellsTheAgeOfTheObject => {
                let created = *self.written.lock().unwrap().entry(key.to_owned()).or_insert_with(Instant::now);
                object.age = Some(created.elapsed());
            }
            Breakage::Cache => {
                return Ok(Some(self.cache.lock().unwrap().entry(key.to_owned()).or_insert(object).clone()));
            }
            Breakage::CheckThenActOrDeny if key.contains("creators") => return Err(error(StoreErrorKind::Fatal)),
            Breakage::VersionFromAnotherResponse => {
                yield_now().await;
                object.version = self.inner.get(key).await?.map_or(object.version, |object| object.version);
            }
            _ => object.version = self.version(key, &object),
        }
        Ok(Some(object))
    }

    async fn put(&self, key: &str, body: Bytes, precondition: &Precondition) -> Result<Version, StoreError> {
        StoreError::check_body(&body, String::new).or_else(|error| match self.fault {
            Breakage::AnySize => Ok(()),
            _ => Err(error),
        })?;
        let racing = key.contains("creators");
        let inner_precondition = self.translate(key, precondition).await;
        match self.fault {
            Breakage::AnySize if body.is_empty() => return self.inner.put(key, "empty".into(), precondition).await,
            Breakage::NoPreconditions => return self.force(key, body).await,
            Breakage::RefusesUpdates if *precondition != Precondition::Absent => {
                return Err(error(StoreErrorKind::Conflict));
            }
            Breakage::RefusesCreates if *precondition == Precondition::Absent => {
                return Err(error(StoreErrorKind::Conflict));
            }
            Breakage::RefusesRacers if racing => return Err(error(StoreErrorKind::Conflict)),
            Breakage::Talkative => {
                let page = format!("<html>\r\n\u{1b}[31m{}", "\noh no".repeat(100_000));
                return Err(StoreError::new(StoreErrorKind::Ambiguous, page));
            }
            Breakage::Limited => self.limit(key)?,
            Breakage::WritesAllTheSame => {
                let answer = self.inner.put(key, body.clone(), precondition).await;
                if answer.is_err() {
                    self.force(key, body).await?;
                }
                return answer;
            }
            Breakage::CheckThenActOrDeny if body.ends_with(b"1") => return Err(error(StoreErrorKind::Fatal)),
            Breakage::CheckThenActOnUpdates if *precondition == Precondition::Absent => {}
            Breakage::CheckThenAct | Breakage::CheckThenActOnUpdates | Breakage::CheckThenActOrDeny => {
                let found = self.inner.get(key).await?.map(|object| object.version);
                let holds = match precondition {
                    Precondition::Absent => found.is_none(),
                    Precondition::Matches(expected) => found.as_ref() == Some(expected),
                };
                yield_now().await;
                return if holds { self.force(key, body).await } else { Err(error(StoreErrorKind::Conflict)) };
            }
            Breakage::UpdateCreates if self.inner.get(key).await?.is_none() => return self.force(key, body).await,
            // Only the result of the second attempt is reported.
            Breakage::HiddenRetry => drop(self.inner.put(key, body.clone(), precondition).await),
            Breakage::LostUpdate if racing => {
                let first = self.racing_writes.fetch_add(1, Ordering::SeqCst) == 0;
                return if first { Ok(Version::new("lost")) } else { Err(error(StoreErrorKind::Conflict)) };
            }
            Breakage::Overloaded if racing => match self.racing_writes.fetch_add(1, Ordering::SeqCst) % 3 {
                0 => return Err(error(StoreErrorKind::Rejected)),
                1 => {
                    drop(self.inner.put(key, body, precondition).await);
                    return Err(error(StoreErrorKind::Ambiguous));
                }
                _ => {}
            },
            _ => {}
        }
        let version = {
            let mut first = self.first.lock().unwrap();
            let answer = self.inner.put(key, body.clone(), &inner_precondition).now_or_never();
            let version = answer.expect("a store in memory answers at once")?;
            if inner_precondition == Precondition::Absent {
                first.insert(key.to_owned(), number(&version));
            }
            version
        };
        self.note_write(key);
        Ok(self.version(key, &VersionedObject::new(body, version)))
    }

    async fn delete(&self, key: &str, expected: Option<&Version>) -> Result<(), StoreError> {
        let expected = match (expected, self.fault) {
            (Some(expected), _) => expected,
            (None, Breakage::NoConditionalDelete | Breakage::RefusesUpdates) => return self.inner.discard(key).await,
            (None, _) => match self.get(key).await? {
                Some(found) => &found.version.clone(),
                None => return Ok(()),
            },
        };
        match self.fault {
            Breakage::Limited => self.limit(key)?,
            Breakage::NoConditionalDelete => return Err(error(StoreErrorKind::Fatal)),
            Breakage::DeletesAllTheSame => {
                self.inner.discard(key).await?;
                return Err(error(StoreErrorKind::Fatal));
            }
            Breakage::RefusesUpdates => return Err(error(StoreErrorKind::Conflict)),
            _ => {}
        }
        let found = self.inner.get(key).await?.ok_or_else(|| error(StoreErrorKind::Conflict))?;
        if self.fault == Breakage::UnconditionalDelete || self.version(key, &found) == *expected {
            self.note_write(key);
            return self.inner.delete(key, Some(&found.version)).await;
        }
        Err(error(StoreErrorKind::Conflict))
    }

    async fn list_page(
        &self,
        prefix: &str,
        token: Option<&PageToken>,
        limit: Option<u16>,
    ) -> Result<ListedPage, StoreError> {
        let prefix = if self.fault == Breakage::ListsEverything { "" } else { prefix };
        let token = token.filter(|token| self.fault != Breakage::IgnoresWhereAPageBegins || token.key().is_none());
        let mut page = self.inner.list_page(prefix, token, limit).await?;
        for object in &mut page.objects {
            object.version = match self.fault {
                Breakage::ListsOtherVersions => Some(Version::new("other")),
                _ => self.inner.get(&object.key).await?.map(|found| self.version(&object.key, &found)),
            };
        }
        if self.fault == Breakage::ForgetsBetweenPages && page.next.is_some() {
            page.objects.pop();
        }
        Ok(page)
    }

    fn describe(&self, key: &str) -> String {
        self.inner.describe(key)
    }

    fn min_write_interval(&self) -> Option<Duration> {
        self.inner.min_write_interval()
    }
}
