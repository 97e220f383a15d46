//! The calls of processes.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use leaderelection::election::Purpose;
use leaderelection::majority::parts::Looks;
use leaderelection::majority::plan::{Plan, Put};
use leaderelection::majority::view::View;
use leaderelection::{LeaderElectionRecord, StoreErrorKind, Version};

use crate::phase::Phase;

/// A call of a process, and what is left of it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Call {
    /// A read of the locks, with the answers so far.
    Look(Box<Looks>),
    Write {
        purpose: Purpose,
        record: Arc<LeaderElectionRecord>,
        left: Left,
        /// The versions of the writes that have landed.
        written: BTreeMap<usize, Version>,
        /// The error that counts, of those so far.
        error: Option<StoreErrorKind>,
    },
    /// The writes that give back what a write has taken, and the error of that write.
    Return(Vec<Put>, StoreErrorKind),
}

/// The requests of a write whose answers its process did not wait for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Rest {
    pub(super) record: Arc<LeaderElectionRecord>,
    pub(super) left: Left,
}

/// The requests of a write that are not answered yet. The numbers are those of the locks.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Left {
    pub(super) puts: VecDeque<Put>,
    pub(super) reads: Vec<usize>,
    pub(super) in_turn: bool,
}

impl Left {
    /// The requests of a write that a process sends.
    pub(super) fn of(
        (phase, view): (Phase, &mut View),
        record: &LeaderElectionRecord,
        expected: Option<&Version>,
    ) -> Self {
        let plan = if phase.is_joint() {
            view.plan(record, expected).expect("a version of the view")
        } else {
            let put = Put { part: 0, record: Arc::new(record.clone()), expected: expected.cloned() };
            Plan { puts: [put].into(), reads: Vec::new(), in_turn: true }
        };
        let lock = |part: usize| phase.parts[part];
        Self {
            puts: plan.puts.into_iter().map(|put| Put { part: lock(put.part), ..put }).collect(),
            reads: plan.reads.into_iter().map(lock).collect(),
            in_turn: plan.in_turn,
        }
    }

    pub(super) fn is_done(&self) -> bool {
        self.puts.is_empty() && self.reads.is_empty()
    }

    /// Takes the write of a lock.
    pub(super) fn take(&mut self, part: usize) -> Option<Put> {
        let at = self.puts.iter().position(|put| put.part == part)?;
        self.puts.remove(at)
    }

    pub(super) fn forget(&mut self, part: usize) {
        self.puts.retain(|put| put.part != part);
        self.reads.retain(|read| *read != part);
    }
}
