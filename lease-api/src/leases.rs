//! The reads and the writes of Leases in a store.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex as SyncMutex, PoisonError};
use std::time::Duration;

use chrono::{DateTime, Utc};
use futures_util::stream::{self, StreamExt as _, TryStreamExt as _};
use leaderelection::causes::with_causes;
use leaderelection::clock::{Clock, SystemClock};
use leaderelection::implement::{ConditionalStore, Precondition, VersionedObject};
use leaderelection::{StoreError, StoreErrorKind};
use tokio::sync::Mutex;
use tokio::time::{Instant, timeout_at};

use crate::lease::is_name;
use crate::listed::Listed;
use crate::object::{Object, Place};
use crate::pages::Pages;
use crate::seen::Seen;
use crate::status::Failure;

/// The number of objects that the log names because reading them is not permitted.
const MOST_REPORTED: usize = 1_000;

/// The number of objects that a listing reads at a time: as many as a server with 10,000 new Leases of a slow store can wait for,
/// and few enough that a renewal waits for less than their answers cost together.
const READS: usize = 64;

/// The time for which an answer to a probe is good.
const PROBED: Duration = Duration::from_secs(5);

/// The Leases in a part of a store.
#[derive(Debug)]
pub(crate) struct Leases {
    store: Arc<dyn ConditionalStore>,
    prefix: String,
    pages: Pages,
    seen: Seen,
    /// The last answer of the store to a probe.
    answered: Mutex<Option<Instant>>,
    /// The objects that the log has named because reading them is not permitted.
    reported: SyncMutex<BTreeSet<String>>,
}

impl Leases {
    pub(crate) fn new(store: Arc<dyn ConditionalStore>, prefix: String) -> Self {
        let (pages, seen, answered, reported) = Default::default();
        Self { store, prefix, pages, seen, answered, reported }
    }

    pub(crate) fn now() -> DateTime<Utc> {
        SystemClock.wall_time()
    }

    pub(crate) fn describe(&self) -> String {
        self.store.describe(&self.prefix)
    }

    fn key(&self, place: &Place) -> String {
        format!("{}{}/{}", self.prefix, place.namespace, place.name)
    }

    /// The place of the Lease at a key.
    fn place(&self, key: &str) -> Option<Place> {
        let (namespace, name) = key.strip_prefix(&self.prefix)?.split_once('/')?;
        (is_name(namespace) && is_name(name)).then(|| Place { namespace: namespace.to_owned(), name: name.to_owned() })
    }

    /// Reads what is at a place, a deleted Lease included.
    pub(crate) async fn read(&self, place: &Place, deadline: Instant) -> Result<Option<Object>, Failure> {
        let key = self.key(place);
        let found = within(deadline, self.store.get(&key)).await.map_err(|error| Failure::unread(&error))?;
        let Some(found) = found else { return Ok(None) };
        let found = self.seen.read(&key, found);
        self.object(place, &found).map(Some)
    }

    /// The object as this server saw it last, if any.
    pub(crate) fn last(&self, place: &Place) -> Option<Object> {
        let found = self.seen.last(&self.key(place))?;
        Object::read(place, &found).ok()
    }

    /// The size of the object as this server saw it last, in bytes.
    pub(crate) fn last_size(&self, place: &Place) -> usize {
        self.seen.last(&self.key(place)).map_or(0, |found| found.body.len())
    }

    /// Returns `true` if the lease of this object was surely renewed within its duration.
    pub(crate) fn is_live(&self, object: &Object) -> bool {
        let key = self.key(object.place());
        !object.holder().is_empty() && self.seen.is_younger(&key, &object.version, object.lease_duration())
    }

