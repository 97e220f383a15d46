//! Sends one candidacy to the driver, and waits for its end.

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
/// Ten thousand attempts may wait in one process, so what an attempt needs only once is boxed.
pub(super) struct Attempt<'a> {
    entry: &'a Arc<LockEntry>,
    stop: Stop<'a>,
    outcome: oneshot::Receiver<Box<RunOutcome>>,
    /// Held from the order to compete until the end of the candidacy. The elector's next candidacy waits for it.
    guard: Option<MutexGuard<'a, ()>>,
    is_cancel_sent: bool,
}

impl<'a> Attempt<'a> {
    /// Competes for one term, and lets others go first for `stand_back`.
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
            // There is no outcome if the run ended before it saw this candidacy, or if the candidacy was withdrawn while it waited.
            Ok(poll_fn(|context| attempt.poll_end(context)).await.map_or(RunOutcome::NeverLed, |outcome| *outcome))
        }
    }

    /// Passes the candidacy to the driver, once the elector's previous candidacy and its work have ended and the session runs. Returns
    /// `false` if the caller cancels before that.
    async fn begin(&mut self, candidacy: Box<Candidacy>) -> Result<bool, ElectionError> {
        let guard = async {
            // The guard comes first: until the previous candidacy is over, it may start more work.
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

    /// Waits for the outcome of the candidacy; `None` if the driver sends none. If the caller cancels, cancels it.
    fn poll_end(&mut self, context: &mut Context<'_>) -> Poll<Option<Box<RunOutcome>>> {
        let mut outcome = self.outcome.poll_unpin(context);
        if outcome.is_pending() && !self.is_cancel_sent && self.stop.as_mut().poll(context).is_ready() {
            self.is_cancel_sent = true;
            self.entry.shared.order(self.entry, Order::Cancel);
            if !self.entry.shared.is_running() {
                // The run has ended, perhaps before it saw this candidacy. The next run ignores a closed candidacy.
                self.outcome.close();
                outcome = self.outcome.poll_unpin(context);
            }
        }
        if outcome.is_ready() {
            // Without the guard, `drop` does nothing, because the candidacy is over.
            self.guard = None;
        }
        outcome.map(Result::ok)
    }
}

impl Drop for Attempt<'_> {
    fn drop(&mut self) {
        if self.guard.is_some() {
            // Leadership ends now. The driver ends the term when it next runs.
            if let Some(leadership) = self.entry.status.leadership() {
                leadership.close(TermEndReason::Cancelled);
            }
            // Closed before the check: a run that begins now either finds the candidacy closed, or gets this order.
            self.outcome.close();
            if self.entry.shared.is_running() {
                self.entry.shared.order(self.entry, Order::CallDropped);
            }
        }
    }
}
