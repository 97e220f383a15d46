//! Rule 18: the job of a candidacy, which has to succeed only once.

use std::time::Duration;

use super::LockId;
use super::lock::{Extras, Phase};
use super::member::Member;
use crate::clock::LocalInstant;
use crate::lock::record::LeaderElectionRecord;
use crate::term::{RunOutcome, WorkEnd};

impl Member {
    /// Marks the job as done in the next record of the lock, if the work of its term has succeeded.
    pub(super) fn mark_job(&mut self, id: LockId) {
        let lock = self.locks.get_mut(id.0 as usize).filter(|lock| lock.work_end == Some(WorkEnd::Complete));
        if let (Some(job), Some(lock)) = (self.jobs.get(&id.0), lock) {
            // Only a whole record can add a mark to its unknown fields.
            let Extras { unknown, .. } = lock.extras.get_or_insert_default().as_mut();
            let kept = std::mem::take(unknown);
            let mut record = LeaderElectionRecord { unknown: kept, ..LeaderElectionRecord::new("", Duration::ZERO) };
            record.mark_done(&job.id);
            *unknown = record.unknown;
        }
    }

    /// Handles a committed release: if the work has succeeded, the release carries the job's mark, so the job is done.
    pub(super) fn note_job_done(&mut self, id: LockId) {
        if let (Some(job), Some(lock)) = (self.jobs.get_mut(&id.0), self.locks.get(id.0 as usize)) {
            job.done |= lock.work_end == Some(WorkEnd::Complete);
        }
    }

    /// Ends a candidacy for a job that is done.
    pub(super) fn finish_if_job_is_done(&mut self, now: LocalInstant, id: LockId) {
        let competes = self.lock(id).is_some_and(|lock| lock.phase == Phase::Competing);
        if competes && self.jobs.get(&id.0).is_some_and(|job| job.done) {
            self.stop_elector(now, id);
        }
    }

    /// Returns the outcome of a candidacy. `outcome` is what it would be without a job. If the job is done, the outcome
    /// is `JobDone`, unless the candidate led without success.
    pub(super) fn outcome_of_job(&self, id: LockId, outcome: RunOutcome, work: Option<WorkEnd>) -> RunOutcome {
        match outcome {
            outcome if !self.jobs.get(&id.0).is_some_and(|job| job.done) => outcome,
            RunOutcome::NeverLed => RunOutcome::JobDone { fencing_token: None },
            RunOutcome::Led { fencing_token, .. } if work == Some(WorkEnd::Complete) => {
                RunOutcome::JobDone { fencing_token: Some(fencing_token) }
            }
            outcome => outcome,
        }
    }
}
