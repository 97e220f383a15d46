//! A store that keeps every Lease in two places.

mod look;

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use leaderelection::causes::with_causes;
use leaderelection::implement::{ConditionalStore, ListedPage, PageToken, Precondition, Version, VersionedObject};
use leaderelection::{LeaderElectionRecord, StoreError, StoreErrorKind};

use look::{BOTH, Look, Part, RELEASED_LEASE, is_same_write};

/// The number of Leases of which a server remembers what it has seen.
const MOST_LOOKS: usize = 16 * 1024;

/// Names the object of a key in the old place; `None` if the old place cannot have it.
type Keys = dyn Fn(&str) -> Option<String> + Send + Sync;

/// Two places of the same Leases, as one store: the second of three rollouts that move electors from the Leases of a cluster
/// to those of a bucket. An elector that writes here holds the Lease in both places, so it excludes those that write in
/// one of them, and the other way round.
///
/// The rule is M11 of [the protocol](leaderelection::protocol):
///
/// - A write is committed when both places show it, the old one first. Until then, nobody leads by it.
/// - A client sees the leader of either place, and no half of a write. Whoever is not shown blocks all others for a
///   lease.
/// - A server that ends between two writes leaves a half. The next write of the same client completes it.
///
/// A write is two requests, and so is a read. A listing shows the Leases of the new place, and reads each of them. What the
/// old place cannot have is read from the new one, and never written.
///
/// ```
/// use leaderelection::MemoryStore;
/// use leaderelection_lease_api::{Both, LeaseApi};
///
/// let (cluster, bucket) = (MemoryStore::new(), MemoryStore::new());
/// // The Lease `web` of the namespace `default` is `web` in the old place.
/// let both = Both::new(cluster, bucket, |key| key.strip_prefix("leases/default/").map(str::to_owned));
/// let routes: axum::Router = LeaseApi::new(both, "leases/").routes();
/// ```
pub struct Both {
    /// The old store and the new one.
    stores: [Arc<dyn ConditionalStore>; 2],
    keys: Box<Keys>,
    /// The last poll of each key, without unknown fields.
    looks: Mutex<HashMap<String, Look>>,
}

impl Both {
    /// Joins two stores. `keys` names the object of a key of `new` in `old`, or returns `None` if `old` cannot have it.
    ///
    /// All servers of the same Leases join the same stores in the same order, on the way back, too.
    #[must_use]
    pub fn new(
        old: impl ConditionalStore,
        new: impl ConditionalStore,
        keys: impl Fn(&str) -> Option<String> + Send + Sync + 'static,
    ) -> Self {
        Self { stores: [Arc::new(old), Arc::new(new)], keys: Box::new(keys), looks: Mutex::default() }
    }

    fn new_store(&self) -> &dyn ConditionalStore {
        &*self.stores[1]
    }

    /// Returns the keys in both stores.
    fn keys(&self, key: &str) -> Result<[String; 2], StoreError> {
        let old = (self.keys)(key).ok_or_else(|| {
            let object = self.new_store().describe(key);
            let message = format!("{object} has no place in the old store; ask a server without it");
            StoreError::new(StoreErrorKind::Fatal, message)
        })?;
        Ok([old, key.to_owned()])
    }

    fn looks(&self) -> MutexGuard<'_, HashMap<String, Look>> {
        // No change can panic half-way.
        self.looks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Remembers a poll, and since when its versions are there.
    fn remember(&self, key: &str, look: &mut Look) {
        let mut looks = self.looks();
        if let Some(before) = looks.get(key) {
            look.continue_from(before);
        } else if looks.len() >= MOST_LOOKS {
            looks.clear();
        }
        let mut kept = look.clone();
        kept.shorten();
        looks.insert(key.to_owned(), kept);
    }

    async fn look(&self, key: &str) -> Result<Look, StoreError> {
        let keys = self.keys(key)?;
        let part = async |side: usize| {
            let found = self.stores[side].get(&keys[side]).await?;
            found.map(|found| Part::read(&found)).transpose().map_err(|error| {
                let message = format!("{}: {error}", self.stores[side].describe(&keys[side]));
                StoreError::new(StoreErrorKind::Unreadable, message)
            })
        };
        let (old, new) = tokio::try_join!(part(0), part(1))?;
        let mut look = Look([old, new]);
        self.remember(key, &mut look);
        Ok(look)
    }

    /// Writes into one place. A write whose answer is lost is looked for.
    async fn put_at(
        &self,
        side: usize,
        key: &str,
        record: &LeaderElectionRecord,
        look: &Look,
    ) -> Result<Version, StoreError> {
        let (store, key) = (&self.stores[side], &self.keys(key)?[side]);
        let expected =
            look.0[side].as_ref().map_or(Precondition::Absent, |part| Precondition::Matches(part.version.clone()));
        let error = match store.put(key, record.to_json().into(), &expected).await {
            Err(error) => error,
            Ok(version) => return Ok(version),
        };
        let found = store.get(key).await.ok().flatten();
        let committed = found.filter(|found| Part::read(found).is_ok_and(|part| is_same_write(&part.record, record)));
        committed.map(|found| found.version).ok_or(error)
    }

