//! All locks under a prefix, polled again and again: one listing, and one read of each object that has changed. Locks that
//! are made of several have a prefix for each part.

mod object;
pub(crate) mod observe;
pub(crate) mod parts;
mod row;
pub(crate) mod slots;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use futures_util::stream::{self, StreamExt as _};
use leaderelection::admin::Target;
use leaderelection::clock::{Clock as _, LocalInstant, SystemClock};
use leaderelection::history::EndedTerm;
use leaderelection::implement::{ConditionalStore, ConditionalStoreExt, ListedObject, Version};
use leaderelection::lock::Bounded;
use leaderelection_conformance::is_object_of_probe;

use self::object::Object;
pub(crate) use self::row::Row;
use crate::args::timing::request_limit;
use crate::exit::Failure;
use crate::history::beside::Histories;
use crate::lock::PrefixUrl;
use crate::lock::view::SessionRow;

/// The number of objects that are read at the same time.
const AT_A_TIME: usize = 16;

/// A reader of all locks under a prefix, and of the sessions that hold some of them.
#[derive(Debug)]
pub(crate) struct Scanner {
    /// The first has the keys and the sessions of all.
    prefix: PrefixUrl,
    places: Vec<Place>,
    /// The locks and the sessions, by their keys.
    objects: BTreeMap<String, Object>,
    /// The histories of the locks, which are no locks.
    histories: Histories,
    /// The error of a part that could not be listed, although most could.
    away: Option<Failure>,
    began: LocalInstant,
    scans: u64,
}

/// The place of the locks, or of one part of each.
#[derive(Debug)]
struct Place {
    store: Arc<dyn ConditionalStore>,
    prefix: String,
}

impl Scanner {
    pub(crate) async fn open(prefix: PrefixUrl, request_timeout: Duration) -> Result<Self, Failure> {
        Self::open_parts(&[prefix], request_timeout).await
    }

    /// Opens the survey of locks with a part below each prefix, in the order in which their candidates name the parts.
    pub(crate) async fn open_parts(prefixes: &[PrefixUrl], request_timeout: Duration) -> Result<Self, Failure> {
        let mut places = Vec::new();
        for prefix in prefixes {
            let store = Arc::new(Bounded::new(prefix.open().await?, request_limit(request_timeout)));
            places.push(Place { store, prefix: prefix.prefix().to_owned() });
        }
        let prefix = prefixes.first().cloned().ok_or_else(|| Failure::usage("expected the prefix of the locks"))?;
        let (objects, began) = (BTreeMap::new(), SystemClock.now());
        Ok(Self { prefix, places, objects, histories: Histories::default(), away: None, began, scans: 0 })
    }

    /// Lists the locks, and reads those that have changed. `progress` gets the number of those that are read. An error
    /// of the listing leaves everything as it was seen before.
    pub(crate) async fn scan(&mut self, progress: impl Fn(usize, usize)) -> Result<(), Failure> {
        let asked_at = SystemClock.now();
        let (mut listed, away) = self.list().await?;
        self.away = away;
        listed.retain(|object| !is_object_of_probe(&object.key));
        let (places, first) = (&self.places, self.prefix.prefix());
        let at = |lock: &str| {
            let name = lock.strip_prefix(first).unwrap_or(lock).to_owned();
            places.iter().map(|place| (Arc::clone(&place.store), format!("{}{name}", place.prefix))).collect()
        };
        self.histories.take_out(&mut listed, at).await;
        self.forget_all_but(&listed);
        let changed: Vec<_> = listed.into_iter().filter(|object| !self.confirm(object, asked_at)).collect();
        self.read(changed, true, &progress).await;
        let unlisted = self.unlisted_sessions();
        self.objects.retain(|key, object| object.is_listed || unlisted.contains(key));
        let unlisted = unlisted.into_iter().map(|key| ListedObject::new(key, None)).collect();
        self.read(unlisted, false, &progress).await;
        self.scans += 1;
        Ok(())
    }

    /// Lists the objects by their keys in the first place. Their version is that of all parts that could be listed, of which
    /// most are enough. The error is that of another part.
    async fn list(&self) -> Result<(Vec<ListedObject>, Option<Failure>), Failure> {
        let [_, _, ..] = &self.places[..] else {
            return Ok((self.places[0].store.list(self.prefix.prefix()).await?, None));
        };
        let listings = join_all(self.places.iter().map(|place| place.store.list(&place.prefix))).await;
        let (mut versions, mut failures) = (BTreeMap::<String, Option<BTreeMap<usize, Version>>>::new(), Vec::new());
        for (part, (place, listing)) in self.places.iter().zip(listings).enumerate() {
            let objects = match listing {
                Ok(objects) => objects,
                Err(error) => {
                    tracing::warn!(prefix = place.store.describe(&place.prefix), %error, "cannot list a part of the locks");
                    failures.push(error);
                    continue;
                }
            };
            for object in objects {
                let Some(name) = object.key.strip_prefix(&place.prefix) else { continue };
                let all =
                    versions.entry(format!("{}{name}", self.prefix.prefix())).or_insert_with(|| Some(BTreeMap::new()));
                // A version that one part does not tell leaves that of all unknown.
                *all = all.take().zip(object.version).map(|(mut all, version)| {
                    all.insert(part, version);
                    all
                });
            }
        }
        let is_blind = failures.len() * 2 >= self.places.len();
        let away = match failures.into_iter().next().map(Failure::from) {
            Some(failure) if is_blind => return Err(failure),
            away => away,
        };
        let joined = |all: &BTreeMap<usize, Version>| {
            let all: BTreeMap<_, _> = all.iter().map(|(part, version)| (part, version.as_str())).collect();
            Version::new(serde_json::json!(all).to_string())
        };
        let object = |(key, all): (String, Option<BTreeMap<_, _>>)| ListedObject::new(key, all.as_ref().map(joined));
        Ok((versions.into_iter().map(object).collect(), away))
    }

