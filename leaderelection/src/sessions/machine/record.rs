//! Rules S5 and S6: the records of a lock, as a session writes and reads them.

use std::time::Duration;

use leaderelection_protocol::record::RELEASED_LEASE;
use leaderelection_protocol::session::{LockContent, SessionRecord};

use super::SessionId;
use super::lock::{Extras, Lock};
use crate::election::{ElectionConfig, WriteMeta};
use crate::lock::record::{DEFAULT_MAX_LEASE_DURATION, LeaderElectionRecord, UnknownFields};

/// The field with the lease of the session that holds the lock, in milliseconds.
const LEASE: &str = "sessionLeaseMillis";

impl SessionRecord for LeaderElectionRecord {
    fn session(&self) -> Option<SessionId> {
        self.session.as_deref().map(SessionId::from)
    }

    fn session_lease(&self) -> Option<Duration> {
        let stated = self.unknown.number(LEASE).filter(|millis| *millis > 0);
        // A false record must not block the lock forever.
        stated.map(|millis| Duration::from_millis(millis).min(DEFAULT_MAX_LEASE_DURATION))
    }

    fn of_lock(content: LockContent<'_, Self>, decoration: Self) -> Self {
        let LockContent { holder, token, write_id } = content;
        let mut record = Self { leader_transitions: token, write_id: Some(write_id), ..decoration };
        let Some((identity, session, lease)) = holder else {
            return Self { holder_identity: String::new(), lease_duration: RELEASED_LEASE, session: None, ..record };
        };
        let millis = lease.as_nanos().div_ceil(1_000_000);
        record.unknown.set_number(LEASE, u64::try_from(millis).unwrap_or(u64::MAX));
        let (holder_identity, session) = (identity.clone(), Some(session.to_string()));
        // A session's lock has no lease of its own.
        Self { holder_identity, session, lease_duration: Duration::ZERO, ..record }
    }
}

/// The unknown fields of a record without its session's lease, because each write states the lease of its own session.
pub(super) fn kept_fields(record: &LeaderElectionRecord) -> UnknownFields {
    let mut fields = record.unknown.clone();
    fields.remove(LEASE);
    fields
}

/// The decoration (all fields that no rule reads) of the record that takes a free lock (rule S5).
pub(super) fn decoration_of_take(
    lock: &Lock,
    rules: &ElectionConfig,
    token: u64,
    stamp: WriteMeta,
) -> LeaderElectionRecord {
    let Extras { unknown, failbacks, .. } = lock.extras.as_deref().cloned().unwrap_or_default();
    let new = LeaderElectionRecord::new(&*rules.identity, Duration::ZERO).stamped(stamp);
    let peer = rules.peer(token, None);
    let mut record = LeaderElectionRecord { renew_time: None, peer, failbacks, unknown, ..new };
    record.claim_for(rules.service.as_deref());
    record
}

/// The decoration of the record that releases one lock (rule S6).
pub(super) fn decoration_of_release(lock: &Lock, rules: &ElectionConfig, stamp: WriteMeta) -> LeaderElectionRecord {
    // A request for another leader that a read has shown is kept, even if the term ended for another reason.
    let Extras { unknown, preferred: preferred_holder, failbacks } =
        lock.extras.as_deref().cloned().unwrap_or_default();
    let new = LeaderElectionRecord::new("", Duration::ZERO);
    let mut record = LeaderElectionRecord { preferred_holder, failbacks, unknown, ..new };
    // The fields come from the last read, which may be older than the term and lack the service.
    record.claim_for(rules.service.as_deref());
    record.released(stamp)
}
