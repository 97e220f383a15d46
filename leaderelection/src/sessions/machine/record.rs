//! Rules S5 and S6: the records of a lock, as a session writes and reads them.

use std::sync::Arc;
use std::time::Duration;

use super::lock::{Extras, Lock, Seen};
use crate::election::{Purpose, Rules, Stamp, Write};
use crate::lock::record::{DEFAULT_MAX_LEASE_DURATION, LeaderElectionRecord, UnknownFields};

/// The field that tells the lease of the session which holds the lock, in milliseconds.
const LEASE: &str = "sessionLeaseMillis";

/// Takes the lease of the session which holds a lock out of the lock's record, so that no later write repeats it. Returns `None` if
/// the writer did not tell.
pub(super) fn told_lease(fields: &mut UnknownFields) -> Option<Duration> {
    let told = fields.number(LEASE).filter(|millis| *millis > 0);
    fields.remove(LEASE);
    // A false record must not bar the lock for ever.
    told.map(|millis| Duration::from_millis(millis).min(DEFAULT_MAX_LEASE_DURATION))
}

/// The write that takes a lock which nothing holds (rule S5).
pub(super) fn take(lock: &Lock, rules: &Rules, session: &str, stamp: Stamp) -> Write {
    let Extras { mut unknown, take_backs, .. } = lock.extras.as_deref().cloned().unwrap_or_default();
    let millis = rules.lease_duration.as_nanos().div_ceil(1_000_000);
    unknown.set_number(LEASE, u64::try_from(millis).unwrap_or(u64::MAX));
    let (leader_transitions, session) = (lock.next_token, Some(session.to_owned()));
    // A lock of a session has no lease, and no renewals.
    let new = LeaderElectionRecord::new(&*rules.identity, Duration::ZERO).stamped(stamp);
    let peer = rules.peer(leader_transitions, None);
    let mut record =
        LeaderElectionRecord { renew_time: None, leader_transitions, session, peer, take_backs, unknown, ..new };
    record.claim_for(rules.purpose.as_deref());
    Write { purpose: Purpose::Acquire, record: Arc::new(record), expected: lock.version().cloned() }
}

/// The write that releases one lock (rule S6).
pub(super) fn release(lock: &Lock, rules: &Rules, stamp: Stamp) -> Option<Write> {
    let Seen::Ours { version, token } = &lock.seen else { return None };
    // A request that a read has shown is kept, for whatever other reason the term may have ended.
    let Extras { unknown, preferred, take_backs } = lock.extras.as_deref().cloned().unwrap_or_default();
    let (preferred_holder, leader_transitions) = (preferred, *token);
    let mut record = LeaderElectionRecord {
        leader_transitions,
        preferred_holder,
        take_backs,
        unknown,
        ..LeaderElectionRecord::new("", Duration::ZERO)
    };
    // The last read may be older than the term.
    record.claim_for(rules.purpose.as_deref());
    let record = Arc::new(record.released(stamp));
    Some(Write { purpose: Purpose::Release, record, expected: Some(version.clone()) })
}
