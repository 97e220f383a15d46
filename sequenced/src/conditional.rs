//! The store with conditional writes that numbers make of a store that can only create.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;

use super::steps::{Ask, Next, Number, Place, Poll, PollError, Reported, Seen, Write, WriteError, layout};
use super::store::CreateOnlyStore;
use leaderelection::implement::{
    ConditionalStore, ListedObject, ListedPage, PageToken, Precondition, Version, VersionedObject,
};
use leaderelection::{StoreError, StoreErrorKind};

/// The number of newest objects that every write keeps, unless [`SequencedStore::keep`] says otherwise.
pub const DEFAULT_KEEP: u64 = 2;

/// The smallest size of a listed content that is a body and no deletion, whatever its bytes.
const SURELY_A_BODY: u64 = 2;

/// A [`ConditionalStore`] made of a [`CreateOnlyStore`]: one object per write. Clones share what they know.
///
/// The [module](super) describes the layout and its costs. All candidates of a lock must use this layout: a candidate
/// that writes the object at the key itself does not see them.
///
/// A [version](Version) is a number. Versions are unique until an object is [discarded](leaderelection::implement::ConditionalStoreExt::discard). An
/// object keeps the number of its deletion, as an empty body.
///
/// # Errors
///
/// In addition to the errors of the [contract](ConditionalStore):
///
/// - [`Fatal`](StoreErrorKind::Fatal) for a key that is empty, that begins or ends with a slash, or that has a part of 20
///   digits;
/// - [`Ambiguous`](StoreErrorKind::Ambiguous) if others have written again before a write is confirmed;
/// - [`Rejected`](StoreErrorKind::Rejected) from reads while the newest object is not complete.
///
/// ```
/// use leaderelection_sequenced::{MemoryCreateOnlyStore, SequencedStore};
/// use leaderelection::{ObjectLock, ObjectStoreBasedLock, unique_identity};
///
/// let store = SequencedStore::new(MemoryCreateOnlyStore::new());
/// let lock = ObjectLock::new(store, "locks/scheduler", unique_identity());
/// assert_eq!(lock.describe(), "memory:locks/scheduler");
/// ```
#[derive(Clone, Debug)]
pub struct SequencedStore<S> {
    objects: S,
    keep: u64,
    /// By key: the newest place that a call has seen.
    places: Arc<Mutex<HashMap<String, Place>>>,
}

impl<S: CreateOnlyStore> SequencedStore<S> {
    /// Creates a store that keeps the two newest objects of each lock.
    #[must_use]
    pub fn new(objects: S) -> Self {
        Self { objects, keep: DEFAULT_KEEP, places: Arc::default() }
    }

    /// Sets the number of newest objects that a write keeps, at least 1. More of them are a history, which
    /// [`history`](Self::history) reads.
    ///
    /// Of processes with different numbers, the smallest number counts. With 16 or more, up to an eighth more are left,
    /// so that most writes need not list all.
    #[must_use]
    pub fn keep(mut self, objects: u64) -> Self {
        self.keep = objects.max(1);
        self
    }

    /// The store that holds the objects.
    #[must_use]
    pub fn objects(&self) -> &S {
        &self.objects
    }

    /// Reads the kept objects of a lock, oldest first. The body of a deletion is empty.
    ///
    /// The oldest ones may never have counted: a creation that is committed late is seen by no candidate, and it is
    /// there until the next write removes it.
    ///
    /// # Errors
    ///
    /// Any [`StoreErrorKind`] except [`Conflict`](StoreErrorKind::Conflict).
    pub async fn history(&self, key: &str) -> Result<Vec<VersionedObject>, StoreError> {
        self.check(key)?;
        let mut kept = Vec::new();
        for number in self.numbers(key, None).await? {
            let Some(content) = self.objects.read(&number.key(&layout::folder(key))).await? else { continue };
            let Some(body) = layout::body(&content.bytes) else { continue };
            kept.push(VersionedObject::new(body, version(number)).with_age(content.age));
        }
        Ok(kept)
    }

    fn check(&self, key: &str) -> Result<(), StoreError> {
        layout::check(key, || self.objects.describe(key))
    }

