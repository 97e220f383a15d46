//! The work of a run, which starts with a term and may also end the term.

use std::sync::{Arc, Mutex, PoisonError};

use crate::callbacks::{OnStart, Start, Work};
use crate::election::WorkEnd;
use crate::job::JobId;
use crate::leadership::Leadership;

/// The work of a run. A run prepares its work again if a term was over before the work could begin.
pub(super) enum StartWork {
    /// The configured `on_start_leading`. When it completes, the leader goes on leading, as in client-go.
    Callback(Option<Arc<OnStart>>),
    /// Work that is done once. The term ends with this work. If the work is a job, the job has to succeed only once.
    Once { start: Arc<Mutex<Option<Start>>>, job: Option<JobId> },
}

impl StartWork {
    pub(super) fn once(start: impl FnOnce(Leadership) -> Work + Send + 'static) -> Self {
        Self::Once { start: Arc::new(Mutex::new(Some(Box::new(start)))), job: None }
    }

    /// Makes the work a job.
    pub(super) fn for_job(self, id: &JobId) -> Self {
        match self {
            Self::Once { start, .. } => Self::Once { start, job: Some(id.clone()) },
            callback @ Self::Callback(_) => callback,
        }
    }

    pub(super) fn ends_term(&self) -> bool {
        matches!(self, Self::Once { .. })
    }

    pub(super) fn job(&self) -> Option<JobId> {
        match self {
            Self::Once { job, .. } => job.clone(),
            Self::Callback(_) => None,
        }
    }

    /// Returns the function that begins the work; `None` if there is no work to do.
    pub(super) fn prepare(&self) -> Option<Start> {
        match self {
            Self::Callback(callback) => {
                let callback = Arc::clone(callback.as_ref()?);
                Some(Box::new(move |leadership| callback(leadership)))
            }
            Self::Once { start, .. } => {
                let start = Arc::clone(start);
                Some(Box::new(move |leadership| {
                    // No code that can panic runs under this lock.
                    match start.lock().unwrap_or_else(PoisonError::into_inner).take() {
                        Some(start) => start(leadership),
                        None => Box::pin(std::future::ready(WorkEnd::Complete.into())),
                    }
                }))
            }
        }
    }
}
