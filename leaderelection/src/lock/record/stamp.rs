//! The ID and the time that a write puts into its record, and the record that releases a lock.

use chrono::{DateTime, Utc};

use super::{LeaderElectionRecord, RELEASED_LEASE};

/// The ID and the time of one write.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct WriteMeta {
    /// The write id, which no writer has ever used before.
    pub write_id: String,
    /// The wall time for `acquireTime` and `renewTime`. No decision depends on it.
    pub time: DateTime<Utc>,
}

impl LeaderElectionRecord {
    /// Returns the record with the ID and the time of a write. Sets `acquireTime`, too, if the record has none.
    pub(crate) fn stamped(self, WriteMeta { write_id, time }: WriteMeta) -> Self {
        let acquire_time = self.acquire_time.or(Some(time));
        Self { acquire_time, renew_time: Some(time), write_id: Some(write_id), ..self }
    }

    /// Returns the record that releases the lock (rule 9): without a holder, and without the fields that describe the
    /// holder. The token, the preferred holder, the number of fail-backs and the unknown fields stay.
    pub(crate) fn released(self, stamp: WriteMeta) -> Self {
        let (holder_identity, lease_duration) = (String::new(), RELEASED_LEASE);
        let released = Self { acquire_time: None, session: None, peer: None, rank: None, parts: None, ..self };
        Self { holder_identity, lease_duration, ..released }.stamped(stamp)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::lock::record::{HolderRank, LockParts, PeerAddress};

    #[test]
    fn a_released_record_has_nothing_of_the_holder_but_the_token() {
        let stamp = |write_id: &str, seconds| WriteMeta {
            write_id: write_id.to_owned(),
            time: DateTime::from_timestamp(seconds, 0).unwrap(),
        };
        let held = LeaderElectionRecord {
            leader_transitions: 7,
            preferred_holder: Some("b".to_owned()),
            session: Some("a-1".to_owned()),
            peer: Some(PeerAddress::new("https://a", 7).into()),
            rank: HolderRank::new(2, 7),
            parts: Some(LockParts::new(2, vec!["a".to_owned()], 7)),
            failbacks: 3,
            ..LeaderElectionRecord::new("a", Duration::from_secs(15))
        };
        let released = held.stamped(stamp("held", 1000)).released(stamp("released", 2000));
        let expected = LeaderElectionRecord {
            leader_transitions: 7,
            preferred_holder: Some("b".to_owned()),
            failbacks: 3,
            acquire_time: DateTime::from_timestamp(2000, 0),
            renew_time: DateTime::from_timestamp(2000, 0),
            write_id: Some("released".to_owned()),
            ..LeaderElectionRecord::new("", RELEASED_LEASE)
        };
        assert_eq!(released, expected);
    }
}
