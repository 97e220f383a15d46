//! The objects of all sessions and locks.

use std::collections::{BTreeMap, VecDeque};
use std::fmt::Debug;
use std::time::Duration;

use leaderelection::election::{Answer, Failure};
use leaderelection::implement::{PageToken, Version, VersionedRecord};
use leaderelection::sessions::machine::{Input, LockId, Page};
use leaderelection::{LeaderElectionRecord, StoreErrorKind};

use crate::sessions::wire::{Ask, Key, Target};
use crate::simulation::faults::REMEMBERED_STATES;

/// The number of objects in a page of a listing.
pub(super) const PAGE: usize = 20;

#[derive(Debug, Default)]
pub(super) struct Store {
    objects: BTreeMap<Key, VersionedRecord>,
    /// The states before the present one of each object, newest first.
    past: BTreeMap<Key, VecDeque<Option<VersionedRecord>>>,
    /// The objects that no read shows, each with the answer to a read. Nobody may write them.
    blocked: BTreeMap<Key, StoreErrorKind>,
    writes: u64,
    /// Listings tell the versions of the objects.
    tells_versions: bool,
    /// Listings spell versions in another way than reads and writes do.
    spells_otherwise: bool,
}

impl Store {
    pub(super) fn new(tells_versions: bool, spells_otherwise: bool) -> Self {
        Self { tells_versions, spells_otherwise, ..Self::default() }
    }

    /// Returns `true` if a write or a deletion would be applied.
    pub(super) fn accepts(&self, target: &Target, ask: &Ask) -> bool {
        let version = target.key().and_then(|key| Some(&self.objects.get(&key)?.version));
        match ask {
            Ask::Read | Ask::List(_) => false,
            Ask::Write(write) => version == write.expected.as_ref(),
            Ask::Delete(expected) => version == Some(expected),
        }
    }

    /// Carries out a request.
    pub(super) fn answer(&mut self, target: &Target, ask: &Ask) -> Input {
        let accepts = self.accepts(target, ask);
        match (target.key(), ask) {
            (_, Ask::List(from)) => match self.show(target, Some(0)) {
                Input::Sessions(whole) => Input::Sessions(whole.map(|whole| page(whole, from.as_ref()))),
                Input::Locks(whole) => Input::Locks(whole.map(|whole| page(whole, from.as_ref()))),
                other => other,
            },
            (_, Ask::Read) | (None, _) => self.show(target, Some(0)),
            _ if !accepts => ask.failed(target, Failure { kind: StoreErrorKind::Conflict, retry_after: None }),
            (Some(key), Ask::Write(write)) => target.answered(Answer::Written(Ok(self.put(key, &write.record)))),
            (Some(key), Ask::Delete(_)) => {
                self.replace(&key, None);
                target.deleted(Ok(()))
            }
        }
    }

    /// Returns the answer to a read or a listing that shows every object as it was before so many changes; `None` shows no
    /// object at all.
    pub(super) fn show(&self, target: &Target, age: Option<usize>) -> Input {
        let shown = |key: &Key| age.and_then(|age| self.earlier(key, age));
        let all = self.past.keys().filter_map(|key| Some((key, shown(key)?)));
        let spelled = |version: &Version| {
            if self.spells_otherwise { Version::new(format!("\"{}\"", version.as_str())) } else { version.clone() }
        };
        let listed = all.map(|(key, object)| (key, self.tells_versions.then(|| spelled(&object.version))));
        match target {
            Target::Sessions => {
                let of = |(key, version): (&Key, _)| {
                    if let Key::Session(id) = key { Some((id.clone(), version)) } else { None }
                };
                Input::Sessions(Ok(Page::only(listed.filter_map(of).collect())))
            }
            Target::Locks => {
                let of =
                    |(key, version): (&Key, _)| if let Key::Lock(lock) = key { Some((*lock, version)) } else { None };
                Input::Locks(Ok(Page::only(listed.filter_map(of).collect())))
            }
            object => {
                let key = object.key();
                let blocked = key.as_ref().and_then(|key| self.blocked.get(key)).copied();
                let found = key.and_then(|key| shown(&key).cloned());
                let failed = |kind| Err(Failure { kind, retry_after: None });
                object.answered(Answer::Read(blocked.map_or(Ok(found), failed)))
            }
        }
    }

    /// Leaves an object that nobody can read for this reason.
    pub(super) fn bar(&mut self, key: Key, why: StoreErrorKind) {
        self.put(key.clone(), &LeaderElectionRecord::new("somebody", Duration::from_secs(1)));
        self.blocked.insert(key, why);
    }

    /// Returns `true` if nobody can read this object.
    pub(super) fn is_blocked(&self, key: &Key) -> bool {
        self.blocked.contains_key(key)
    }

    /// The record of a lock.
    pub(super) fn lock(&self, lock: u32) -> Option<LeaderElectionRecord> {
        self.objects.get(&Key::Lock(LockId(lock))).map(|object| object.record.clone())
    }

    /// Writes without a condition, as an operator does who has just read the object. The record goes through its JSON, as in any
    /// real store.
    pub(super) fn put(&mut self, key: Key, record: &LeaderElectionRecord) -> Version {
        self.writes += 1;
        let version = Version::new(self.writes.to_string());
        self.replace(&key, Some(VersionedRecord::new(read(&record.to_json()), version.clone())));
        version
    }

    pub(super) fn remove(&mut self, key: &Key) {
        self.replace(key, None);
    }

    fn earlier(&self, key: &Key, age: usize) -> Option<&VersionedRecord> {
        match age.checked_sub(1) {
            None => self.objects.get(key),
            Some(index) => self.past.get(key)?.get(index)?.as_ref(),
        }
    }

    fn replace(&mut self, key: &Key, object: Option<VersionedRecord>) {
        let before = match object {
            Some(object) => self.objects.insert(key.clone(), object),
            None => self.objects.remove(key),
        };
        let past = self.past.entry(key.clone()).or_default();
        past.push_front(before);
        past.truncate(REMEMBERED_STATES);
    }
}

/// Returns the page after `from` of a whole listing.
fn page<K: Debug>(Page { mut listed, .. }: Page<K>, from: Option<&PageToken>) -> Page<K> {
    listed.sort_by_cached_key(|(key, _)| format!("{key:?}"));
    listed.retain(|(key, _)| from.is_none_or(|from| format!("{key:?}").as_str() > from.as_str()));
    let is_last = listed.len() <= PAGE;
    listed.truncate(PAGE);
    let next = listed.last().filter(|_| !is_last).map(|(key, _)| PageToken::new(format!("{key:?}")));
    Page { listed, next }
}

fn read(body: &[u8]) -> LeaderElectionRecord {
    let longest = leaderelection::lock::DEFAULT_MAX_LEASE_DURATION;
    leaderelection::sessions::machine::read_record(body, longest).expect("a record that a member wrote")
}