    /// Returns what a client is told after one place has the write and the other has not.
    async fn halved(
        &self,
        key: &str,
        record: &LeaderElectionRecord,
        look: &Look,
        written: (usize, Version),
        error: StoreError,
    ) -> StoreError {
        let (kind, takes) = (error.kind(), !record.is_released() && !look.goes_on_with(record));
        if takes && kind != StoreErrorKind::Ambiguous {
            // Nobody else must wait for a half that surely stays one.
            let (side, version) = written;
            let mut half = Look::default();
            half.0[side] = Some(Part::of(record.clone(), version));
            let write_id = format!("{}-returned", record.write_id.as_deref().unwrap_or_default());
            let mut returned = record.clone();
            (returned.holder_identity, returned.lease_duration) = (String::new(), RELEASED_LEASE);
            (returned.write_id, returned.peer, returned.rank) = (Some(write_id), None, None);
            if let Err(error) = self.put_at(side, key, &returned, &half).await {
                let problem = with_causes(&error);
                tracing::warn!(
                    lock = self.describe(key),
                    problem,
                    "the Lease is held in only one of the two folders; it cannot be taken over until it expires"
                );
            }
        }
        if kind != StoreErrorKind::Rejected {
            return error;
        }
        // A client that sends the same again would name a version that is gone.
        let kind = if takes { StoreErrorKind::Fatal } else { StoreErrorKind::Ambiguous };
        StoreError::new(kind, "one of the two places of the Lease has refused the write").with_source(error)
    }
}

#[async_trait]
impl ConditionalStore for Both {
    async fn get(&self, key: &str) -> Result<Option<VersionedObject>, StoreError> {
        if (self.keys)(key).is_none() {
            return self.new_store().get(key).await;
        }
        let look = self.look(key).await?;
        Ok(look.shown().map(|record| VersionedObject::new(record.to_json(), look.version())))
    }

    async fn put(&self, key: &str, body: Bytes, precondition: &Precondition) -> Result<Version, StoreError> {
        let known = self.looks().get(key).cloned();
        let mut look = match precondition {
            Precondition::Absent => Look::default(),
            Precondition::Matches(version) => match known.filter(|look| look.version() == *version) {
                Some(look) => look,
                None => self.look(key).await?,
            },
        };
        if matches!(precondition, Precondition::Matches(version) if look.version() != *version) {
            return Err(StoreError::new(StoreErrorKind::Conflict, format!("{}: it has changed", self.describe(key))));
        }
        let fault = |error| StoreError::new(StoreErrorKind::Fatal, format!("{}: {error}", self.describe(key)));
        let mut record = LeaderElectionRecord::from_json(&body, std::time::Duration::MAX).map_err(fault)?;
        if let Some(bar) = look.bar(&record.holder_identity) {
            let (lock, holder) = (self.describe(key), &bar.record.holder_identity);
            tracing::info!(
                lock,
                holder,
                "one of the two places is held, and may be by a leader; waiting for its lease"
            );
            return Err(StoreError::new(StoreErrorKind::Conflict, format!("{lock}: {holder} holds one place")));
        }
        let write_id = record.write_id.clone().unwrap_or_default();
        record.unknown.set(BOTH, &write_id);
        let [first, second] = if record.is_released() { [1, 0] } else { [0, 1] };
        let version = self.put_at(first, key, &record, &look).await?;
        let before = look.clone();
        look.0[first] = Some(Part::of(record.clone(), version.clone()));
        match self.put_at(second, key, &record, &look).await {
            Ok(version) => look.0[second] = Some(Part::of(record, version)),
            Err(error) => return Err(self.halved(key, &record, &before, (first, version), error).await),
        }
        self.remember(key, &mut look);
        Ok(look.version())
    }

    /// Refuses: a Lease in two places is released.
    async fn delete(&self, key: &str, _: Option<&Version>) -> Result<(), StoreError> {
        let message = format!("{}: nothing is deleted in two places; release the Lease", self.describe(key));
        Err(StoreError::new(StoreErrorKind::Fatal, message))
    }

    /// Lists the new place. No version is known, because that of the old place is not.
    async fn list_page(
        &self,
        prefix: &str,
        token: Option<&PageToken>,
        limit: Option<u16>,
    ) -> Result<ListedPage, StoreError> {
        let mut page = self.new_store().list_page(prefix, token, limit).await?;
        page.objects.iter_mut().for_each(|object| object.version = None);
        Ok(page)
    }

    fn describe(&self, key: &str) -> String {
        let old = (self.keys)(key).map(|old| format!(" and {}", self.stores[0].describe(&old)));
        format!("{}{}", self.new_store().describe(key), old.unwrap_or_default())
    }

    fn min_write_interval(&self) -> Option<Duration> {
        self.stores.iter().filter_map(|store| store.min_write_interval()).max()
    }
}

impl fmt::Debug for Both {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Both").field("stores", &self.stores).finish_non_exhaustive()
    }
}