    /// The lock or the session at a key of the first place.
    fn target(&self, key: &str) -> Target {
        let name = key.strip_prefix(self.prefix.prefix());
        let at = |place: &Place| Some(Target::new(Arc::clone(&place.store), format!("{}{}", place.prefix, name?)));
        let parts: Vec<_> = self.places.iter().filter_map(at).collect();
        match parts.len() {
            2.. => Target::of_parts(&parts).ok(),
            _ => None,
        }
        .unwrap_or_else(|| Target::new(Arc::clone(&self.places[0].store), key))
    }

    fn forget_all_but(&mut self, listed: &[ListedObject]) {
        let keys: BTreeSet<&str> = listed.iter().map(|object| object.key.as_str()).collect();
        self.objects.retain(|key, object| !object.is_listed || keys.contains(key.as_str()));
    }

    /// Returns `true` if the object is known in this version, so that it need not be read.
    fn confirm(&mut self, listed: &ListedObject, at: LocalInstant) -> bool {
        let known = self.objects.get_mut(&listed.key).filter(|object| object.is_listed);
        known.is_some_and(|object| object.confirm(listed.version.as_ref(), at))
    }

    async fn read(&mut self, objects: Vec<ListedObject>, is_listed: bool, progress: &impl Fn(usize, usize)) {
        let count = objects.len();
        let reads = objects.into_iter().map(|ListedObject { key, version, .. }| {
            // A lock that is made of several remembers what its parts have shown.
            let target = self.objects.get(&key).map_or_else(|| self.target(&key), |known| known.target.clone());
            async move {
                let read = target.get().await;
                (target, version, read, SystemClock.now())
            }
        });
        let mut reads = stream::iter(reads).buffer_unordered(AT_A_TIME);
        let mut all = Vec::with_capacity(count);
        while let Some(read) = reads.next().await {
            all.push(read);
            progress(all.len(), count);
        }
        drop(reads);
        let is_first = self.scans == 0;
        for (target, version, read, at) in all {
            let before = self.objects.remove(target.key());
            let key = target.key().to_owned();
            // What an earlier listing did not show has been made since.
            let is_new = before.is_none() && !is_first && is_listed;
            self.objects.insert(key, Object::read(target, is_listed, (version, read), at, before, is_new));
        }
    }

    /// The keys of the sessions that a lock names, and that no listing shows, because they are not under the prefix.
    fn unlisted_sessions(&self) -> BTreeSet<String> {
        let mut keys = BTreeSet::new();
        for lock in self.objects.values().filter(|object| object.is_listed) {
            let places = || lock.sessions().map(|target| target.key().to_owned());
            let has_record = |key: &String| self.objects.get(key).is_some_and(|object| object.record().is_some());
            match places().find(has_record) {
                Some(known) if self.objects[&known].is_listed => {}
                Some(known) => drop(keys.insert(known)),
                None => keys.extend(places().filter(|key| !self.objects.get(key).is_some_and(|known| known.is_listed))),
            }
        }
        keys
    }

    /// The session that a lock names.
    fn session_of(&self, lock: &Object) -> Option<&Object> {
        let known = || lock.sessions().filter_map(|target| self.objects.get(target.key()));
        known().find(|session| session.record().is_some()).or_else(|| known().next())
    }

    /// The error of a part that the last poll could not list.
    pub(crate) fn away(&self) -> Option<&Failure> {
        self.away.as_ref()
    }

    /// The locks, in the order of their keys.
    pub(crate) fn locks(&self) -> Vec<Row> {
        let locks = self.objects.values().filter(|object| object.is_listed && !object.is_session());
        let watched = (self.scans > 1).then_some(self.began);
        let row = |lock: &Object| {
            let row = Row::of_object(&self.prefix, lock, self.session_of(lock), watched);
            Row { view: row.view.after(self.histories.of(lock.target.key()).last()), ..row }
        };
        locks.map(row).collect()
    }

    /// The ended terms of the locks that have any, by the names that people see, oldest first.
    pub(crate) fn ended_terms(&self) -> BTreeMap<String, Vec<EndedTerm>> {
        let all = self.objects.keys().map(|key| (self.prefix.shown(key).to_owned(), self.histories.of(key).to_vec()));
        all.filter(|(_, terms)| !terms.is_empty()).collect()
    }

    /// The sessions, with the number of the locks that name each.
    pub(crate) fn sessions(&self) -> Vec<SessionRow> {
        let mut held: BTreeMap<&str, usize> = BTreeMap::new();
        for lock in self.objects.values().filter(|object| object.is_listed && !object.is_session()) {
            if let Some(session) = self.session_of(lock) {
                *held.entry(session.target.key()).or_default() += 1;
            }
        }
        let row = |(key, object): (&String, &Object)| {
            let record = object.record()?;
            let row = SessionRow::of_record(&self.prefix.at(key), object.target.session_id(record)?, record);
            Some(SessionRow { locks: Some(held.get(key.as_str()).copied().unwrap_or_default()), ..row })
        };
        self.objects.iter().filter_map(row).collect()
    }
}
