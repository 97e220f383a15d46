//! The requests of a write: its parts, their order, what their answers mean together, and what is known of the parts then.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use super::parts::{Place, versions_in};
use super::view::{Own, Shown, View};
use crate::lock::action::UPDATE;
use crate::lock::record::{LeaderElectionRecord, RELEASED_LEASE};
use crate::lock::{LockError, VersionedRecord};
use crate::store::{StoreErrorKind, Version};

/// The write of one part.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Put {
    /// The number of the part.
    pub part: usize,
    /// The record.
    pub record: Arc<LeaderElectionRecord>,
    /// The version that the write replaces; `None` if the write creates the object.
    pub expected: Option<Version>,
}

/// A write, until it has landed in enough parts, or cannot any more.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Plan {
    /// The record, without what is written into parts only.
    pub record: Arc<LeaderElectionRecord>,
    /// The writes that are not sent yet, in order.
    pub puts: VecDeque<Put>,
    /// The parts to read when the write has landed, because their versions are not known.
    pub reads: Vec<usize>,
    /// The versions of the parts in which the write has landed.
    pub written: BTreeMap<usize, Version>,
    /// `true` if a write is sent when the one before is answered, and `false` if all are sent at once.
    in_turn: bool,
    /// The number of parts that are enough.
    quorum: usize,
    /// The parts that have not answered their writes.
    open: BTreeSet<usize>,
    /// The writes that are sent once more if their parts refuse them.
    again: Vec<Put>,
    errors: Vec<StoreErrorKind>,
}

/// The number of own writes that a view remembers. An own write that is forgotten counts as another candidate's, so its
/// lease is waited for.
const REMEMBERED_WRITES: usize = 64;

impl Plan {
    /// Creates the write of so many parts at least.
    #[must_use]
    pub fn new(record: Arc<LeaderElectionRecord>, puts: Vec<Put>, quorum: usize) -> Self {
        let (reads, written, open, errors) = (Vec::new(), BTreeMap::new(), BTreeSet::new(), Vec::new());
        Self { record, puts: puts.into(), reads, written, in_turn: true, quorum, open, again: Vec::new(), errors }
    }

    /// Returns the next write that is to be sent now.
    pub fn send(&mut self) -> Option<Put> {
        if self.in_turn && !self.open.is_empty() {
            return None;
        }
        let put = self.puts.pop_front()?;
        self.open.insert(put.part);
        Some(put)
    }

    /// Takes the answer of a part. Returns `true` if the write has landed in enough parts, `false` if it cannot any more, and `None`
    /// if another answer is needed (M2, M3 and M6).
    pub fn answered(&mut self, part: usize, answer: Result<Version, StoreErrorKind>) -> Option<bool> {
        self.open.remove(&part);
        match answer {
            Ok(version) => {
                self.written.insert(part, version);
            }
            Err(kind) => {
                // Whoever has taken a part before is the first to take the others.
                if self.in_turn && kind == StoreErrorKind::Conflict {
                    self.puts.clear();
                }
                let may_pass = matches!(kind, StoreErrorKind::Rejected | StoreErrorKind::Ambiguous);
                if let Some(at) = self.again.iter().position(|put| put.part == part).filter(|_| may_pass) {
                    self.puts.push_back(self.again.swap_remove(at));
                }
                self.errors.push(kind);
            }
        }
        let landed = self.written.len();
        if landed >= self.quorum {
            // A part that is not released costs a lease where all are needed, or another one does not answer.
            let is_all = self.open.is_empty() && self.puts.is_empty();
            return (!self.record.is_released() || is_all).then_some(true);
        }
        (landed + self.open.len() + self.puts.len() < self.quorum).then_some(false)
    }

    /// Returns `true` if the write is in enough parts.
    #[must_use]
    pub fn has_landed(&self) -> bool {
        self.written.len() >= self.quorum
    }

    /// Takes the news that a part has asked to be left alone.
    pub(super) fn leaves_alone(&mut self, part: usize) {
        self.again.retain(|put| put.part != part);
    }

    /// Returns `true` if the write has landed in some parts, or may.
    pub(super) fn is_open(&self) -> bool {
        !self.written.is_empty() || !self.open.is_empty()
    }

