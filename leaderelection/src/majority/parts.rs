//! Reads and builds records for the kernel's rules about several parts.

use std::collections::BTreeMap;

use leaderelection_protocol::quorum::{self, ObservedPart};
use leaderelection_protocol::record::{Claims, Content, InParts, RELEASED_LEASE};

use crate::lock::VersionedRecord;
use crate::lock::record::{LeaderElectionRecord, LockParts, UnknownFields};
use crate::store::Version;

/// The suffix of the id of a write that rolls back a takeover.
const ROLLED_BACK: &str = "-returned";

/// The answers to a poll so far, by part; `None` for a part without an object.
pub type PollAnswers = BTreeMap<usize, Option<VersionedRecord>>;

/// Converts the answers to the kernel's type.
pub(super) fn observed(polled: &PollAnswers) -> quorum::ObservedParts<'_, LeaderElectionRecord> {
    quorum::ObservedParts(polled.iter().map(|(part, found)| (*part, found.as_ref().map(observed_in))).collect())
}

pub(super) fn observed_in(
    VersionedRecord { record, version, age }: &VersionedRecord,
) -> ObservedPart<'_, LeaderElectionRecord> {
    ObservedPart { record, version, age: *age }
}

/// Returns the object that a part has shown, if it has one.
pub(super) fn found(polled: &PollAnswers, part: usize) -> Option<&VersionedRecord> {
    polled.get(&part)?.as_ref()
}

/// The records of a poll.
pub(super) fn records(polled: &PollAnswers) -> impl Iterator<Item = &LeaderElectionRecord> {
    polled.values().flatten().map(|found| &found.record)
}

impl InParts for LeaderElectionRecord {
    /// The parts of the lock, without a term.
    type Parts = LockParts;
    type Mark = String;

    fn in_each_part(&self, LockParts { needed, of, .. }: &LockParts) -> Self {
        Self { parts: Some(LockParts::new(*needed, of.clone(), self.leader_transitions)), ..self.clone() }
    }

    fn has_same_holder_details(&self, other: &Self) -> bool {
        self.peer == other.peer && self.rank == other.rank
    }

    fn marks(&self) -> Vec<String> {
        self.completed_jobs()
    }

    fn whole(parts: BTreeMap<usize, (Option<&Version>, bool)>) -> Version {
        let parts = parts.into_iter().map(|(part, (version, counts))| (part, (version.map(Version::as_str), counts)));
        Version::new(serde_json::json!(parts.collect::<BTreeMap<_, _>>()).to_string())
    }

    fn counted_in(version: &Version) -> Option<BTreeMap<usize, Option<Version>>> {
        let parts: BTreeMap<usize, (Option<String>, bool)> = serde_json::from_str(version.as_str()).ok()?;
        let counted = parts.into_iter().filter(|(_, (_, counts))| *counts);
        Some(counted.map(|(part, (version, _))| (part, version.map(Version::new))).collect())
    }

    /// Begins with the id of the copy, because a candidate recognizes its old writes by the beginning of their ids.
    fn id_of_none(leading: Option<&String>, version: &Version) -> String {
        format!("{} {version}", leading.map_or("", String::as_str))
    }

    fn id_of_rollback(taken: &String) -> String {
        format!("{taken}{ROLLED_BACK}")
    }

    fn is_of_rollback(id: &String) -> bool {
        id.ends_with(ROLLED_BACK)
    }

    fn rolled_back(&self, content: Content<'_, Self>) -> Self {
        Self { peer: None, rank: None, ..self.clone().with(content) }
    }

    fn together(content: Content<'_, Self>, claims: Claims<'_, Self>) -> Self {
        let nobody = || Self::new("", RELEASED_LEASE);
        let mut record = claims.base.cloned().unwrap_or_else(nobody).with(content);
        // The lease can be requested only if the parts show one write (M9). Without the rank, nobody tries.
        record.rank = record.rank.filter(|_| claims.is_one_write);
        // The election knows only one lock. The next write adds the parts again.
        record.parts = None;
        let newest = || claims.before.into_iter().chain(claims.shown.iter().copied());
        record.unknown = UnknownFields::default();
        newest().for_each(|half| record.unknown.add_missing(&half.unknown));
        record.forget_claims();
        let stands = |service: &String| claims.stand(|other| other.service().as_ref() == Some(service));
        record.claim_for(newest().filter_map(Self::service).find(stands).as_deref());
        // A request in a single part may be followed, so the largest number counts.
        record.failbacks = claims.shown.iter().map(|half| half.failbacks).max().unwrap_or_default();
        claims.marks.into_iter().for_each(|marks| record.keep_jobs(marks));
        record
    }
}

impl LeaderElectionRecord {
    /// Replaces the fields that the kernel decides.
    fn with(self, content: Content<'_, Self>) -> Self {
        Self {
            holder_identity: content.holder.cloned().unwrap_or_default(),
            lease_duration: content.lease_duration,
            leader_transitions: content.token,
            write_id: content.write_id,
            preferred_holder: content.preferred.cloned(),
            ..self
        }
    }
}
