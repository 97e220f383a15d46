//! How an elector waits for the end of one candidacy.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use futures_util::FutureExt;
use tokio::sync::{MutexGuard, oneshot};

use super::orders::{Candidacy, Order};
use super::shared::LockEntry;
use crate::election::{RunOutcome, TermEndReason};
use crate::elector::ElectionError;
use crate::elector::work::StartWork;
use crate::util::stop::{self, Stop};

/// One candidacy, as its elector sees it. Dropping an attempt ends the candidacy.
///
/// Ten thousand attempts may wait in one process, so everything that an attempt needs only once is boxed.
pub(super) struct Attempt<'a> {
    entry: &'a Arc<LockEntry>,
    stop: Stop<'a>,
    outcome: oneshot::Receiver<Box<RunOutcome>>,
    /// Keeps the elector's next candidacy waiting, while the driver may know the candidacy.
    guard: Option<MutexGuard<'a, ()>>,
    is_cancel_sent: bool,
}

impl<'a> Attempt<'a> {
    /// Competes for one term, after standing back.
    pub(super) fn run(
        entry: &'a Arc<LockEntry>,
        stop: Stop<'a>,
        work: StartWork,
        stand_back: Duration,
    ) -> impl Future<Output = Result<RunOutcome, ElectionError>> + Send + 'a {
        let (done, outcome) = oneshot::channel();
        let candidacy = Box::new(Candidacy { work, stand_back, done });
        let mut attempt = Self { entry, stop, outcome, guard: None, is_cancel_sent: false };
        async move {
            if !Box::pin(attempt.begin(candidacy)).await? {
                return Ok(RunOutcome::NeverLed);
            }
            // If there is no outcome, the session has ended before it saw this candidacy, or the candidacy was withdrawn.
            Ok(poll_fn(|context| attempt.poll_end(context)).await.map_or(RunOutcome::NeverLed, |outcome| *outcome))
        }
    }

    /// Passes the candidacy to the running driver, once the elector's other candidacies have ended, and work that outlived its term.
    /// Returns `false` if the caller has cancelled before that.
    async fn begin(&mut self, candidacy: Box<Candidacy>) -> Result<bool, ElectionError> {
        let guard = async {
            // The guard comes first: only when the previous candidacy is over is its work known.
            let guard = self.entry.candidacy_lock.lock().await;
            let earlier_work = self.entry.earlier_work.lock().clone();
            earlier_work.ended().await;
            self.entry.shared.running().await.map(|()| guard)
        };
        tokio::select! {
            biased;
            () = stop::requested(self.stop.as_mut()) => return Ok(false),
            guard = guard => self.guard = Some(guard?),
        }
        self.entry.shared.order(self.entry, Order::Compete(candidacy));
        Ok(true)
    }

    /// Waits for the end of the candidacy, and ends it if the caller cancels. The output is `None` if there is no outcome.
    fn poll_end(&mut self, context: &mut Context<'_>) -> Poll<Option<Box<RunOutcome>>> {
        let mut outcome = self.outcome.poll_unpin(context);
        if outcome.is_pending() && !self.is_cancel_sent && self.stop.as_mut().poll(context).is_ready() {
            self.is_cancel_sent = true;
            self.entry.shared.order(self.entry, Order::Cancel);
            if !self.entry.shared.runs() {
                // The run has ended before it saw this candidacy. The next one sees that nobody waits for it.
                self.outcome.close();
                outcome = self.outcome.poll_unpin(context);
            }
        }
        if outcome.is_ready() {
            // The candidacy is over, so there is nothing left for the drop to end.
            self.guard = None;
        }
        outcome.map(Result::ok)
    }
}

impl Drop for Attempt<'_> {
    fn drop(&mut self) {
        if self.guard.is_some() {
            // The driver ends the term when it next runs. Leadership ends now.
            if let Some(leadership) = self.entry.status.leadership() {
                leadership.close(TermEndReason::Cancelled);
            }
            // Closed first: a run that begins now either sees that, or is seen here.
            self.outcome.close();
            if self.entry.shared.runs() {
                self.entry.shared.order(self.entry, Order::Drop);
            }
        }
    }
}
