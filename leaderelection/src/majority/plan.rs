//! Plans the requests of a write, and combines their answers. To the [kernel's plan](leaderelection_protocol::quorum::Plan), this adds
//! the errors, second attempts of a release, and an order in which silent parts are last.

use std::collections::BTreeSet;
use std::sync::Arc;

use leaderelection_protocol::quorum::{self, Failed, Unplanned};

use super::parts::observed_in;
use super::view::{MAX_UNDECIDED_POLLS, View};
use crate::lock::action::UPDATE;
use crate::lock::record::LeaderElectionRecord;
use crate::lock::{LockError, VersionedRecord};
use crate::store::{StoreErrorKind, Version};

/// The write of one part.
pub type Put = quorum::Put<LeaderElectionRecord>;

/// A write until it is committed in enough parts, or can no longer be.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Plan {
    pub(super) plan: quorum::Plan<LeaderElectionRecord>,
    /// The writes that are sent once more if their parts reject them.
    again: Vec<Put>,
    errors: Vec<StoreErrorKind>,
}

impl Plan {
    /// The record, without the fields that only copies in parts have.
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

    /// Returns `true` if the write renews the lease of a lock of which a leader needs only some parts.
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
            let is_temporary = matches!(kind, StoreErrorKind::Rejected | StoreErrorKind::Ambiguous);
            if let Some(at) = self.again.iter().position(|put| put.part() == part).filter(|_| is_temporary) {
                self.plan.send_again(self.again.swap_remove(at));
            }
            self.errors.push(kind);
            if kind == StoreErrorKind::Conflict { Failed::Conflict } else { Failed::Other }
        });
        self.plan.answered(part, answer)
    }

    /// Takes out the requests of a committed write that are not sent yet.
    pub fn unsent(&mut self) -> impl Iterator<Item = Put> {
        self.plan.rest()
    }

    /// Prevents a second attempt at a part, because the part has sent a `Retry-After`.
    pub(super) fn do_not_repeat(&mut self, part: usize) {
        self.again.retain(|put| put.part() != part);
    }

    /// Returns `true` if the write is committed in some parts, or may be.
    pub(super) fn may_be_in_a_part(&self) -> bool {
        self.is_begun() || self.plan.open().next().is_some()
    }

    /// Returns the kind of error of a write that failed in too many parts, and the index of the error to report if any.
    #[must_use]
    pub fn failure(&self) -> (StoreErrorKind, Option<usize>) {
        let weight = |kind: StoreErrorKind| match kind {
            StoreErrorKind::Fatal => 0,
            StoreErrorKind::Rejected => 1,
            StoreErrorKind::Conflict if !self.may_be_in_a_part() => 2,
            StoreErrorKind::Ambiguous | StoreErrorKind::Unreadable => 3,
            // No other error may hide this one: after a conflict, the parts that the write has taken are rolled back.
            StoreErrorKind::Conflict => 4,
        };
        // Of the errors with the largest weight, the first is reported.
        let index = (0..self.errors.len()).rev().max_by_key(|index| weight(self.errors[*index]));
        let kind = index.map_or(StoreErrorKind::Conflict, |index| self.errors[index]);
        let is_final = !self.may_be_in_a_part() || matches!(kind, StoreErrorKind::Conflict | StoreErrorKind::Fatal);
        (if is_final { kind } else { StoreErrorKind::Ambiguous }, index)
    }
}

impl View {
    /// Returns the requests of a write that is about to be sent.
    ///
    /// # Errors
    ///
    /// `expected` is not a version of this lock, or this is a transfer request and the parts do not show one write.
    pub fn plan(&mut self, record: &LeaderElectionRecord, expected: Option<&Version>) -> Result<Plan, LockError> {
        let planned = self.quorum.plan(&Arc::new(record.clone()), expected, &self.avoided);
        let mut plan = planned.map_err(|problem| {
            let (kind, problem) = match problem {
                Unplanned::NotOneWrite => (StoreErrorKind::Rejected, "its parts do not show one write yet; try again"),
                Unplanned::UnknownVersion => {
                    (StoreErrorKind::Conflict, "the version is not one of this lock; read the lock again")
                }
            };
            LockError::new(kind, UPDATE, self.describe(), problem)
        })?;
        if plan.is_in_turn() && !self.needs_all() {
            // A candidate that takes the lock, or requests it, does not hold it, so it need not wait for silent parts (M10).
            self.patience = 0;
            plan.puts().sort_by_key(|put| self.silent_writes.contains(&put.part()));
        }
        // A part that rejects its release is tried once more, because no later write releases it.
        let again = if plan.is_in_turn() || !record.is_released() { Vec::new() } else { plan.puts().to_vec() };
        Ok(Plan { plan, again, errors: Vec::new() })
    }

    /// The additional requests of a release, to parts that the term's last write has reached since the release was planned.
    pub(super) fn late_puts(&self, released: &Plan, planned: &BTreeSet<usize>) -> Vec<Put> {
        let mut puts = self.quorum.release_all(&released.plan);
        puts.retain(|put| !planned.contains(&put.part()));
        puts
    }

    /// Takes the outcome of a write. Returns the version of the whole lock, or `None` if the write is not committed in enough parts.
    pub fn wrote(&mut self, plan: &Plan) -> Option<Version> {
        let version = self.quorum.wrote(&plan.plan)?;
        self.patience = MAX_UNDECIDED_POLLS;
        Some(version)
    }

    /// Notes the parts that get requests in the background after a write was committed: those in `written`, and those
    /// that are returned. The latter are read: their versions are unknown, and they have no request yet.
    pub fn leave(&mut self, plan: &Plan, written: &BTreeSet<usize>) -> Vec<usize> {
        self.busy.extend(written);
        let reads: Vec<usize> = self.quorum.unread(&plan.plan).filter(|part| !self.busy.contains(part)).collect();
        self.busy.extend(&reads);
        reads
    }

    /// Notes that a part no longer has a request in the background.
    pub fn has_ended(&mut self, part: usize) {
        self.busy.remove(&part);
    }

    /// Notes that no part has a request in the background.
    pub fn all_have_ended(&mut self) {
        self.busy.clear();
    }

    /// Handles a late answer of a part, after `record` was committed in enough others. If the part's token is above the
    /// leader's, the leader does not write this part, and the token is returned.
    pub fn observe_part(
        &mut self,
        record: &LeaderElectionRecord,
        part: usize,
        found: Option<&VersionedRecord>,
    ) -> Option<u64> {
        self.quorum.observe_part(record, part, found.map(observed_in).as_ref())
    }

    /// Returns the requests that roll back a write which failed with this kind of error, in the parts that it has taken. There are none if
    /// the candidate tries again soon.
    pub fn rolls_back(&mut self, plan: Plan, kind: StoreErrorKind) -> Vec<Put> {
        // After a fatal error, the candidate tries again much later; after a conflict, it follows another one that was faster. Others must
        // not have to wait for the parts that it has taken.
        let is_lost = matches!(kind, StoreErrorKind::Conflict | StoreErrorKind::Fatal);
        if is_lost { self.quorum.roll_back(plan.plan) } else { Vec::new() }
    }
}
