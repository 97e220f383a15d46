//! The record that candidates compete for, and its JSON.

mod fields;
mod json;
mod parts;
mod peer;
mod rank;
mod rules;
mod stamp;
mod unknown;
mod write;

use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};

pub(crate) use fields::COMPLETED_JOBS;
pub use json::RecordError;
pub(crate) use json::parse_of_session;
pub(crate) use leaderelection_protocol::record::RELEASED_LEASE;
pub use parts::LockParts;
pub use peer::PeerAddress;
pub use rank::HolderRank;
pub use stamp::WriteMeta;
pub use unknown::UnknownFields;

/// The longest lease duration that is accepted when a record is read: one day. A lock can set another limit.
pub const DEFAULT_MAX_LEASE_DURATION: Duration = crate::timings::LONGEST_LEASE;

/// The largest `leaderTransitions` that is accepted: every JSON parser represents integers up to this one
/// exactly.
pub const MAX_LEADER_TRANSITIONS: u64 = leaderelection_protocol::record::MAX_TOKEN;

/// The lease as stored in the object: holder, duration, times, and fencing token.
///
/// This is client-go's type of the same name, as one small JSON object:
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
    /// The identity of the holder; empty if the lease was released.
    pub holder_identity: String,
    /// The time after the last renewal during which no other candidate may take the lease. Reading refuses a duration
    /// of zero. It refuses a duration over one day, too, unless the lock is configured to accept it. A lock that a
    /// session holds has no lease: then this is zero, and the object does not have the field.
    pub lease_duration: Duration,
    /// The start of the holder's term, by the holder's wall clock. This time is for people: no decision depends
    /// on it.
    pub acquire_time: Option<DateTime<Utc>>,
    /// The holder's last renewal, by the holder's wall clock. This time is for people: no decision depends on
    /// it.
    pub renew_time: Option<DateTime<Utc>>,
    /// The fencing token of the term: larger by one than the token of the term before. Renewals and the release
    /// keep the token.
    pub leader_transitions: u64,
    /// A new value for every write. The write id makes every body different, and tells a writer whether its
    /// write was committed. Records of writers that do not know this field have `None`.
    pub write_id: Option<String>,
    /// The candidate that should lead next, as in a Kubernetes Lease. The holder hands the lease over to this
    /// candidate, and all other candidates let it go first. The first write of the next term removes the field.
    pub preferred_holder: Option<String>,
    /// The session that holds the lock, if the lock has no lease of its own. [`from_json`](Self::from_json) refuses a
    /// record with a session, so the records of a plain elector have `None`.
    pub session: Option<String>,
    /// The addresses of the holder, bound to its term: see [`leader_address`](Self::leader_address). They are in an
    /// `Arc`, because every renewal copies them.
    pub peer: Option<Arc<PeerAddress>>,
    /// The rank of the holder, bound to its term: see [`leader_rank`](Self::leader_rank).
    pub rank: Option<Arc<HolderRank>>,
    /// The lock's parts, if it has several, bound to the holder's term: see [`lock_parts`](Self::lock_parts).
    pub parts: Option<Arc<LockParts>>,
    /// The number of fail-back requests, up to 6, since a leader last led for 128 lease durations (rule 24). Each
    /// request doubles the fail-back delay.
    pub failbacks: u8,
    /// All other fields, e.g. those that this library does not know. They stay when the record is rewritten.
    pub unknown: UnknownFields,
}

impl LeaderElectionRecord {
    /// Creates a record of this holder. Its fencing token is 0, below that of every term of this library. An empty
    /// `holder_identity` means that the lease has no holder.
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
            session: None,
            peer: None,
            rank: None,
            parts: None,
            failbacks: 0,
            unknown: UnknownFields::default(),
        }
    }

    /// Returns `true` if the lease has no holder.
    #[must_use]
    pub fn is_released(&self) -> bool {
        self.holder_identity.is_empty()
    }

    /// The rank of the holder; 0, the best, if the holder has written none for its term.
    #[must_use]
    pub fn leader_rank(&self) -> u8 {
        self.rank
            .as_ref()
            .filter(|rank| rank.term == self.leader_transitions && !self.is_released())
            .map_or(0, |rank| rank.rank)
    }

    /// The parts of the lock; `None` if this term's leader has written none, whatever an earlier leader has written.
    #[must_use]
    pub fn lock_parts(&self) -> Option<&LockParts> {
        self.parts.as_deref().filter(|parts| parts.term == self.leader_transitions)
    }

    /// The address that the holder advertises; `None` if it advertises none, whatever an earlier leader has written.
    #[must_use]
    pub fn leader_address(&self) -> Option<&str> {
        self.addresses().map(|peer| peer.url.as_str()).filter(|url| !url.is_empty())
    }

    /// The address that the holder advertises to clients, or else its [`leader_address`](Self::leader_address).
    #[must_use]
    pub fn client_address(&self) -> Option<&str> {
        self.addresses().and_then(|peer| peer.clients.as_deref()).or_else(|| self.leader_address())
    }

    /// The pause between the holder's renewals; `None` if the holder has written none for its term.
    #[must_use]
    pub fn leader_retry_period(&self) -> Option<Duration> {
        self.addresses().and_then(|peer| peer.retry_period).filter(|retry_period| !retry_period.is_zero())
    }

    fn addresses(&self) -> Option<&PeerAddress> {
        self.peer.as_deref().filter(|peer| peer.term == self.leader_transitions && !self.is_released())
    }

    /// Returns the candidate that should lead next, if there is one and it is not `identity`.
    #[must_use]
    pub fn prefers_other_than(&self, identity: &str) -> Option<&str> {
        self.preferred_holder.as_deref().filter(|preferred| *preferred != identity)
    }
}
