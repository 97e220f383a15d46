//! The objects of all sessions and locks.

use std::collections::{BTreeMap, VecDeque};

use leaderelection::election::{Answer, Failure, Write};
use leaderelection::{LeaderElectionRecord, StoreErrorKind, Version, VersionedRecord};

use crate::simulation::faults::REMEMBERED_STATES;

/// An object's place.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Key {
    /// The object of a session.
    Session(String),
    /// The object of a lock.
    Lock(u32),
}

/// A request to the store.
#[derive(Clone, Debug)]
pub(super) enum Ask {
    Read(Key),
    Write(Key, Write),
    Delete(Key, Version),
    ListSessions,
    ListLocks,
}

/// The answer to a request.
#[derive(Clone, Debug)]
pub(super) enum Reply {
    Object(Answer),
    Deleted(Result<(), Failure>),
    Sessions(Result<Vec<(String, Version)>, Failure>),
    Locks(Result<Vec<(u32, Version)>, Failure>),
}

#[derive(Debug, Default)]
pub(super) struct Store {
    objects: BTreeMap<Key, VersionedRecord>,
    /// The states before the present one of each object, newest first.
    past: BTreeMap<Key, VecDeque<Option<VersionedRecord>>>,
    writes: u64,
}

impl Store {
    /// Returns `true` if a write or a deletion would be applied.
    pub(super) fn accepts(&self, ask: &Ask) -> bool {
        let version = |key| self.objects.get(key).map(|object| &object.version);
        match ask {
            Ask::Write(key, write) => version(key) == write.expected.as_ref(),
            Ask::Delete(key, expected) => version(key) == Some(expected),
            _ => false,
        }
    }

    /// Carries out a request.
    pub(super) fn answer(&mut self, ask: &Ask) -> Reply {
        let accepts = self.accepts(ask);
        let conflict = Failure { kind: StoreErrorKind::Conflict, retry_after: None };
        match ask {
            Ask::Read(key) => Reply::Object(Answer::Read(Ok(self.objects.get(key).cloned()))),
            Ask::Write(key, write) => {
                if !accepts {
                    return Reply::Object(Answer::Written(Err(conflict)));
                }
                self.writes += 1;
                let version = Version::new(self.writes.to_string());
                // The record goes through its JSON, as in any real store.
                let record = read(&write.record.to_json());
                self.replace(key, Some(VersionedRecord::new(record, version.clone())));
                Reply::Object(Answer::Written(Ok(version)))
            }
            Ask::Delete(key, _) if accepts => {
                self.replace(key, None);
                Reply::Deleted(Ok(()))
            }
            Ask::Delete(..) => Reply::Deleted(Err(conflict)),
            Ask::ListSessions => Reply::Sessions(Ok(sessions(self.objects.iter()))),
            Ask::ListLocks => Reply::Locks(Ok(locks(self.objects.iter()))),
        }
    }

    /// Returns the answer to a read or a listing that shows every object as it was before so many changes; `None` shows no
    /// object at all.
    pub(super) fn false_answer(&self, ask: &Ask, age: Option<usize>) -> Reply {
        let shown = |key: &Key| age.and_then(|age| self.earlier(key, age));
        let all = || self.past.keys().filter_map(|key| Some((key, shown(key)?)));
        match ask {
            Ask::ListSessions => Reply::Sessions(Ok(sessions(all()))),
            Ask::ListLocks => Reply::Locks(Ok(locks(all()))),
            Ask::Read(key) | Ask::Write(key, _) | Ask::Delete(key, _) => {
                Reply::Object(Answer::Read(Ok(shown(key).cloned())))
            }
        }
    }

    /// The record of a lock.
    pub(super) fn lock(&self, lock: u32) -> Option<LeaderElectionRecord> {
        self.objects.get(&Key::Lock(lock)).map(|object| object.record.clone())
    }

    /// Writes without a condition, as an operator does who has just read the object.
    pub(super) fn put(&mut self, key: Key, record: &LeaderElectionRecord) {
        self.writes += 1;
        let version = Version::new(self.writes.to_string());
        self.replace(&key, Some(VersionedRecord::new(read(&record.to_json()), version)));
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

fn sessions<'a>(objects: impl Iterator<Item = (&'a Key, &'a VersionedRecord)>) -> Vec<(String, Version)> {
    let listed = objects.filter_map(|(key, object)| match key {
        Key::Session(id) => Some((id.clone(), object.version.clone())),
        Key::Lock(_) => None,
    });
    listed.collect()
}

fn locks<'a>(objects: impl Iterator<Item = (&'a Key, &'a VersionedRecord)>) -> Vec<(u32, Version)> {
    let listed = objects.filter_map(|(key, object)| match key {
        Key::Lock(lock) => Some((*lock, object.version.clone())),
        Key::Session(_) => None,
    });
    listed.collect()
}

impl Ask {
    /// Returns the answer of a request that failed.
    pub(super) fn failed(&self, failure: Failure) -> Reply {
        match self {
            Self::Read(_) => Reply::Object(Answer::Read(Err(failure))),
            Self::Write(..) => Reply::Object(Answer::Written(Err(failure))),
            Self::Delete(..) => Reply::Deleted(Err(failure)),
            Self::ListSessions => Reply::Sessions(Err(failure)),
            Self::ListLocks => Reply::Locks(Err(failure)),
        }
    }
}

fn read(body: &[u8]) -> LeaderElectionRecord {
    let longest = leaderelection::lock::DEFAULT_MAX_LEASE_DURATION;
    leaderelection::sessions::machine::read_record(body, longest).expect("a record that a member wrote")
}