    /// Returns the kind of error of a write that has failed in too many parts, and the number of the error that counts.
    #[must_use]
    pub fn failure(&self) -> (StoreErrorKind, Option<usize>) {
        let weight = |kind: StoreErrorKind| match kind {
            StoreErrorKind::Fatal => 0,
            StoreErrorKind::Rejected => 1,
            StoreErrorKind::Conflict if !self.is_open() => 2,
            StoreErrorKind::Ambiguous | StoreErrorKind::Unreadable => 3,
            StoreErrorKind::Conflict => 4,
        };
        // Of equal errors, the first counts.
        let counts = (0..self.errors.len()).rev().max_by_key(|number| weight(self.errors[*number]));
        let kind = counts.map_or(StoreErrorKind::Conflict, |number| self.errors[number]);
        let is_known = !self.is_open() || matches!(kind, StoreErrorKind::Conflict | StoreErrorKind::Fatal);
        (if is_known { kind } else { StoreErrorKind::Ambiguous }, counts)
    }
}

impl View {
    /// Returns the requests of a write that is about to be sent (M2, M6 and M10).
    ///
    /// # Errors
    ///
    /// `expected` is no version of such a lock, or the write asks the holder of parts that show no one write (M9).
    pub fn plan(&mut self, record: &LeaderElectionRecord, expected: Option<&Version>) -> Result<Plan, LockError> {
        self.writes(record);
        let shown = self.shown.as_ref().filter(|shown| expected == Some(&shown.version));
        // A request keeps the write id of each part, by which the holder knows the part for its own.
        if self.asks(record) && !shown.is_some_and(|shown| shown.is_one_write) {
            let problem = "its parts do not show one write yet; try again";
            return Err(LockError::new(StoreErrorKind::Rejected, UPDATE, self.describe(), problem));
        }
        let renews = shown.is_some_and(|shown| {
            !record.is_released()
                && (record.holder_identity == self.identity && shown.record.holder_identity == self.identity)
                && record.leader_transitions == shown.record.leader_transitions
        });
        let is_written = |part: &usize, place: &Place| match place.counts {
            // A leader takes back every part that it can, and a candidate leaves to others what does not answer.
            true => renews || record.is_released() || self.looked.contains(part),
            false => renews && place.is_behind(record.leader_transitions),
        };
        let versions: BTreeMap<usize, Option<Version>> = match (shown, expected) {
            (Some(shown), _) => {
                let written = shown.parts.0.iter().filter(|(part, place)| is_written(part, place));
                written.map(|(part, place)| (*part, place.version.clone())).collect()
            }
            (None, Some(version)) => versions_in(version).ok_or_else(|| {
                let problem = "the version is none of this lock";
                LockError::new(StoreErrorKind::Conflict, UPDATE, self.describe(), problem)
            })?,
            (None, None) => self.looked.iter().map(|part| (*part, None)).collect(),
        };
        let is_unknown = |part: &usize| renews && shown.is_some_and(|shown| !shown.parts.0.contains_key(part));
        let reads = (0..self.names.len()).filter(is_unknown).collect();
        // A release that is tried again leaves alone what it has released: whoever has read that is about to replace it.
        let written: BTreeMap<usize, Version> = shown.map(|shown| self.released(record, shown)).unwrap_or_default();
        let versions = versions.into_iter().filter(|(part, _)| !written.contains_key(part));
        let mut puts = self.puts(record.clone(), versions);
        if record.is_released() {
            puts.reverse();
        }
        let in_turn = self.quorum == self.names.len() || !(renews || record.is_released());
        if in_turn && self.quorum < self.names.len() {
            puts.sort_by_key(|put| self.silent_writes.contains(&put.part));
        }
        // No later write releases a part that has refused its release.
        let again = if in_turn || !record.is_released() { Vec::new() } else { puts.clone() };
        Ok(Plan { reads, written, in_turn, again, ..Plan::new(Arc::new(record.clone()), puts, self.quorum) })
    }

    /// The parts that show an earlier try of this release, with all that it says.
    fn released(&self, record: &LeaderElectionRecord, shown: &Shown) -> BTreeMap<usize, Version> {
        let is_same = |half: &LeaderElectionRecord| {
            self.is_own(half)
                && record.is_released()
                && half.leader_transitions == record.leader_transitions
                && half.preferred_holder == record.preferred_holder
                && half.completed_jobs() == record.completed_jobs()
        };
        let those = shown.parts.0.iter().filter(|(_, place)| place.released.as_deref().is_some_and(is_same));
        those.filter_map(|(part, place)| Some((*part, place.version.clone()?))).collect()
    }

    /// The writes of a release into the parts that the term's last write has reached since these were planned.
    pub(super) fn late_puts(&self, released: &LeaderElectionRecord, planned: &BTreeSet<usize>) -> Vec<Put> {
        let shown = self.shown.iter().flat_map(|shown| &shown.parts.0);
        let late = shown.filter(|(part, place)| place.counts && !planned.contains(part));
        self.puts(released.clone(), late.map(|(part, place)| (*part, place.version.clone())))
    }