    /// Writes in the place of an object, or of nothing. Returns what the client is told, or `None` if somebody else's write
    /// came first. A write whose answer is lost is looked for.
    pub(crate) async fn write(
        &self,
        write: Object,
        before: Option<&Object>,
        deadline: Instant,
    ) -> Result<Option<Object>, Failure> {
        let place = write.place();
        if let Some(bar) = before.and_then(Object::bar) {
            return Err(Failure::conflict(&place.name, &bar));
        }
        let key = self.key(place);
        let body = write.body();
        let condition = before.map_or(Precondition::Absent, |object| Precondition::Matches(object.version.clone()));
        // The rest of the time is for the read that finds out what has happened.
        let rest = deadline.saturating_duration_since(Instant::now()).checked_div(3).unwrap_or_default();
        let half = deadline.checked_sub(rest).unwrap_or(deadline);
        let error = match within(half, self.store.put(&key, body.clone(), &condition)).await {
            Ok(version) => {
                self.seen.wrote(&key, VersionedObject::new(body, version));
                return Ok(Some(write));
            }
            Err(error) => error,
        };
        // Proxies lie, and send a request twice: whatever they answer, the write may have been committed (rule 6).
        let doubt = |cause: &dyn std::fmt::Display| Err(Failure::in_doubt(&format!("{}{cause}", with_causes(&error))));
        match (self.read(place, deadline).await, error.kind()) {
            (Ok(Some(found)), _) if found.is_written_by(write.resource_version()) => Ok(Some(found)),
            (Ok(Some(found)), _) if found.is_behind(write.resource_version()) => Ok(Some(write)),
            (Err(unread), _) => doubt(&format_args!("; {}", unread.message())),
            (Ok(_), StoreErrorKind::Conflict) => Ok(None),
            // It may have been committed before what is there now, or may still be committed.
            (Ok(_), StoreErrorKind::Ambiguous) => doubt(&""),
            (Ok(_), _) => Err(Failure::refused(&error)),
        }
    }

    /// Asks the store for anything, unless it has just answered. Whoever asks waits for those who ask already.
    pub(crate) async fn probe(&self, deadline: Instant) -> Result<(), Failure> {
        let mut answered = self.answered.lock().await;
        if answered.is_none_or(|answered| answered.elapsed() > PROBED) {
            let asked = within(deadline, self.store.get(&format!("{}readyz", self.prefix))).await;
            asked.map_err(|error| Failure::unread(&error))?;
            *answered = Some(Instant::now());
        }
        Ok(())
    }

    /// Reads all Leases, or those of one namespace, and what is left of deleted ones. One that the caller knows at its version is
    /// not read again. Of an object that is no Lease any more, or that it is not permitted to read (another key, an ACL), the Lease that the
    /// caller knows stands for it: it is not deleted, and nobody may take it. Without one it is left out. An object that it is not
    /// permitted to read is named in the log, unless there are more of them than of the others: then this server lacks the permission.
    pub(crate) async fn list(
        &self,
        namespace: Option<&str>,
        known: impl Fn(&Place) -> Option<Arc<Listed>> + Sync,
        deadline: Instant,
    ) -> Result<Vec<Arc<Listed>>, Failure> {
        let prefix = namespace.map_or_else(|| self.prefix.clone(), |name| format!("{}{name}/", self.prefix));
        let listed = within(deadline, self.pages.list(&*self.store, &prefix, |key| self.place(key).is_some())).await;
        let listed = listed.map_err(|error| Failure::unread(&error))?;
        let places = listed.into_iter().filter_map(|listed| {
            let place = self.place(&listed.key)?;
            Some((place, listed))
        });
        let (known, refused) = (&known, &SyncMutex::new(Vec::new()));
        let reads = places.map(|(place, listed)| async move {
            let last = known(&place);
            if last.as_ref().is_some_and(|last| listed.version.as_ref() == Some(last.version())) {
                return Ok(last);
            }
            // All versions of a Lease share its place.
            let place = last.as_ref().map_or_else(|| Arc::new(place), |last| Arc::clone(last.place()));
            let of = |found: VersionedObject| Listed::read(place, found).ok().map(Arc::new).or_else(|| last.clone());
            if let Some(found) = self.seen.at(&listed.key, listed.version.as_ref()) {
                return Ok(of(found));
            }
            let found = within(deadline, self.store.get(&listed.key)).await;
            match found {
                Ok(Some(found)) => Ok(of(self.seen.read(&listed.key, found))),
                Ok(None) => Ok(None),
                Err(error) if error.kind() == StoreErrorKind::Unreadable => Ok(last),
                Err(error) if error.kind() == StoreErrorKind::Fatal => {
                    refused.lock().unwrap_or_else(PoisonError::into_inner).push((listed.key, error, last.is_some()));
                    Ok(last)
                }
                Err(error) => Err(Failure::unread(&error)),
            }
        });
        let found: Vec<Option<Arc<Listed>>> = stream::iter(reads).buffered(READS).try_collect().await?;
        let found: Vec<_> = found.into_iter().flatten().collect();
        let refused = std::mem::take(&mut *refused.lock().unwrap_or_else(PoisonError::into_inner));
        let kept = refused.iter().filter(|(_, _, is_kept)| *is_kept).count();
        if let Some((_, error, _)) = refused.first().filter(|_| refused.len() > found.len().saturating_sub(kept)) {
            return Err(Failure::unread(error));
        }
        for (key, error, _) in refused {
            self.report(key, &error);
        }
        Ok(found)
    }

