//! The objects as the server saw them last, by their versions.
//!
//! What a version stands for never changes, so nothing here can be wrong: a write names the version, and is committed only
//! if the version is still the object's. A server that starts anew reads each object once more before its first write.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use tokio::time::Instant;

use leaderelection::implement::{Version, VersionedObject};

/// The most bytes of all bodies and keys together.
const MOST_BYTES: usize = 24 * 1024 * 1024;

/// The bytes of an entry beside its key and its body.
const ENTRY: usize = 200;

#[derive(Debug, Default)]
pub(crate) struct Seen(Mutex<Entries>);

#[derive(Debug, Default)]
struct Entries {
    by_key: HashMap<String, Entry>,
    bytes: usize,
}

#[derive(Debug)]
struct Entry {
    object: VersionedObject,
    /// A moment at which the version was new, if the server knows one.
    renewed: Option<Instant>,
}

impl Seen {
    /// Remembers an object that was read, and returns it. It was new at the time of the answer if the version before is known.
    pub(crate) fn read(&self, key: &str, object: VersionedObject) -> VersionedObject {
        let object = compact(object);
        let now = Instant::now();
        let mut entries = self.entries();
        let renewed = match (object.age, entries.by_key.get(key)) {
            (Some(age), _) => now.checked_sub(age),
            (None, Some(before)) if before.object.version == object.version => before.renewed,
            (None, Some(_)) => Some(now),
            (None, None) => None,
        };
        entries.put(key, Entry { object: object.clone(), renewed });
        object
    }

    /// Remembers an object that this server has written.
    pub(crate) fn wrote(&self, key: &str, object: VersionedObject) {
        self.entries().put(key, Entry { object: compact(object), renewed: Some(Instant::now()) });
    }

    pub(crate) fn last(&self, key: &str) -> Option<VersionedObject> {
        self.entries().by_key.get(key).map(|entry| entry.object.clone())
    }

    /// Returns the object if its version is still this one.
    pub(crate) fn at(&self, key: &str, version: Option<&Version>) -> Option<VersionedObject> {
        self.last(key).filter(|object| Some(&object.version) == version)
    }

    /// Returns `true` if this version is known to be younger than `age`.
    pub(crate) fn is_younger(&self, key: &str, version: &Version, age: Duration) -> bool {
        let entries = self.entries();
        let entry = entries.by_key.get(key).filter(|entry| entry.object.version == *version);
        entry.and_then(|entry| entry.renewed).is_some_and(|renewed| renewed.elapsed() < age)
    }

    fn entries(&self) -> MutexGuard<'_, Entries> {
        // No change can panic half-way.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Entries {
    fn put(&mut self, key: &str, entry: Entry) {
        if let Some(before) = self.by_key.remove(key) {
            self.bytes = self.bytes.saturating_sub(size(key, &before));
        }
        let size = size(key, &entry);
        if self.bytes.saturating_add(size) > MOST_BYTES {
            *self = Self::default();
        }
        self.bytes = self.bytes.saturating_add(size);
        self.by_key.insert(key.to_owned(), entry);
    }
}

/// The object with a body of its own: that of an answer may be a part of a buffer, and that of a write has room to grow.
fn compact(mut object: VersionedObject) -> VersionedObject {
    object.body = Bytes::copy_from_slice(&object.body);
    object
}

fn size(key: &str, entry: &Entry) -> usize {
    ENTRY.saturating_add(key.len()).saturating_add(entry.object.body.len())
}

#[cfg(test)]
mod tests {
    use tokio::time::advance;

    use super::*;

    fn object(version: &str, bytes: usize) -> VersionedObject {
        VersionedObject::new(vec![0; bytes], Version::new(version))
    }

    #[tokio::test(start_paused = true)]
    async fn a_version_is_as_young_as_this_server_knows() {
        let (seen, age) = (Seen::default(), Duration::from_secs(15));
        let is_young = |version: &str| seen.is_younger("web", &Version::new(version), age);
        seen.read("web", object("1", 0));
        assert!(!is_young("1"), "it may have been there for long");
        seen.read("web", object("2", 0));
        assert!(is_young("2") && !is_young("1"), "it has come since the last read");
        advance(age - Duration::from_millis(1)).await;
        seen.read("web", object("2", 0));
        assert!(is_young("2"));
        advance(Duration::from_millis(1)).await;
        assert!(!is_young("2"), "a further read makes it no younger");
        seen.wrote("web", object("3", 0));
        assert!(is_young("3"), "this server has written it");
        seen.read("web", object("4", 0).with_age(Some(age)));
        assert!(!is_young("4"), "the store tells its age");
        seen.read("web", object("5", 0).with_age(Some(Duration::from_secs(1))));
        assert!(is_young("5"), "the store tells its age");
    }

    #[test]
    fn all_is_forgotten_when_it_would_be_too_much() {
        let seen = Seen::default();
        let half = MOST_BYTES / 2 - ENTRY - 1;
        for key in ["a", "b", "b"] {
            seen.wrote(key, object("1", half));
        }
        assert!(seen.last("a").is_some() && seen.last("b").is_some(), "each counts once");
        seen.wrote("b", object("2", half + 1));
        assert!(seen.last("a").is_none());
        assert_eq!(seen.last("b").unwrap().version, Version::new("2"));
        seen.wrote("c", object("3", half - 1));
        assert!(seen.last("b").is_some(), "what is forgotten does not count");
    }
}