    /// Returns the number that a version names. No object has a version that names none.
    fn number(&self, key: &str, version: &Version) -> Result<Number, StoreError> {
        let number = Number::from_version(version.as_str()).filter(|number| *number > Number::ZERO);
        number.ok_or_else(|| {
            let found = format!("no number of a write is spelled {:?}", version.as_str());
            conflict(&self.objects.describe(key), &found)
        })
    }

    fn places(&self) -> MutexGuard<'_, HashMap<String, Place>> {
        // No change to the map can panic half-way, so the data behind a poisoned lock is consistent.
        self.places.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn poll(&self, key: &str) -> Seen {
        let known = self.places().get(key).cloned();
        let (mut poll, ask) = Poll::begin(known);
        let seen = self.drive(key, ask, |answer| poll.next(answer)).await;
        if let Ok((place, _)) = &seen {
            self.places().insert(key.to_owned(), place.clone());
        }
        seen
    }

    async fn write(&self, key: &str, expected: Option<Number>, body: Bytes) -> Result<Version, StoreError> {
        let known = self.places().get(key).cloned();
        if let Some(place) = &known {
            // Whatever becomes of this write, the next poll lists.
            self.places().insert(key.to_owned(), place.clone().doubted());
        }
        let (mut write, ask) = Write::begin(known, expected, body, self.keep);
        let outcome = self.drive(key, ask, |answer| write.next(answer)).await;
        let place = outcome.map_err(|error| self.write_error(key, error))?;
        let version = version(place.number);
        self.places().insert(key.to_owned(), place);
        Ok(version)
    }

    /// Sends the requests of a machine, beginning with `ask`, until it is done.
    async fn drive<T>(
        &self,
        key: &str,
        mut ask: Ask,
        mut next: impl FnMut(Result<Reported, StoreError>) -> Next<T>,
    ) -> T {
        loop {
            match next(self.send(key, ask).await) {
                Next::Ask(next) => ask = next,
                Next::Done(result) => return result,
            }
        }
    }

    async fn send(&self, key: &str, ask: Ask) -> Result<Reported, StoreError> {
        let folder = layout::folder(key);
        Ok(match ask {
            Ask::List(after) => Reported::Numbers(self.numbers(key, after).await?),
            Ask::Read(number) => Reported::Content(self.objects.read(&number.key(&folder)).await?),
            Ask::Create(number, content) => {
                self.objects.create(&number.key(&folder), content).await?;
                Reported::Done
            }
            Ask::Remove(number) => {
                let object = number.key(&folder);
                let removed = self.objects.remove(&object).await;
                removed.inspect_err(|error| {
                    tracing::debug!(%error, object, "cannot remove an object that is no longer needed");
                })?;
                Reported::Done
            }
        })
    }

    /// Lists the numbers of a lock, in order.
    async fn numbers(&self, key: &str, after: Option<Number>) -> Result<Vec<Number>, StoreError> {
        let folder = layout::folder(key);
        let after_key = after.map(|after| after.key(&folder));
        let listed = self.objects.list(&folder, after_key.as_deref()).await?;
        let own = listed.iter().filter_map(|entry| layout::split(&entry.key)).filter(|(lock, _)| *lock == key);
        let mut numbers: Vec<_> = own.map(|(_, number)| number).filter(|number| Some(*number) > after).collect();
        numbers.sort_unstable();
        Ok(numbers)
    }

    fn poll_error(&self, key: &str, error: PollError) -> StoreError {
        let object = self.objects.describe(key);
        match error {
            PollError::Store(error) => error,
            PollError::TooFast => {
                let message = format!("cannot read {object}: it is written too often: try again later");
                StoreError::new(StoreErrorKind::Rejected, message)
            }
            PollError::Incomplete(number) => {
                let newest = self.objects.describe(&number.key(&layout::folder(key)));
                let message = format!(
                    "cannot read {object}: its newest object is not complete: if that lasts, its writer has died: \
                     remove {newest}"
                );
                StoreError::new(StoreErrorKind::Rejected, message)
            }
        }
    }

