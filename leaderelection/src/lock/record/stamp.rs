//! The marks of a write in its record, and the record that releases a lock.

use chrono::{DateTime, Utc};

use super::{LeaderElectionRecord, RELEASED_LEASE};

/// The marks that make a write unique and dated.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Stamp {
    /// The write id, which no writer has ever used before.
    pub write_id: String,
    /// The wall time for the times in the record, which no decision reads.
    pub time: DateTime<Utc>,
}

impl LeaderElectionRecord {
    /// Returns the record with the marks of a write. A record without a beginning of its term begins one.
    pub(crate) fn stamped(self, Stamp { write_id, time }: Stamp) -> Self {
        let acquire_time = self.acquire_time.or(Some(time));
        Self { acquire_time, renew_time: Some(time), write_id: Some(write_id), ..self }
    }

    /// Returns the record that releases this one (rule 9): without a holder and all that is the holder's. The token stays, and
    /// so do the next leader's name, the number of requests for the lease, and what others have written.
    pub(crate) fn released(self, stamp: Stamp) -> Self {
        let (holder_identity, lease_duration) = (String::new(), RELEASED_LEASE);
        let released = Self { acquire_time: None, session: None, peer: None, rank: None, parts: None, ..self };
        Self { holder_identity, lease_duration, ..released }.stamped(stamp)
    }
}
