//! The work of a run, which starts with a term and may also end the term.

use std::sync::Arc;

use tokio::sync::mpsc::UnboundedSender;

use super::term::{Prepared, WorkInHand};
use crate::config::callbacks::{OnStart, Start, Work};
use crate::election::WorkEnd;
use crate::leadership::Leadership;
use crate::lock::job::JobId;
use crate::util::sync::Mutex;

/// The work of a run. A run prepares its work again if a term was over before the work could begin.
pub(crate) enum StartWork {
    /// The configured `on_start_leading`. When it completes, the term continues, as in client-go.
    Callback(Option<Arc<OnStart>>),
    /// Work of a caller. Boxed, because ten thousand locks may have callbacks, and few have this.
    Own(Box<Own>),
}

/// Work that a caller brings along.
pub(crate) enum Own {
    /// Work that is done once. The term ends with this work. If the work is a job, the job has to succeed only once.
    Once { start: Arc<Mutex<Option<Start>>>, job: Option<JobId> },
    /// The work of a caller who waits for the term. With `one_attempt`, the candidacy ends as soon as it would have to wait.
    InHand { hand: UnboundedSender<WorkInHand>, one_attempt: bool },
}

impl StartWork {
    pub(crate) fn once(start: impl FnOnce(Leadership) -> Work + Send + 'static) -> Self {
        Self::Own(Box::new(Own::Once { start: Arc::new(Mutex::new(Some(Box::new(start)))), job: None }))
    }

    pub(crate) fn in_hand(hand: UnboundedSender<WorkInHand>, one_attempt: bool) -> Self {
        Self::Own(Box::new(Own::InHand { hand, one_attempt }))
    }

    /// Makes the work a job.
    pub(crate) fn for_job(mut self, id: &JobId) -> Self {
        if let Self::Own(own) = &mut self
            && let Own::Once { job, .. } = &mut **own
        {
            *job = Some(id.clone());
        }
        self
    }

    pub(crate) fn ends_term(&self) -> bool {
        matches!(self.own(), Some(Own::Once { .. }))
    }

    pub(crate) fn is_one_attempt(&self) -> bool {
        matches!(self.own(), Some(Own::InHand { one_attempt: true, .. }))
    }

    pub(crate) fn job(&self) -> Option<JobId> {
        match self.own() {
            Some(Own::Once { job, .. }) => job.clone(),
            _ => None,
        }
    }

    fn own(&self) -> Option<&Own> {
        match self {
            Self::Own(own) => Some(own),
            Self::Callback(_) => None,
        }
    }

    /// Prepares the work of a term.
    pub(crate) fn prepare(&self) -> Prepared {
        match self {
            Self::Callback(None) => Prepared::Nothing,
            Self::Callback(Some(callback)) => {
                let callback = Arc::clone(callback);
                Prepared::Task(Box::new(move |leadership| callback(leadership)))
            }
            Self::Own(own) => own.prepare(),
        }
    }
}

impl Own {
    fn prepare(&self) -> Prepared {
        match self {
            Self::InHand { hand, .. } => Prepared::ForHand(hand.clone()),
            Self::Once { start, .. } => {
                // Taken when the work begins and not before: a term that is over by then leaves the work to the next
                // (rule 12).
                let start = Arc::clone(start);
                Prepared::Task(Box::new(move |leadership| match start.lock().take() {
                    Some(start) => start(leadership),
                    None => Box::pin(std::future::ready(WorkEnd::Complete.into())),
                }))
            }
        }
    }
}
