//! The requests of a write, and what their answers mean together: the [kernel's](leaderelection_protocol::quorum::Plan) plan with the
//! errors, second tries of a release, and an order that puts silent parts last.

use std::collections::BTreeSet;
use std::sync::Arc;

use leaderelection_protocol::quorum::{self, Failed, Unplanned};

use super::parts::seen_in;
use super::view::{MAX_UNDECIDED_POLLS, View};
use crate::lock::action::UPDATE;
use crate::lock::record::LeaderElectionRecord;
use crate::lock::{LockError, VersionedRecord};
use crate::store::{StoreErrorKind, Version};

/// The write of one part.
pub type Put = quorum::Put<LeaderElectionRecord>;

/// A write, until it is committed in enough parts, or can no longer be.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Plan {
    pub(super) plan: quorum::Plan<LeaderElectionRecord>,
    /// The writes that are sent once more if their parts refuse them.
    again: Vec<Put>,
    errors: Vec<StoreErrorKind>,
}

impl Plan {
    /// The record, without what is written into parts only.
    #[must_use]
    pub fn record(&self) -> &Arc<LeaderElectionRecord> {
        self.plan.record()
    }

    /// The writes that are not sent yet, in order.
    #[must_use]
    pub fn puts(&mut self) -> &[Put] {
        self.plan.puts()
    }

    /// The parts that have not answered their writes.
    pub(super) fn open(&self) -> impl Iterator<Item = usize> {
        self.plan.open()
    }

    /// Returns `true` if the write renews a lease that its holder has without some parts.
    #[must_use]
    pub fn is_renewal(&self) -> bool {
        !self.plan.is_in_turn() && !self.record().is_released()
    }

    /// The parts in which the write is committed.
    pub(super) fn written(&self) -> impl Iterator<Item = usize> {
        self.plan.written()
    }

    /// Returns `true` if the write is known to be committed in a part.
    #[must_use]
    pub fn is_begun(&self) -> bool {
        self.plan.written().len() > 0
    }

    /// Returns `true` if the write is committed in enough parts.
    pub(super) fn is_committed(&self) -> bool {
        self.plan.is_committed()
    }

    /// Returns the next write that is to be sent now.
    pub fn send(&mut self) -> Option<Put> {
        self.plan.send()
    }

    /// Takes the answer of a part. Returns `true` if the write is committed in enough parts, `false` if it can no longer be,
    /// and `None` if another answer is needed.
    pub fn answered(&mut self, part: usize, answer: Result<Version, StoreErrorKind>) -> Option<bool> {
        let answer = answer.map_err(|kind| {
            let may_pass = matches!(kind, StoreErrorKind::Rejected | StoreErrorKind::Ambiguous);
            if let Some(at) = self.again.iter().position(|put| put.part() == part).filter(|_| may_pass) {
                self.plan.send_again(self.again.swap_remove(at));
            }
            self.errors.push(kind);
            if kind == StoreErrorKind::Conflict { Failed::Conflict } else { Failed::Other }
        });
        self.plan.answered(part, answer)
    }

    /// Takes the writes that are not sent yet of a write that is committed.
    pub fn unsent(&mut self) -> impl Iterator<Item = Put> {
        self.plan.rest()
    }

    /// Takes the news that a part has asked to be left alone.
    pub(super) fn leaves_alone(&mut self, part: usize) {
        self.again.retain(|put| put.part() != part);
    }

    /// Returns `true` if the write is committed in some parts, or may be.
    pub(super) fn is_open(&self) -> bool {
        self.is_begun() || self.plan.open().next().is_some()
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
    /// Returns the requests of a write that is about to be sent.
    ///
    /// # Errors
    ///
    /// `expected` is no version of such a lock, or the write asks the holder of parts that show no one write.
    pub fn plan(&mut self, record: &LeaderElectionRecord, expected: Option<&Version>) -> Result<Plan, LockError> {
        let planned = self.quorum.plan(&Arc::new(record.clone()), expected, &self.avoided);
        let mut plan = planned.map_err(|problem| {
            let (kind, problem) = match problem {
                Unplanned::NotOneWrite => (StoreErrorKind::Rejected, "its parts do not show one write yet; try again"),
                Unplanned::UnknownVersion => {
                    (StoreErrorKind::Conflict, "the version is none of this lock; read the lock again")
                }
            };
            LockError::new(kind, UPDATE, self.describe(), problem)
        })?;
        if plan.is_in_turn() && !self.needs_all() {
            // Whoever begins a term holds none, so no part that is silent has to tell (M10).
            self.patience = 0;
            plan.puts().sort_by_key(|put| self.silent_writes.contains(&put.part()));
        }
        // No later write releases a part that has refused its release.
        let again = if plan.is_in_turn() || !record.is_released() { Vec::new() } else { plan.puts().to_vec() };
        Ok(Plan { plan, again, errors: Vec::new() })
    }

    /// The writes of a release into the parts that the term's last write has reached since these were planned.
    pub(super) fn late_puts(&self, released: &Plan, planned: &BTreeSet<usize>) -> Vec<Put> {
        let mut puts = self.quorum.release_all(&released.plan);
        puts.retain(|put| !planned.contains(&put.part()));
        puts
    }

    /// Takes a write that is committed in enough parts; `None` if it is not.
    pub fn wrote(&mut self, plan: &Plan) -> Option<Version> {
        let version = self.quorum.wrote(&plan.plan)?;
        self.patience = MAX_UNDECIDED_POLLS;
        Some(version)
    }

    /// Leaves these parts of a write that is committed to the background. Returns the parts that are read there, too: those of
    /// unknown version from which no answer is awaited.
    pub fn leave(&mut self, plan: &Plan, written: &BTreeSet<usize>) -> Vec<usize> {
        self.busy.extend(written);
        let reads: Vec<usize> = self.quorum.unread(&plan.plan).filter(|part| !self.busy.contains(part)).collect();
        self.busy.extend(&reads);
        reads
    }

    /// Takes the news that a part has no request in the background any more.
    pub fn has_ended(&mut self, part: usize) {
        self.busy.remove(&part);
    }

    /// Takes the news that the background is empty.
    pub fn all_have_ended(&mut self) {
        self.busy.clear();
    }

    /// Takes what a part shows that has answered after this record is committed in enough others. Returns the token of a part that
    /// the leader leaves alone, because its token is above the leader's.
    pub fn observe_part(
        &mut self,
        record: &LeaderElectionRecord,
        part: usize,
        found: Option<&VersionedRecord>,
    ) -> Option<u64> {
        self.quorum.observe_part(record, part, found.map(seen_in).as_ref())
    }

    /// Returns the writes that roll back the parts that a write has taken, after others have failed with this kind of error; none
    /// if they stay.
    pub fn rolls_back(&mut self, plan: Plan, kind: StoreErrorKind) -> Vec<Put> {
        // The candidate tries again much later, or follows whoever has taken the second lock. Nobody else must wait for its
        // half.
        let is_lost = matches!(kind, StoreErrorKind::Conflict | StoreErrorKind::Fatal);
        if is_lost { self.quorum.gives_back(plan.plan) } else { Vec::new() }
    }
}
