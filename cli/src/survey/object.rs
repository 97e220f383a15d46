//! One object under the prefix, and the times at which it was seen.

use std::time::Duration;

use leaderelection::admin::Target;
use leaderelection::clock::LocalInstant;
use leaderelection::implement::{Version, VersionedRecord};
use leaderelection::{LeaderElectionRecord, LockError, StoreErrorKind};

/// The answer to a read.
pub(super) type Read = Result<Option<VersionedRecord>, LockError>;

/// A lock or a session.
#[derive(Debug)]
pub(super) struct Object {
    pub(super) target: Target,
    /// The object is under the prefix.
    pub(super) is_listed: bool,
    pub(super) read: Read,
    /// The version of the listing before `read`; `None` if the next poll has to read again.
    version: Option<Version>,
    /// The record that was read last.
    seen: Option<ObservedObject>,
}

/// The times at which one version was seen.
#[derive(Clone, Debug)]
pub(super) struct ObservedObject {
    version: Version,
    pub(super) first_seen_at: LocalInstant,
    pub(super) last_seen_at: LocalInstant,
    /// The age of the version by the store's clock at `first_seen_at`, if the store tells it.
    pub(super) age_at_first: Option<Duration>,
    /// An earlier poll showed something else, so that the version is no older than `first_seen_at` and one poll.
    pub(super) was_seen_to_change: bool,
}

impl Object {
    /// Takes in a read that was answered at `at`, with the version of the listing before it.
    pub(super) fn read(
        target: Target,
        is_listed: bool,
        (listed, read): (Option<Version>, Read),
        at: LocalInstant,
        before: Option<Self>,
        is_new: bool,
    ) -> Self {
        let before = before.and_then(|before| before.seen);
        let (version, seen) = match &read {
            Ok(Some(found)) => (listed, Some(ObservedObject::next(&found.version, found.age, at, before, is_new))),
            Ok(None) => (None, None),
            // A further read would show the same.
            Err(error) if error.kind() == StoreErrorKind::Unreadable => {
                let seen = listed.as_ref().map(|version| ObservedObject::next(version, None, at, before, is_new));
                (listed, seen)
            }
            // If the version is the same afterwards, it was the same all the time.
            Err(_) => (None, before),
        };
        Self { target, is_listed, read, version, seen }
    }

    /// Takes in a listing that was asked for at `at`. Returns `true` if it shows the known version.
    pub(super) fn confirm(&mut self, version: Option<&Version>, at: LocalInstant) -> bool {
        let is_same = version.is_some() && self.version.as_ref() == version;
        if let Some(seen) = self.seen.as_mut().filter(|_| is_same) {
            seen.last_seen_at = seen.last_seen_at.max(at);
        }
        is_same
    }

    pub(super) fn record(&self) -> Option<&LeaderElectionRecord> {
        Some(&self.found()?.record)
    }

    pub(super) fn found(&self) -> Option<&VersionedRecord> {
        self.read.as_ref().ok()?.as_ref()
    }

    pub(super) fn seen(&self) -> Option<&ObservedObject> {
        self.seen.as_ref().filter(|_| self.found().is_some())
    }

    /// The time for which an object has been there that is not a record.
    pub(super) fn unreadable_for(&self) -> Option<Duration> {
        let error = self.read.as_ref().err()?;
        let seen = self.seen.as_ref().filter(|_| error.kind() == StoreErrorKind::Unreadable)?;
        Some(seen.unchanged_for())
    }

    pub(super) fn is_session(&self) -> bool {
        self.record().is_some_and(|record| self.target.session_id(record).is_some())
    }

    /// The objects that may be the session that this lock names, likeliest first.
    pub(super) fn sessions(&self) -> impl Iterator<Item = Target> {
        let id = self.record().and_then(|record| record.session.as_ref());
        id.into_iter().flat_map(|id| self.target.sessions(id))
    }
}

impl ObservedObject {
    /// The time for which the version is known to have been there when it was last seen.
    pub(super) fn unchanged_for(&self) -> Duration {
        self.last_seen_at.saturating_since(self.first_seen_at)
    }

    /// The age of the version by the store's clock when it was last seen; `None` if the store does not tell it.
    pub(super) fn store_age(&self) -> Option<Duration> {
        self.age_at_first.map(|age| age.saturating_add(self.unchanged_for()))
    }

    fn next(version: &Version, age: Option<Duration>, at: LocalInstant, before: Option<Self>, is_new: bool) -> Self {
        match before {
            Some(before) if before.version == *version => Self { last_seen_at: at, ..before },
            before => Self {
                version: version.clone(),
                age_at_first: age,
                first_seen_at: at,
                last_seen_at: at,
                was_seen_to_change: is_new || before.is_some(),
            },
        }
    }
}
