//! The policy's notes about another session. The [`Directory`] keeps them next to the session's state for the rules.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use leaderelection_protocol::policy::peer_feed::PeerFeed;
use leaderelection_protocol::policy::ranking;
use leaderelection_protocol::policy::released::Released;
use leaderelection_protocol::policy::rhythm::Rhythm;
use leaderelection_protocol::session::{Directory, OtherSession};

use crate::clock::LocalInstant;
use crate::election::{ElectionConfig, WriteMeta, patience};
use crate::lock::record::LeaderElectionRecord;
use crate::store::StoreErrorKind;

/// The fields that a session's record has in addition to those of a lease.
const RELEASED: &str = "released";
const WEIGHT: &str = "weight";
const LIVED: &str = "livedSeconds";
const RELEASED_LOCKS: &str = "releasedLocks";

/// The other sessions, with what the policy notes about each.
pub(super) type Peers = Directory<LeaderElectionRecord, Peer>;

/// The state of another session for the rules.
pub(super) type Session = OtherSession<LeaderElectionRecord>;

/// The notes of the policy about another session.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Peer {
    /// The identity of the session's member; `None` before the first read that showed it.
    pub(super) identity: Option<Arc<str>>,
    pub(super) identity_hash: u64,
    pub(super) weight: u32,
    /// The address at which the session serves messages.
    pub(super) address: Option<Arc<str>>,
    /// How many locks the session has released one by one, according to its record and to its messages.
    pub(super) released: u64,
    pub(super) released_by_message: u64,
    /// For how long after a message the session does not count as silent.
    pub(super) patience: Duration,
    /// The messages of the session; `None` without any.
    pub(super) peer_feed: Option<Box<PeerFeed>>,
    /// When the store last showed a change, or the session ended.
    pub(super) changed_at: LocalInstant,
    /// `true` if the object has changed, or may have changed, since the last read.
    pub(super) is_unread: bool,
    /// How long after the expiry this member ends the session. It is random, so that members do not collide.
    pub(super) end_delay: Duration,
    /// Since when the session is known to be alive; at most one lease before it was first seen.
    pub(super) alive_since: LocalInstant,
    /// `true` if the session was seen to be renewed under this member's identity.
    pub(super) renews_our_identity: bool,
    pub(super) duplicate_reported: bool,
    /// The moment of the next poll, if nothing happens before.
    pub(super) poll_at: LocalInstant,
    /// The moment at which the last poll was sent.
    pub(super) polled_at: LocalInstant,
    /// The times of the renewals, as the polls have shown them.
    pub(super) rhythm: Option<Rhythm>,
    /// The moment before which nothing is sent, after a failure.
    pub(super) not_before: LocalInstant,
    /// From this moment on, this member waits for the session no longer, because requests about it fail; `None` after a
    /// read (rule S1).
    pub(super) give_up_at: Option<LocalInstant>,
    /// The moment before which the member gets no locks for balance, and the number of times that it took none.
    pub(super) no_handoff_until: LocalInstant,
    pub(super) refused_handoffs: u32,
    /// `true` while a request about the session is in flight.
    pub(super) in_flight: bool,
    /// The locks that name this session.
    pub(super) holds: BTreeSet<u32>,
}

impl Default for Peer {
    fn default() -> Self {
        Self::new(LocalInstant::default(), Duration::ZERO)
    }
}

impl Peer {
    /// Empty notes about a session that was just discovered. It counts as silent after `patience`.
    pub(super) fn new(now: LocalInstant, patience: Duration) -> Self {
        Self {
            identity: None,
            identity_hash: 0,
            weight: 1,
            address: None,
            released: 0,
            released_by_message: 0,
            patience,
            peer_feed: None,
            changed_at: now,
            is_unread: false,
            end_delay: Duration::ZERO,
            alive_since: now,
            renews_our_identity: false,
            duplicate_reported: false,
            poll_at: now,
            polled_at: now,
            rhythm: None,
            not_before: now,
            give_up_at: None,
            no_handoff_until: now,
            refused_handoffs: 0,
            in_flight: false,
            holds: BTreeSet::new(),
        }
    }

