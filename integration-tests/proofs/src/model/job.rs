//! A job that has to succeed only once, and the promises about it.

use leaderelection::LeaderElectionRecord;
use leaderelection::election::{Purpose, Request, RunOutcome, Write};

use super::promise::Violation;
use super::setup::Setup;
use super::world::World;
use crate::kit::Cell;

impl World {
    /// Records that the work of a node's term has succeeded.
    pub(super) fn succeed(&mut self, index: usize) {
        if let Some(token) = self.nodes[index].term {
            self.job.succeeded |= 1 << token;
        }
    }

    /// Returns the promise that work which begins now breaks. Without a bound on the clocks, the work of an earlier term
    /// may begin after a later term has done the job.
    pub(super) fn broken_by_work(&self, setup: &Setup, index: usize) -> Option<Violation> {
        (setup.has_job(index) && setup.trusted_clocks && self.job.marked).then_some(Violation::Repetition)
    }

    /// Returns the promise that a request breaks which would begin a term for a job that is done. The store applies the
    /// request only on the version that it names, so no mark can be committed before the request does.
    pub(super) fn broken_by_request(&self, setup: &Setup, index: usize, request: &Request) -> Option<Violation> {
        let Request::Write(Write { purpose: Purpose::Acquire, expected, .. }) = request else { return None };
        let cell = self.cell.as_ref().filter(|cell| Some(&cell.version) == expected.as_ref())?;
        (setup.has_job(index) && setup.is_done(&cell.record)).then_some(Violation::Repetition)
    }

    /// Records a write that is committed, and returns the promise about marks that the write breaks.
    pub(super) fn mark(&mut self, setup: &Setup, record: &LeaderElectionRecord) -> Option<Violation> {
        if setup.jobs == 0 {
            return None;
        }
        let (was_done, is_done) = (self.job.marked, setup.is_done(record));
        self.job.marked |= is_done;
        let marks = record.is_released() && self.job.has_succeeded(record.leader_transitions);
        match (was_done, is_done) {
            (true, false) => Some(Violation::LostMark),
            (false, true) if !marks => Some(Violation::FalseMark),
            (false, false) if marks => Some(Violation::MissingMark),
            _ => None,
        }
    }

    /// Returns the promise that the outcome of a node's candidacy breaks.
    pub(super) fn broken_by_outcome(&self, setup: &Setup, index: usize, outcome: &RunOutcome) -> Option<Violation> {
        let node = &self.nodes[index];
        let is_ours = |cell: &&Cell| cell.writer == Some(index) && !cell.record.is_released();
        match outcome {
            RunOutcome::JobDone { fencing_token } => {
                let did_it = fencing_token.is_none_or(|token| self.job.has_succeeded(token.into()));
                (!self.job.marked || !did_it).then_some(Violation::FalseReport)
            }
            RunOutcome::Led { fencing_token, .. }
                if self.job.has_succeeded((*fencing_token).into())
                    && node.election.observed().is_some_and(|(record, _)| setup.is_done(record)) =>
            {
                Some(Violation::FalseReport)
            }
            _ if node.gave_up => None,
            _ => {
                let token = self.cell.as_ref().filter(is_ours)?.record.leader_transitions;
                (node.term == Some(token) && self.job.has_succeeded(token)).then_some(Violation::MissingMark)
            }
        }
    }
}
