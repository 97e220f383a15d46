//! The output of work that is done once.

use std::future::Future;
use std::mem::replace;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::run_error::RunError;
use super::work::StartWork;
use crate::election::{EndReason, RunOutcome};
use crate::leadership::Leadership;

/// The output of the work of one `run_while_leading`.
pub(super) struct Output<T>(Arc<Mutex<Progress<T>>>);

/// The progress of the work.
enum Progress<T> {
    Waiting,
    Begun,
    Complete {
        output: T,
        /// `true` if the term was valid when the work was complete.
        in_time: bool,
    },
}

impl<T: Send + 'static> Output<T> {
    /// Returns the work of a term, and the place of its output.
    pub(super) fn of<F, W>(work: F) -> (StartWork, Self)
    where
        F: FnOnce(Leadership) -> W + Send + 'static,
        W: Future<Output = T> + Send + 'static,
    {
        let progress = Arc::new(Mutex::new(Progress::Waiting));
        let shared = Arc::clone(&progress);
        let work = StartWork::once(move |leadership| {
            let work = work(leadership.clone());
            *lock(&shared) = Progress::Begun;
            Box::pin(async move {
                let output = work.await;
                let in_time = leadership.is_valid();
                *lock(&shared) = Progress::Complete { output, in_time };
            })
        });
        (work, Self(progress))
    }

    /// Returns the output of the work in a run with this outcome.
    pub(super) fn after(self, outcome: RunOutcome) -> Result<T, RunError> {
        let progress = replace(&mut *lock(&self.0), Progress::Waiting);
        match (progress, outcome) {
            (Progress::Complete { output, in_time: true }, _) => Ok(output),
            (Progress::Complete { output, .. }, RunOutcome::Led { reason: EndReason::Cancelled, .. }) => Ok(output),
            (Progress::Waiting, RunOutcome::Led { reason: EndReason::Cancelled, .. }) | (_, RunOutcome::NeverLed) => {
                Err(RunError::Cancelled)
            }
            (_, RunOutcome::Led { fencing_token, reason }) => Err(RunError::Lost { fencing_token, reason }),
        }
    }
}

fn lock<T>(progress: &Mutex<T>) -> MutexGuard<'_, T> {
    // No code that could panic runs under the lock.
    progress.lock().unwrap_or_else(PoisonError::into_inner)
}
