//! The elector: it drives the [`election`](crate::election) against a lock, and runs the callbacks.

mod audience;
mod driver;
mod fitness;
#[cfg(feature = "peers")]
mod inbox;
#[cfg(feature = "peers")]
mod line;
#[cfg(not(feature = "peers"))]
#[path = "elector/no_line.rs"]
mod line;
mod listeners;
mod log;
#[cfg(feature = "metrics")]
mod meters;
#[cfg(not(feature = "metrics"))]
#[path = "elector/no_meters.rs"]
mod meters;
mod new_leader;
mod output;
mod report;
mod request;
mod run_error;
#[cfg(feature = "peers")]
mod saved;
#[cfg(feature = "sessions")]
mod sessions;
mod stamper;
mod store_time;
mod term;
mod wall_clock;
mod work;

use std::future::Future;
use std::sync::{Arc, Once};
use std::time::Duration;

use tokio_util::sync::CancellationToken;
use tracing::Instrument;

use crate::board::Reader;
use crate::config::LeaderElectionConfig;
use crate::config_warning::ConfigWarning;
use crate::election::{EndReason, RunOutcome};
use crate::health::HealthCheck;
use crate::job::{JobId, JobOutcome};
use crate::leadership::Leadership;
use crate::status::{LeaderHandle, Status, StatusWriter};
use crate::store_check::StoreUnfit;
use crate::tuning::Tuning;

use driver::Driver;
#[cfg(feature = "peers")]
pub use line::{FollowedTerm, LandedWrite, LedTerm, PeerLine};
use output::Output;
pub use run_error::RunError;
#[cfg(feature = "sessions")]
pub use sessions::{LockNameError, Session, SessionBuilder, SessionElector, Slot, Slots};
use work::StartWork;

/// Competes for a lock, leads while it holds the lock, and calls the callbacks.
///
/// This type corresponds to client-go's `LeaderElector`. The election is the future that [`run`](Self::run),
/// [`campaign`](Self::campaign) or [`run_while_leading`](Self::run_while_leading) returns. The future makes
/// progress only while it is polled, and has no task of its own. Only the leader's work runs on a task of its own.
/// The elector needs a tokio runtime with time enabled.
///
/// # Cancellation
///
/// Cancel the token to stop in good order: the work is told to stop, the elector waits for the end of the work, and
/// the lease is released if so configured. Dropping the future instead ends leadership at once, drops the work,
/// calls `on_stop_leading` when the work is gone, and leaves the lease to run out. A call of `on_new_leader` that is
/// under way is not interrupted, because the call runs on a thread of its own.
#[derive(Debug)]
pub struct DefaultLeaderElector {
    driver: tokio::sync::Mutex<Driver>,
    #[cfg(feature = "peers")]
    audience: Arc<audience::Audience>,
    config: Arc<LeaderElectionConfig>,
    tuning: Arc<Tuning>,
    warned: Once,
    handle: LeaderHandle,
    status: Reader<Status>,
    span: tracing::Span,
}

impl DefaultLeaderElector {
    /// Creates an elector for a checked configuration.
    #[must_use]
    pub fn new(config: LeaderElectionConfig) -> Self {
        // The span has the highest level, so that every event has the span, whatever the filter.
        let (lock, identity) = (config.lock.describe(), &config.rules.identity);
        let span = tracing::error_span!("leader_election", name = config.name, lock, identity);
        let writer = StatusWriter::new();
        let status = writer.watch();
        let identity = config.rules.identity.as_str().into();
        let tuning = Arc::new(Tuning::new(&config));
        let handle = LeaderHandle::new(status.clone(), identity, Arc::clone(&config.clock));
        let handle = handle.with_tuning(Arc::clone(&tuning));
        let config = Arc::new(config);
        let driver = Driver::new(Arc::clone(&config), Arc::clone(&tuning), writer);
        Self {
            #[cfg(feature = "peers")]
            audience: Arc::clone(&driver.audience),
            driver: tokio::sync::Mutex::new(driver),
            config,
            tuning,
            warned: Once::new(),
            handle,
            status,
            span,
        }
    }

    /// Returns a handle that tells the rest of the process who leads.
    #[must_use]
    pub fn handle(&self) -> LeaderHandle {
        self.handle.clone()
    }

    /// Returns the line to the peers of this elector: see [`peers`](crate::peers).
    #[cfg(feature = "peers")]
    #[must_use]
    pub fn peer_line(&self) -> PeerLine {
        self.audience.line.open(&self.config)
    }

    /// Returns a check like client-go's `HealthzAdaptor`. The check fails when the elector leads by a renewal that is
    /// older than the lease duration plus `tolerated_delay`.
    #[must_use]
    pub fn health_check(&self, tolerated_delay: Duration) -> HealthCheck {
        HealthCheck::new(
            self.status.clone(),
            self.config.name.clone(),
            self.config.rules.lease_duration,
            tolerated_delay,
        )
        .with_tuning(Arc::clone(&self.tuning))
    }