    /// The writes of a record into the parts with these versions.
    fn puts(
        &self,
        mut record: LeaderElectionRecord,
        versions: impl IntoIterator<Item = (usize, Option<Version>)>,
    ) -> Vec<Put> {
        record.parts = Some(self.parts_in(record.leader_transitions));
        let record = Arc::new(record);
        versions.into_iter().map(|(part, expected)| Put { part, record: Arc::clone(&record), expected }).collect()
    }

    /// Remembers a write that is about to be sent. A request to a leader is not remembered, because it keeps the write id of
    /// the leader's record.
    pub fn writes(&mut self, record: &LeaderElectionRecord) {
        if !self.asks(record) {
            self.remember(record);
        }
    }

    /// Returns `true` if a write asks its holder for the lease.
    pub(super) fn asks(&self, record: &LeaderElectionRecord) -> bool {
        !record.is_released() && record.holder_identity != self.identity
    }

    fn remember(&mut self, record: &LeaderElectionRecord) {
        self.own.push_back(Own { record: Arc::new(record.clone()), is_awaited: true });
        if self.own.len() > REMEMBERED_WRITES {
            self.own.pop_front();
        }
    }

    /// Takes a write that has landed in enough parts.
    pub fn wrote(&mut self, record: &LeaderElectionRecord, written: &BTreeMap<usize, Version>) -> Version {
        if written.len() == self.names.len() {
            // No earlier write can land any more, because each names a version that has been replaced.
            self.own.retain(|own| own.record.write_id == record.write_id);
        }
        // A new term reads the parts that it leaves alone, and tells of them.
        let is_of_term = |shown: &Shown| shown.record.leader_transitions == record.leader_transitions;
        let mut parts = self.shown.take().filter(is_of_term).map(|shown| shown.parts).unwrap_or_default();
        // The others are being written, or have changed.
        parts.0.retain(|_, place| !place.counts && !place.is_behind(record.leader_transitions));
        parts.0.extend(written.iter().map(|(part, version)| (*part, Place::written(version.clone()))));
        let version = parts.version();
        self.shown = Some(Shown { record: record.clone(), version: version.clone(), parts, is_one_write: true });
        version
    }

    /// Takes the answer of a part to a write that has landed in enough others.
    pub fn wrote_late(&mut self, record: &LeaderElectionRecord, part: usize, version: Version) {
        self.learn(record, part, Place::written(version));
    }

    /// Takes the read of a part whose version was not known when this record was written. Returns the token of a part that the
    /// leader leaves alone, because its token is above the leader's (M10).
    pub fn read_late(
        &mut self,
        record: &LeaderElectionRecord,
        part: usize,
        found: Option<&VersionedRecord>,
    ) -> Option<u64> {
        let is_own = found.is_some_and(|found| self.is_own(&found.record));
        let place = Place::new(found, is_own);
        let is_above = !place.is_behind(record.leader_transitions);
        self.learn(record, part, place);
        found.map(|found| found.record.leader_transitions).filter(|_| is_above)
    }

    fn learn(&mut self, record: &LeaderElectionRecord, part: usize, place: Place) {
        if let Some(shown) = self.shown.as_mut().filter(|shown| shown.record.write_id == record.write_id) {
            shown.parts.0.insert(part, place);
        }
    }

    /// Returns the writes that give back the parts that a write has taken, after others have failed with this kind of error
    /// (M7); none if they stay.
    pub fn gives_back(&mut self, Plan { record, written, .. }: &Plan, kind: StoreErrorKind) -> Vec<Put> {
        // The candidate tries again much later, or follows whoever has taken the second lock. Nobody else must wait for its
        // half.
        let is_lost = matches!(kind, StoreErrorKind::Conflict | StoreErrorKind::Fatal);
        // A renewal belongs to a term that goes on, and half of a request belongs to the leader that is asked. Only the first
        // write of a term raises the token.
        let shown = self.shown.as_ref().map(|shown| shown.record.leader_transitions);
        if written.is_empty() || !is_lost || shown >= Some(record.leader_transitions) {
            return Vec::new();
        }
        let returned = LeaderElectionRecord {
            holder_identity: String::new(),
            lease_duration: RELEASED_LEASE,
            write_id: record.write_id.as_ref().map(|id| format!("{id}-returned")),
            peer: None,
            rank: None,
            ..(**record).clone()
        };
        // The store may have carried out the second half, and may give the first one back at any later moment. So the write
        // counts for nothing from now on.
        self.own.iter_mut().for_each(|own| own.is_awaited = false);
        self.remember(&returned);
        self.puts(returned, written.iter().rev().map(|(part, version)| (*part, Some(version.clone()))))
    }
}