    /// Names in the log, once, an object that it is not permitted to read, because watches list without an end.
    fn report(&self, key: String, error: &StoreError) {
        let object = self.store.describe(&key);
        let mut reported = self.reported.lock().unwrap_or_else(PoisonError::into_inner);
        if reported.len() < MOST_REPORTED && reported.insert(key) {
            tracing::warn!(%object, %error, "an object is missing from listings, because reading it is not permitted; permit it, or remove the object");
        }
    }

    fn object(&self, place: &Place, found: &VersionedObject) -> Result<Object, Failure> {
        Object::read(place, found).map_err(|error| {
            let object = self.store.describe(&self.key(place));
            Failure::internal(format!("{object}: {error}; remove the object if no candidate needs it"))
        })
    }
}

/// Waits for an answer until a deadline. Whoever waits no longer does not know whether the call had an effect.
async fn within<T>(deadline: Instant, call: impl Future<Output = Result<T, StoreError>>) -> Result<T, StoreError> {
    let late = || {
        let message = "the store has not answered in time; check how long its requests take";
        Err(StoreError::new(StoreErrorKind::Ambiguous, message))
    };
    timeout_at(deadline, call).await.unwrap_or_else(|_| late())
}

/// The moment after a duration. Nobody waits for one that the clock cannot show.
pub(crate) fn after(now: Instant, time: Duration) -> Instant {
    now.checked_add(time).unwrap_or(now)
}

/// The time for a request: no longer than the client waits, and than its lease allows.
#[expect(clippy::arithmetic_side_effects, reason = "a division by a constant cannot fail")]
pub(crate) fn patience(asked: Option<Duration>, lease: Option<Duration>) -> Duration {
    const MOST: Duration = Duration::from_secs(10);
    const LEAST: Duration = Duration::from_millis(200);
    let asked = asked.filter(|asked| !asked.is_zero()).map(|asked| asked.saturating_mul(9) / 10);
    let limits = [asked, lease.map(|lease| lease / 3)];
    limits.into_iter().flatten().fold(MOST, Duration::min).max(LEAST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_takes_no_longer_than_its_client_waits_and_its_lease_allows() {
        let millis = Duration::from_millis;
        for (asked, lease, patience_millis) in [
            (None, None, 10_000),
            (Some(2_000), None, 1_800),
            (Some(0), None, 10_000),
            (None, Some(6_000), 2_000),
            (Some(2_000), Some(3_000), 1_000),
            (Some(60_000), Some(60_000), 10_000),
            (Some(100), Some(15_000), 200),
        ] {
            assert_eq!(patience(asked.map(millis), lease.map(millis)), millis(patience_millis), "{asked:?} {lease:?}");
        }
        assert_eq!(patience(Some(Duration::MAX), Some(Duration::MAX)), Duration::from_secs(10));
    }
}
