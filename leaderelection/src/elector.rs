//! Drives the [`election`](crate::election) against a lock, and runs the callbacks.

mod ambiguity;
mod driver;
mod fitness;
mod meters;
mod new_leader;
mod outside;
mod request;
mod term;
mod wall_clock;

use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tracing::Instrument;

use crate::config::LeaderElectionConfig;
use crate::election::EndReason;
use crate::health::HealthCheck;
use crate::leadership::Leadership;
use crate::status::{LeaderHandle, Status};

use driver::{Driver, StartWork};

/// Competes for a lock, leads while it holds it, and calls the callbacks.
///
/// client-go's `LeaderElector`. The election is the future that [`run`](Self::run),
/// [`campaign`](Self::campaign) or [`run_while_leading`](Self::run_while_leading) returns: it makes no
/// progress unless it is polled, and has no task of its own. Only the leader's work runs on one.
/// The elector needs a tokio runtime with time enabled.
///
/// # Cancellation
///
/// Cancel the token to stop in good order: the work is told, awaited, and the lease released if so
/// configured. Dropping the future instead ends leadership at once, drops the work, calls
/// `on_stop_leading` when it is gone, and leaves the lease to run out. A call of `on_new_leader` that is under
/// way is not interrupted: it is a thread's.
#[derive(Debug)]
pub struct DefaultLeaderElector {
    driver: tokio::sync::Mutex<Driver>,
    handle: LeaderHandle,
    status: watch::Receiver<Status>,
    name: String,
    lease_duration: Duration,
    span: tracing::Span,
}

/// How [`DefaultLeaderElector::run`] ended.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RunOutcome {
    /// The token of the term that ended; `None` if we never led.
    pub fencing_token: Option<u64>,
    /// Why it ended.
    pub reason: EndReason,
}

/// Why [`DefaultLeaderElector::run_while_leading`] has no output.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// Cancelled before it led; the work was never started.
    #[error("cancelled before it could lead; the work was not started")]
    Cancelled,
    /// The store failed the probe that was required; the work was never started.
    #[error(
        "no leader is elected, and the work was not started: the store failed the probe: {why}; elect leaders on another one"
    )]
    StoreUnfit {
        /// The check that it failed, and how.
        why: String,
    },
    /// The term ended before the work did, or while it was being cancelled; the work was started.
    #[error("leadership (fencing token {fencing_token}) ended before the work was complete: {reason}")]
    Lost {
        /// The term's token.
        fencing_token: u64,
        /// Why it ended.
        reason: EndReason,
    },
}

impl DefaultLeaderElector {
    /// An elector for a checked configuration.
    #[must_use]
    pub fn new(config: LeaderElectionConfig) -> Self {
        let name = config.name.clone();
        let lease_duration = config.rules.lease_duration;
        // Of the highest level, so that no event is without it, whatever the filter.
        let (lock, identity) = (config.lock.describe(), &config.rules.identity);
        let span = tracing::error_span!("leader_election", name = config.name, lock, identity);
        let (sender, status) = watch::channel(Status::default());
        let handle =
            LeaderHandle::new(status.clone(), config.rules.identity.as_str().into(), Arc::clone(&config.clock));
        let driver = tokio::sync::Mutex::new(Driver::new(config, sender));
        Self { driver, handle, status, name, lease_duration, span }
    }

    /// Tells who leads, from anywhere.
    #[must_use]
    pub fn handle(&self) -> LeaderHandle {
        self.handle.clone()
    }

    /// client-go's `HealthzAdaptor`: fails when we lead by a renewal that is older than the lease
    /// duration plus `tolerated_delay`.
    #[must_use]
    pub fn health_check(&self, tolerated_delay: Duration) -> HealthCheck {
        HealthCheck::new(self.status.clone(), self.name.clone(), self.lease_duration, tolerated_delay)
    }

    /// Competes until it leads, leads until the term ends, and returns: client-go's `Run`.
    ///
    /// Errors of the store are logged and tried again; they never end a candidacy, unless the store fails
    /// a probe that is [required](crate::LeaderElectionConfigBuilder::require_probe). A second call waits
    /// until the first has ended.
    pub async fn run(&self, cancel: CancellationToken) -> RunOutcome {
        async {
            let mut driver = self.driver.lock().await;
            let work = driver.callback_work();
            driver.run_term(&cancel, work, Duration::ZERO).await
        }
        .instrument(self.span.clone())
        .await
    }

    /// Competes and leads, again and again, until it is cancelled; or until the store fails a probe that
    /// is [required](crate::LeaderElectionConfigBuilder::require_probe). Returns which of the two it was:
    /// [`EndReason::Cancelled`] or [`EndReason::StoreUnfit`].
    pub async fn campaign(&self, cancel: CancellationToken) -> EndReason {
        async {
            let mut driver = self.driver.lock().await;
            let mut stand_back = Duration::ZERO;
            while !cancel.is_cancelled() {
                let work = driver.callback_work();
                let outcome = driver.run_term(&cancel, work, stand_back).await;
                stand_back = match outcome.reason {
                    reason @ EndReason::StoreUnfit { .. } => return reason,
                    EndReason::SteppedDown | EndReason::WorkPanicked => driver.step_down_cool_down(),
                    _ => Duration::ZERO,
                };
            }
            EndReason::Cancelled
        }
        .instrument(self.span.clone())
        .await
    }

    /// Wins one term, runs `work` on a task of its own, releases the lease, and returns the output. A lease
    /// that is given up because of `cancel` is only released if
    /// [so configured](crate::LeaderElectionConfigBuilder::release_on_cancel).
    ///
    /// `work` takes the place of `on_start_leading`; the other callbacks are called as always. Work that
    /// completes after it was told to stop by `cancel`, and before its lease ran out, has its output
    /// returned too.
    ///
    /// # Errors
    ///
    /// [`RunError::Cancelled`] or [`RunError::StoreUnfit`] if `work` was never started; [`RunError::Lost`] if
    /// leadership ended before `work` was complete, if it panicked, or if it did not stop in time.
    pub async fn run_while_leading<F, W, T>(&self, cancel: CancellationToken, work: F) -> Result<T, RunError>
    where
        F: FnOnce(Leadership) -> W + Send + 'static,
        W: Future<Output = T> + Send + 'static,
        T: Send + 'static,
    {
        let output = Arc::new(Mutex::new(None));
        let slot = Arc::clone(&output);
        let work = StartWork::once(move |leadership| {
            let work = work(leadership);
            Box::pin(async move {
                let value = work.await;
                *slot.lock().unwrap_or_else(PoisonError::into_inner) = Some(value);
            })
        });
        let outcome = async { self.driver.lock().await.run_term(&cancel, work, Duration::ZERO).await }
            .instrument(self.span.clone())
            .await;
        let output = output.lock().unwrap_or_else(PoisonError::into_inner).take();
        match (output, outcome) {
            (Some(output), RunOutcome { reason: EndReason::WorkFinished | EndReason::Cancelled, .. }) => Ok(output),
            (_, RunOutcome { fencing_token: Some(fencing_token), reason }) => {
                Err(RunError::Lost { fencing_token, reason })
            }
            (_, RunOutcome { reason: EndReason::StoreUnfit { why }, .. }) => Err(RunError::StoreUnfit { why }),
            (_, RunOutcome { fencing_token: None, .. }) => Err(RunError::Cancelled),
        }
    }
}
