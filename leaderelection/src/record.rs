//! The record that candidates compete for, and its JSON.

mod json;

use std::time::Duration;

use chrono::{DateTime, Utc};

pub use json::{RecordError, UnknownFields};

/// The longest lease that is believed when a record is read, unless a lock is told otherwise: a day.
pub const DEFAULT_MAX_LEASE_DURATION: Duration = Duration::from_secs(24 * 60 * 60);

/// The largest `leaderTransitions` that is believed: what JSON numbers hold exactly everywhere.
pub const MAX_LEADER_TRANSITIONS: u64 = (1 << 53) - 1;

/// What a released lease says of its duration, as in client-go.
pub(crate) const RELEASED_LEASE: Duration = Duration::from_secs(1);

/// Who leads, for how long, since when, and for the how-manieth time.
///
/// client-go's type of the same name, in one small JSON object:
///
/// ```json
/// {
///   "holderIdentity": "node-123",
///   "leaseDuration": "15s",
///   "acquireTime": "2026-02-02T10:15:30.000000Z",
///   "renewTime": "2026-02-02T10:15:30.000000Z",
///   "leaderTransitions": 7,
///   "writeId": "0198c0de-7aaa-7bbb-8ccc-0123456789ab"
/// }
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct LeaderElectionRecord {
    /// Who holds the lease; empty if it was released.
    pub holder_identity: String,
    /// How long after its last renewal nobody else may take the lease. Neither zero nor, unless
    /// configured, over a day.
    pub lease_duration: Duration,
    /// When the holder's term began, by the holder's wall clock. For people: no decision reads it.
    pub acquire_time: Option<DateTime<Utc>>,
    /// When the holder last renewed, by the holder's wall clock. For people: no decision reads it.
    pub renew_time: Option<DateTime<Utc>>,
    /// The term's fencing token: one more than the term before, the same through renewals and release.
    pub leader_transitions: u64,
    /// New for every write. Makes every body differ, and tells a writer whether its write arrived.
    /// `None` in records of writers that do not know it.
    pub write_id: Option<String>,
    /// Who is to lead next: whoever holds the lease hands it over, and everybody else lets this candidate
    /// go first. Kubernetes' field of the same name. Gone with the next term, whoever begins it.
    pub preferred_holder: Option<String>,
    /// Fields this library does not know, kept to the letter when the record is rewritten.
    pub unknown: UnknownFields,
}

impl LeaderElectionRecord {
    /// A record of the first term, `0`, of this holder, and nothing else. An empty holder is none.
    #[must_use]
    pub fn new(holder_identity: impl Into<String>, lease_duration: Duration) -> Self {
        Self {
            holder_identity: holder_identity.into(),
            lease_duration,
            acquire_time: None,
            renew_time: None,
            leader_transitions: 0,
            write_id: None,
            preferred_holder: None,
            unknown: UnknownFields::default(),
        }
    }

    /// Whether nobody holds the lease.
    #[must_use]
    pub fn is_released(&self) -> bool {
        self.holder_identity.is_empty()
    }

    /// Whether somebody other than `identity` is to lead next, and who.
    #[must_use]
    pub fn prefers_other_than(&self, identity: &str) -> Option<&str> {
        self.preferred_holder.as_deref().filter(|preferred| *preferred != identity)
    }

    /// Reads a record from an object's body.
    ///
    /// `leaseDuration` may be a Go duration or, under client-go's name `leaseDurationSeconds`, a whole
    /// number of seconds. `max_lease_duration` bounds what is believed.
    ///
    /// # Errors
    ///
    /// Names the field and what is wrong with it. The caller must not overwrite such an object.
    pub fn from_json(body: &[u8], max_lease_duration: Duration) -> Result<Self, RecordError> {
        json::parse(body, max_lease_duration)
    }

    /// The record as one line of JSON.
    #[must_use]
    pub fn to_json(&self) -> Vec<u8> {
        json::write(self)
    }
}