    /// Notes what a record says about the member. Returns `true` if the identity or the address is new.
    pub(super) fn learn_from(&mut self, rules: &ElectionConfig, record: &LeaderElectionRecord) -> bool {
        let is_known = self.identity.as_deref() == Some(&*record.holder_identity)
            && self.address.as_deref() == record.leader_address();
        if !is_known {
            self.address = record.leader_address().map(Arc::from);
        }
        if self.identity.as_deref() != Some(&*record.holder_identity) {
            self.identity = Some(record.holder_identity.as_str().into());
            self.identity_hash = ranking::hash(&record.holder_identity);
        }
        let weight = record.unknown.number(WEIGHT).unwrap_or(1);
        // The rank of a member for one lock costs as many hashes as its weight, so a false record must not claim millions.
        self.weight = u32::try_from(weight).map_or(super::MAX_WEIGHT, |weight| weight.clamp(1, super::MAX_WEIGHT));
        self.patience = patience(rules, record);
        !is_known
    }

    /// The moment at which this member ends the session, if its object does not change (rule S4).
    pub(super) fn ends_at(&self, session: &Session) -> Option<LocalInstant> {
        session.expires_at().map(|at| at + self.end_delay)
    }

    /// The moment at which the session has lived for a lease, so that locks may move to it (rule S9).
    pub(super) fn takes_locks_at(&self, lease: Duration) -> LocalInstant {
        self.alive_since + lease
    }

    /// Notes a failed request: from now on, or after `patience` if it is not fatal, nothing waits for this session.
    pub(super) fn failed(&mut self, now: LocalInstant, kind: StoreErrorKind, patience: Duration) {
        let at = match kind {
            StoreErrorKind::Fatal => now,
            // Here the store has answered about the object, so the next request may succeed.
            StoreErrorKind::Conflict | StoreErrorKind::Unreadable => return,
            _ => now + patience,
        };
        self.give_up_at = Some(self.give_up_at.map_or(at, |before| before.min(at)));
    }

    /// Returns `true` if nothing waits for this session any more.
    pub(super) fn is_given_up(&self, now: LocalInstant) -> bool {
        self.give_up_at.is_some_and(|from| from <= now)
    }

    /// Returns `true` if the session counts as alive, and its member is known.
    pub(super) fn is_member(&self, session: &Session) -> bool {
        // A session whose object is missing may be over, and would take no locks.
        !session.is_over() && self.identity.is_some() && session.found().is_some()
    }
}

/// Adds the fields of a session to its record. `lived` is the age of the session, if others need it.
pub(super) fn add_session_fields(
    record: &mut LeaderElectionRecord,
    weight: u32,
    released: &mut Released,
    lived: Option<Duration>,
) {
    record.unknown.set_number(WEIGHT, weight.into());
    record.unknown.set_number(RELEASED, released.count);
    let locks = released.report();
    if !locks.is_empty() || record.unknown.get(RELEASED_LOCKS).is_some() {
        record.unknown.set(RELEASED_LOCKS, &locks);
    }
    if let Some(lived) = lived {
        record.unknown.set_number(LIVED, lived.min(record.lease_duration).as_secs());
    }
}

/// Returns the hashes of the names of the locks that a session has released last, newest first.
pub(super) fn released_locks(record: &LeaderElectionRecord) -> Vec<u64> {
    let names: Vec<String> =
        record.unknown.get(RELEASED_LOCKS).and_then(|json| serde_json::from_str(json).ok()).unwrap_or_default();
    names.iter().map_while(|hash| u64::from_str_radix(hash, 16).ok()).collect()
}

/// Returns `true` if this is the record of a session, not of a lock.
pub(crate) fn is_session(record: &LeaderElectionRecord) -> bool {
    record.unknown.number(RELEASED).is_some()
}

/// Returns the session's age at its last renewal, at most one lease; zero if its member does not balance.
pub(super) fn lived(record: &LeaderElectionRecord) -> Duration {
    // An age above one lease makes no difference (rule S9).
    Duration::from_secs(record.unknown.number(LIVED).unwrap_or_default()).min(record.lease_duration)
}

/// Returns the number of released locks in a session's record.
pub(super) fn release_count(record: &LeaderElectionRecord) -> u64 {
    record.unknown.number(RELEASED).unwrap_or_default()
}

/// The record that ends a session (rule S4). `before` is the one that it replaces.
pub(super) fn ending_record(before: Option<&LeaderElectionRecord>, stamp: WriteMeta) -> LeaderElectionRecord {
    before.cloned().unwrap_or_else(|| LeaderElectionRecord::new("", Duration::ZERO)).released(stamp)
}