    fn write_error(&self, key: &str, error: WriteError) -> StoreError {
        let object = self.objects.describe(key);
        let unconfirmed = |why: &str| {
            let message = format!("cannot tell whether the write to {object} came first: {why}: read it");
            StoreError::new(StoreErrorKind::Ambiguous, message)
        };
        match error {
            WriteError::Changed(Number::ZERO) => conflict(&object, "there is none"),
            WriteError::Changed(number) => conflict(&object, &format!("its last number is {number}")),
            WriteError::Taken(number) => conflict(&object, &format!("somebody else wrote number {number} first")),
            WriteError::Overtaken(number) => unconfirmed(&format!("number {number} is not the newest")),
            WriteError::LastNumber => {
                let message = format!("{object} has the largest possible number; remove its objects to start again");
                StoreError::new(StoreErrorKind::Fatal, message)
            }
            WriteError::Poll(error) => {
                let error = self.poll_error(key, error);
                let retry_after = error.retry_after();
                match error.kind() {
                    // Nothing was created yet.
                    StoreErrorKind::Ambiguous => {
                        let message = format!("cannot write {object}: it could not be read before");
                        StoreError::new(StoreErrorKind::Rejected, message)
                            .with_retry_after(retry_after)
                            .with_source(error)
                    }
                    StoreErrorKind::Unreadable => conflict(&object, "its newest object cannot be read"),
                    _ => error,
                }
            }
            WriteError::Create(error) => error,
            WriteError::Confirm(error) => {
                let retry_after = error.retry_after();
                unconfirmed("its objects could not be listed").with_retry_after(retry_after).with_source(error)
            }
        }
    }
}

fn conflict(object: &str, found: &str) -> StoreError {
    StoreError::new(StoreErrorKind::Conflict, format!("{object} changed: {found}"))
}

fn version(number: Number) -> Version {
    Version::new(number.to_string())
}

#[async_trait]
impl<S: CreateOnlyStore> ConditionalStore for SequencedStore<S> {
    async fn get(&self, key: &str) -> Result<Option<VersionedObject>, StoreError> {
        self.check(key)?;
        let (place, age) = self.poll(key).await.map_err(|error| self.poll_error(key, error))?;
        Ok(place.exists().then(|| VersionedObject::new(place.body, version(place.number)).with_age(age)))
    }

    async fn put(&self, key: &str, body: Bytes, precondition: &Precondition) -> Result<Version, StoreError> {
        self.check(key)?;
        StoreError::check_body(&body, || self.describe(key))?;
        let expected = match precondition {
            Precondition::Absent => None,
            Precondition::Matches(version) => Some(self.number(key, version)?),
        };
        self.write(key, expected, body).await
    }

    async fn delete(&self, key: &str, expected: Option<&Version>) -> Result<(), StoreError> {
        self.check(key)?;
        if let Some(expected) = expected {
            return self.write(key, Some(self.number(key, expected)?), Bytes::new()).await.map(drop);
        }
        self.places().remove(key);
        for number in self.numbers(key, None).await? {
            self.objects.remove(&number.key(&layout::folder(key))).await?;
        }
        Ok(())
    }

    async fn list_page(&self, prefix: &str, _: Option<&PageToken>, _: Option<u16>) -> Result<ListedPage, StoreError> {
        let entries = self.objects.list(prefix, None).await?;
        let mut newest = BTreeMap::new();
        for entry in &entries {
            let Some((key, number)) = layout::split(&entry.key) else { continue };
            if key.starts_with(prefix) && newest.get(key).is_none_or(|(newest, _)| *newest < number) {
                newest.insert(key, (number, entry.size));
            }
        }
        let mut listed = Vec::with_capacity(newest.len());
        for (key, (number, size)) in newest {
            if size.is_some_and(|size| size >= SURELY_A_BODY) {
                listed.push(ListedObject::new(key, Some(version(number))));
                continue;
            }
            match self.get(key).await {
                Ok(found) => listed.extend(found.map(|found| ListedObject::new(key, Some(found.version)))),
                // An object that cannot be read may exist.
                Err(_) => listed.push(ListedObject::new(key, None)),
            }
        }
        Ok(ListedPage::new(listed, None))
    }

    fn describe(&self, key: &str) -> String {
        self.objects.describe(key)
    }

    fn min_write_interval(&self) -> Option<Duration> {
        self.objects.min_write_interval()
    }
}