    /// Competes until it leads, leads until the term ends, and returns: client-go's `Run`.
    ///
    /// Errors of the store are logged, and the request is tried again. Such errors never end a candidacy. A second call
    /// waits until the first call has ended, or until `cancel` is cancelled.
    ///
    /// # Errors
    ///
    /// [`StoreUnfit`] if the store fails the [check](crate::LeaderElectionConfigBuilder::store_check) that is demanded.
    pub async fn run(&self, cancel: CancellationToken) -> Result<RunOutcome, StoreUnfit> {
        let work = self.callback();
        self.run_term(&cancel, work, Duration::ZERO).instrument(self.span.clone()).await
    }

    /// Competes and leads, again and again, until `cancel` is cancelled.
    ///
    /// After a [step-down](crate::LeaderHandle::step_down), a panic or an error of its work, the elector lets other candidates go
    /// first for the [cool-down](crate::LeaderElectionConfigBuilder::step_down_cool_down).
    ///
    /// # Errors
    ///
    /// [`StoreUnfit`] if the store fails the [check](crate::LeaderElectionConfigBuilder::store_check) that is demanded.
    pub async fn campaign(&self, cancel: CancellationToken) -> Result<(), StoreUnfit> {
        async {
            let mut stand_back = Duration::ZERO;
            while !cancel.is_cancelled() {
                let outcome = self.run_term(&cancel, self.callback(), stand_back).await?;
                let cools_down = outcome.reason().is_some_and(EndReason::cools_down);
                stand_back = if cools_down { self.cool_down() } else { Duration::ZERO };
            }
            Ok(())
        }
        .instrument(self.span.clone())
        .await
    }

    /// Wins one term, runs `work` on a task of its own, releases the lease, and returns the output. After a
    /// cancellation by `cancel`, the lease is released only if
    /// [so configured](crate::LeaderElectionConfigBuilder::release_on_cancel).
    ///
    /// `work` takes the place of `on_start_leading`. The other callbacks are called as always. The output of `work` is
    /// returned in two cases, whatever happens to the term afterwards: `work` is complete before its window closes, or
    /// `work` was told to stop by `cancel` and is complete before its lease has run out.
    ///
    /// # Errors
    ///
    /// [`RunError::Cancelled`] or [`RunError::StoreUnfit`] if `work` was never started; [`RunError::Lost`] if
    /// leadership ended before `work` was complete, if `work` panicked, or if `work` did not stop in time.
    pub async fn run_while_leading<F, W, T>(&self, cancel: CancellationToken, work: F) -> Result<T, RunError>
    where
        F: FnOnce(Leadership) -> W + Send + 'static,
        W: Future<Output = T> + Send + 'static,
        T: Send + 'static,
    {
        let (work, output) = Output::of(work);
        let outcome = self.run_term(&cancel, work, Duration::ZERO).instrument(self.span.clone()).await?;
        output.after(outcome)
    }

    /// Does the job `id`, unless the lock says that the job is done: a job that has to succeed only once, on any number of
    /// machines.
    ///
    /// All candidates compete and wait, as for [`run_while_leading`](Self::run_while_leading). A candidate whose `work`
    /// returns `Ok` writes the job into the record with its release, in one write. A candidate that reads a record with
    /// the job returns [`JobOutcome::AlreadyDone`] without running `work`. After an error of `work`, a panic or a crash
    /// there is no such mark, so the next candidate does the job. No clock decides anything: a candidate that starts
    /// late finds the mark, as long as the record remembers the job ([`REMEMBERED_JOBS`](crate::REMEMBERED_JOBS)).
    ///
    /// A process that crashes after the success of `work` and before that write leaves no mark, so the job is done
    /// again. Let the job check the fencing token, or be harmless when it is repeated.
    ///
    /// # Errors
    ///
    /// As [`run_while_leading`](Self::run_while_leading). An error of `work` is no error of this function:
    /// [`JobOutcome::Failed`].
    pub async fn run_once<F, W, T, E>(
        &self,
        cancel: CancellationToken,
        id: &JobId,
        work: F,
    ) -> Result<JobOutcome<T, E>, RunError>
    where
        F: FnOnce(Leadership) -> W + Send + 'static,
        W: Future<Output = Result<T, E>> + Send + 'static,
        T: Send + 'static,
        E: Send + 'static,
    {
        let (work, output) = Output::of_job(id, work);
        let outcome = self.run_term(&cancel, work, Duration::ZERO).instrument(self.span.clone()).await?;
        output.after_job(outcome)
    }

    fn cool_down(&self) -> Duration {
        self.config.step_down_cool_down.unwrap_or_else(|| self.tuning.timings().lease_duration())
    }

    fn callback(&self) -> StartWork {
        StartWork::Callback(self.config.callbacks.on_start_leading.clone())
    }

    async fn run_term(
        &self,
        cancel: &CancellationToken,
        work: StartWork,
        stand_back: Duration,
    ) -> Result<RunOutcome, StoreUnfit> {
        self.warned.call_once(|| self.config.warnings().iter().for_each(ConfigWarning::log));
        let mut driver = tokio::select! {
            biased;
            () = cancel.cancelled() => return Ok(RunOutcome::NeverLed),
            driver = self.driver.lock() => driver,
        };
        driver.run_term(cancel, work, stand_back).await
    }
}
