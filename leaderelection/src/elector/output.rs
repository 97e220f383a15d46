//! The output of the work of `run_while_leading` and `run_once`.

use std::mem::replace;
use std::sync::Arc;

use futures_util::FutureExt;

use super::run_error::RunError;
use super::work::StartWork;
use crate::config::callbacks::Work;
use crate::election::{RunOutcome, TermEndReason, WorkEnd};
use crate::leadership::Leadership;
use crate::lock::job::{JobId, JobOutcome};
use crate::util::sync::Mutex;

/// The output of the work of one `run_while_leading` or `run_once`, once the work has completed.
pub(crate) struct Output<T>(Arc<Mutex<OutputState<T>>>);

/// The progress of the work.
enum OutputState<T> {
    Waiting,
    Begun,
    Complete {
        output: T,
        /// `true` if the term was still valid when the work completed.
        in_time: bool,
    },
}

impl<T: Send + 'static> Output<T> {
    /// Returns `work` in the form that an elector starts, and the value that receives its output.
    pub(crate) fn of<F, W>(work: F) -> (StartWork, Self)
    where
        F: FnOnce(Leadership) -> W + Send + 'static,
        W: Future<Output = T> + Send + 'static,
    {
        Self::ending(work, None, |_| WorkEnd::Complete)
    }

    /// Like `of`, but for a `job` if there is one. `end` decides by the output how the work has ended.
    fn ending<F, W>(work: F, job: Option<JobId>, end: impl FnOnce(&T) -> WorkEnd + Send + 'static) -> (StartWork, Self)
    where
        F: FnOnce(Leadership) -> W + Send + 'static,
        W: Future<Output = T> + Send + 'static,
    {
        let progress = Arc::new(Mutex::new(OutputState::Waiting));
        let shared = Arc::clone(&progress);
        let start = move |leadership: Leadership| -> Work {
            let work = work(leadership.clone());
            *shared.lock() = OutputState::Begun;
            Box::pin(work.map(move |output| {
                // Checked when the work ends, to know whether all of it ran within the window.
                let (in_time, end) = (leadership.is_valid(), end(&output));
                *shared.lock() = OutputState::Complete { output, in_time };
                end.into()
            }))
        };
        (StartWork::once(start, job), Self(progress))
    }

    /// Returns the output of the work, given the outcome of the run.
    pub(crate) fn after(self, outcome: RunOutcome) -> Result<T, RunError> {
        let progress = replace(&mut *self.0.lock(), OutputState::Waiting);
        match (progress, outcome) {
            // If the term is lost after its work has completed, the output still counts.
            (OutputState::Complete { output, in_time: true }, _) => Ok(output),
            // A cancellation closes the window, but the lease is kept until the work ends, so the output counts.
            (OutputState::Complete { output, .. }, RunOutcome::Led { reason: TermEndReason::Cancelled, .. }) => {
                Ok(output)
            }
            (OutputState::Waiting, RunOutcome::Led { reason: TermEndReason::Cancelled, .. })
            | (_, RunOutcome::NeverLed | RunOutcome::JobDone { .. }) => Err(RunError::Cancelled),
            (_, RunOutcome::Led { fencing_token, reason }) => Err(RunError::Lost { fencing_token, reason }),
        }
    }
}

impl<T: Send + 'static, E: Send + 'static> Output<Result<T, E>> {
    /// Returns the `work` of a job in the form that an elector starts, and the value that receives its output.
    pub(crate) fn of_job<F, W>(id: &JobId, work: F) -> (StartWork, Self)
    where
        F: FnOnce(Leadership) -> W + Send + 'static,
        W: Future<Output = Result<T, E>> + Send + 'static,
    {
        let end = |output: &Result<T, E>| if output.is_ok() { WorkEnd::Complete } else { WorkEnd::Failed };
        Self::ending(work, Some(id.clone()), end)
    }

    /// Returns the outcome of the job, given the outcome of the run.
    pub(crate) fn after_job(self, outcome: RunOutcome) -> Result<JobOutcome<T, E>, RunError> {
        let RunOutcome::JobDone { fencing_token } = outcome else {
            let output = self.after(outcome)?;
            // Nobody knows whether the release with the mark was committed, so the job may be done again (rule 18).
            return Ok(output.map_or_else(JobOutcome::Failed, JobOutcome::Unmarked));
        };
        match (replace(&mut *self.0.lock(), OutputState::Waiting), fencing_token) {
            // With a token, the mark counts as this run's own (rule 18). Otherwise, another candidate has done the job.
            (OutputState::Complete { output: Ok(output), .. }, Some(_)) => Ok(JobOutcome::Done(output)),
            _ => Ok(JobOutcome::AlreadyDone),
        }
    }
}
