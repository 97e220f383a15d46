//! The work of a run. It begins with a term, and its end may also end the term.

use std::sync::Arc;

use tokio::sync::mpsc::UnboundedSender;

use super::term::{Prepared, TermGuard};
use crate::config::callbacks::{OnStart, Start, Work};
use crate::election::WorkEnd;
use crate::leadership::Leadership;
use crate::lock::job::JobId;
use crate::util::sync::Mutex;

/// The work of a run. A run prepares its work again if a term was over before the work could begin.
///
/// This type is small, because a process may have ten thousand locks, each with one.
pub(crate) enum StartWork {
    /// The configured `on_start_leading`. When it completes, the term continues, as in client-go.
    Callback(Option<Arc<OnStart>>),
    /// The work of a caller of `run_while_leading` or `run_once`. The term ends with the work.
    Once(Arc<Once>),
    /// The work of a caller who receives the term and does the work. With `one_attempt`, the candidacy ends as soon as it would have to
    /// wait.
    ForCaller { caller: UnboundedSender<TermGuard>, one_attempt: bool },
}

/// The work of one call of `run_while_leading` or, if there is a job, of `run_once`.
pub(crate) struct Once {
    /// `None` once the work has begun.
    start: Mutex<Option<Start>>,
    job: Option<JobId>,
}

impl StartWork {
    pub(crate) fn once(start: impl FnOnce(Leadership) -> Work + Send + 'static, job: Option<JobId>) -> Self {
        Self::Once(Arc::new(Once { start: Mutex::new(Some(Box::new(start))), job }))
    }

    pub(crate) fn ends_term(&self) -> bool {
        matches!(self, Self::Once(_))
    }

    pub(crate) fn is_one_attempt(&self) -> bool {
        matches!(self, Self::ForCaller { one_attempt: true, .. })
    }

    pub(crate) fn job(&self) -> Option<JobId> {
        if let Self::Once(once) = self { once.job.clone() } else { None }
    }

    /// Prepares the work of a term.
    pub(crate) fn prepare(&self) -> Prepared {
        match self {
            Self::Callback(None) => Prepared::Nothing,
            Self::Callback(Some(callback)) => {
                let callback = Arc::clone(callback);
                Prepared::Task(Box::new(move |leadership| callback(leadership)))
            }
            Self::Once(once) => {
                // Taken only when the work begins: if the term is over before that, the next term gets the work (rule 12).
                let once = Arc::clone(once);
                Prepared::Task(Box::new(move |leadership| match once.start.lock().take() {
                    Some(start) => start(leadership),
                    None => Box::pin(std::future::ready(WorkEnd::Complete.into())),
                }))
            }
            Self::ForCaller { caller, .. } => Prepared::ForCaller(caller.clone()),
        }
    }
}
