//! The decoration of a record: the fields that the kernel leaves to the policy.

use leaderelection_protocol::lease::{Kind, Permit};

use super::rules::ElectionConfig;
use crate::lock::record::{HolderRank, LeaderElectionRecord, WriteMeta};
use crate::store::MAX_BODY_BYTES;

impl ElectionConfig {
    /// Returns the decoration of a write, and the names of unknown fields that had to be left out. If `forgets` is `true`, a renewal resets
    /// the count of requests for the lease to 0 (rule 24).
    pub(super) fn decoration(
        &self,
        permit: &Permit<'_, LeaderElectionRecord>,
        stamp: &WriteMeta,
        forgets: bool,
    ) -> (LeaderElectionRecord, Vec<String>) {
        let (token, before) = (permit.token(), permit.replaces().map(|found| &*found.record));
        let mut record = match (permit.kind(), before) {
            (Kind::Renew, Some(before)) => LeaderElectionRecord {
                acquire_time: before.acquire_time,
                peer: self.peer(token, before.peer.as_ref()),
                rank: HolderRank::new(self.rank, token),
                failbacks: if forgets { 0 } else { before.failbacks },
                unknown: before.unknown.clone(),
                ..LeaderElectionRecord::new("", self.lease_duration)
            },
            (Kind::Release, Some(before)) => LeaderElectionRecord {
                failbacks: before.failbacks,
                unknown: before.unknown.clone(),
                ..LeaderElectionRecord::new("", self.lease_duration)
            },
            (_, before) => LeaderElectionRecord {
                peer: self.peer(token, None),
                rank: HolderRank::new(self.rank, token),
                failbacks: before.map_or(0, |before| before.failbacks),
                unknown: before.map(|before| before.unknown.clone()).unwrap_or_default(),
                ..LeaderElectionRecord::new("", self.lease_duration)
            },
        };
        record.acquire_time = record.acquire_time.or(Some(stamp.time));
        record.renew_time = Some(stamp.time);
        let mut left_out = Vec::new();
        if permit.kind() == Kind::Acquire {
            record.claim_for(self.service.as_deref());
            if record.unknown.size() > MAX_BODY_BYTES / 2 {
                // The kernel adds these fields later, so `make_room` has to count them.
                record.holder_identity.clone_from(&self.identity);
                record.leader_transitions = token;
                record.write_id = Some(stamp.write_id.clone());
                left_out = record.make_room();
            }
        }
        (record, left_out)
    }
}
