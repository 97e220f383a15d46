//! The write of a process, in several locks or in its only one.

use std::sync::Arc;

use leaderelection::implement::Version;
use leaderelection::majority::plan::{self, Plan};
use leaderelection::majority::view::View;
use leaderelection::{LeaderElectionRecord, StoreErrorKind};

/// The write of one lock.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Put {
    pub(super) part: usize,
    pub(super) record: Arc<LeaderElectionRecord>,
    pub(super) expected: Option<Version>,
}

impl From<plan::Put> for Put {
    fn from(put: plan::Put) -> Self {
        Self { part: put.part(), record: Arc::clone(put.record()), expected: put.expected().cloned() }
    }
}

/// A write, until its end is known.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Writing {
    /// Into several locks.
    Joint(Plan),
    /// Into one lock: the write that is not sent yet, and its answer.
    Alone(Arc<LeaderElectionRecord>, Option<Put>, Option<Result<Version, StoreErrorKind>>),
}

impl Writing {
    pub(super) fn alone(record: Arc<LeaderElectionRecord>, expected: Option<Version>) -> Self {
        let put = Put { part: 0, record: Arc::clone(&record), expected };
        Self::Alone(record, Some(put), None)
    }

    pub(super) fn record(&self) -> &Arc<LeaderElectionRecord> {
        match self {
            Self::Joint(plan) => plan.record(),
            Self::Alone(record, ..) => record,
        }
    }

    pub(super) fn send(&mut self) -> Option<Put> {
        match self {
            Self::Joint(plan) => plan.send().map(Put::from),
            Self::Alone(_, put, _) => put.take(),
        }
    }

    /// Takes the answer of a lock. Returns `None` if another answer is needed, or else whether the write is committed.
    pub(super) fn answered(&mut self, part: usize, answer: Result<Version, StoreErrorKind>) -> Option<bool> {
        match self {
            Self::Joint(plan) => plan.answered(part, answer),
            Self::Alone(_, _, answered) => Some(answered.insert(answer).is_ok()),
        }
    }

    /// The version that a write has made; `None` if it is not committed.
    pub(super) fn wrote(&self, view: &mut View) -> Option<Version> {
        match self {
            Self::Joint(plan) => view.wrote(plan),
            Self::Alone(_, _, answer) => answer.clone()?.ok(),
        }
    }

    /// The kind of error of a write that has failed, and the writes that roll back what it has taken.
    pub(super) fn failed(&self, view: &mut View) -> (StoreErrorKind, Vec<Put>) {
        match self {
            Self::Joint(plan) => {
                let (kind, _) = plan.failure();
                (kind, view.rolls_back(plan.clone(), kind).into_iter().map(Put::from).collect())
            }
            Self::Alone(_, _, answer) => {
                let error = answer.clone().and_then(Result::err);
                (error.unwrap_or(StoreErrorKind::Conflict), Vec::new())
            }
        }
    }

    /// Returns `true` if half a write is known to be committed.
    pub(super) fn is_half(&self) -> bool {
        matches!(self, Self::Joint(plan) if plan.is_begun())
    }

    /// Takes what a write that is committed leaves to the background, beside these that wait for an answer: writes, and locks to
    /// read.
    pub(super) fn unsent(&mut self, view: &mut View, sent: Vec<Put>) -> (Vec<Put>, Vec<usize>) {
        let Self::Joint(plan) = self else { return (sent, Vec::new()) };
        let puts: Vec<Put> = sent.into_iter().chain(plan.unsent().map(Put::from)).collect();
        let reads = view.leave(plan, &puts.iter().map(|put| put.part).collect());
        (puts, reads)
    }

    /// Returns `true` if the write ends nothing that is in the background.
    pub(super) fn is_renewal(&self) -> bool {
        matches!(self, Self::Joint(plan) if plan.is_renewal())
    }
}
