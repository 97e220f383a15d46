//! What the lock last said, and how old that is.

use std::time::Duration;

use chrono::{DateTime, Utc};

use crate::clock::LocalInstant;
use crate::record::LeaderElectionRecord;
use crate::store::Version;

/// The lease as this process last read or wrote it.
///
/// Whether it is still alive, only time tells: it is known to have expired when it has been
/// [unchanged](Self::unchanged_for) for longer than its duration.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ObservedLease {
    /// The token of the term that holds it, or held it last.
    pub fencing_token: u64,
    /// Since when the holder holds it, by the holder's wall clock.
    pub acquire_time: Option<DateTime<Utc>>,
    /// When the holder last renewed it, by the holder's wall clock.
    pub renew_time: Option<DateTime<Utc>>,
    /// How long it lasts after a renewal.
    pub lease_duration: Duration,
    /// How long ago, by our monotonic clock, the lock was first seen as it is now.
    pub unchanged_for: Duration,
    /// How long ago, by our monotonic clock, the store last gave a good answer.
    pub checked_for: Duration,
}

/// What went wrong last between an elector and its lock.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LastError {
    /// When, by our wall clock.
    pub at: DateTime<Utc>,
    /// What. Holds no secrets.
    pub message: String,
}

/// What a record says about the lease, without its names.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Terms {
    fencing_token: u64,
    acquire_time: Option<DateTime<Utc>>,
    renew_time: Option<DateTime<Utc>>,
    lease_duration: Duration,
}

impl From<&LeaderElectionRecord> for Terms {
    fn from(record: &LeaderElectionRecord) -> Self {
        Self {
            fencing_token: record.leader_transitions,
            acquire_time: record.acquire_time,
            renew_time: record.renew_time,
            lease_duration: record.lease_duration,
        }
    }
}

/// One version of the lock, and when it was seen.
#[derive(Clone, Debug)]
pub(crate) struct Sighting {
    terms: Terms,
    version: Version,
    changed_at: LocalInstant,
    checked_at: LocalInstant,
}

impl Sighting {
    /// What the lock said at `now`; `before` is what it said last.
    pub(crate) fn new(terms: Terms, version: Version, now: LocalInstant, before: Option<&Self>) -> Self {
        let changed_at = before.filter(|before| before.version == version).map_or(now, |before| before.changed_at);
        Self { terms, version, changed_at, checked_at: now }
    }

    pub(crate) fn at(&self, now: LocalInstant) -> ObservedLease {
        let Terms { fencing_token, acquire_time, renew_time, lease_duration } = self.terms;
        ObservedLease {
            fencing_token,
            acquire_time,
            renew_time,
            lease_duration,
            unchanged_for: now.saturating_since(self.changed_at),
            checked_for: now.saturating_since(self.checked_at),
        }
    }
}
