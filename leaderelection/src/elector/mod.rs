//! The elector: it drives the [`election`](crate::election) against a lock, and runs the callbacks.

mod driver;
mod elector_listeners;
pub(crate) mod fitness;
pub(crate) mod host;
#[cfg_attr(not(feature = "peers"), allow(dead_code, unreachable_pub, reason = "nobody opens the line"))]
pub(crate) mod line;
pub(crate) mod listeners;
mod log;
#[cfg(feature = "metrics")]
pub(crate) mod meters;
#[cfg(not(feature = "metrics"))]
#[path = "no_meters.rs"]
pub(crate) mod meters;
pub(crate) mod new_leader;
pub(crate) mod output;
#[cfg(feature = "peers")]
pub mod peers;
pub(crate) mod report;
pub(crate) mod request;
pub(crate) mod run_error;
mod service;
mod span;
pub(crate) mod stamper;
mod store_time;
pub(crate) mod term;
pub(crate) mod terms;
mod try_lead;
mod wall_clock;
pub(crate) mod watches;
pub(crate) mod work;

use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tracing::Instrument;

use crate::config::LeaderElectionConfig;
use crate::election::{EndReason, RunOutcome};
use crate::handle::health::HealthCheck;
use crate::handle::status::LeaderHandle;
use crate::leadership::Leadership;
use crate::lock::job::{JobId, JobOutcome};
use crate::store::check::StoreUnfit;

use driver::Driver;
use elector_listeners::ElectorListeners;
#[cfg(feature = "peers")]
use line::PeerLine;
use output::Output;
pub use run_error::RunError;
pub use service::CampaignError;
pub use terms::Term;
use terms::Terms;
pub use try_lead::TryLeadError;
use work::StartWork;

/// Competes for a lock, leads while it holds the lock, and calls the callbacks.
///
/// This type corresponds to client-go's `LeaderElector`. A program without callbacks asks for each
/// [`next_term`](Self::next_term).
///
/// The election is the future that [`run`](Self::run), [`campaign`](Self::campaign) or
/// [`run_while_leading`](Self::run_while_leading) returns. The future makes progress only while it is polled, and has no
/// task of its own. Only the leader's work runs on a task of its own. While a caller holds a [`Term`], the election has a
/// task, too. The elector needs a tokio runtime with time enabled.
///
/// # Cancellation
///
/// Cancel the token to stop in good order: the work is told to stop, the elector waits for the end of the work, and
/// the lease is released if so configured. Dropping the future instead ends leadership at once, drops the work,
/// calls `on_stop_leading` when the work is gone, and leaves the lease to run out. A call of `on_new_leader` that is
/// under way is not interrupted, because the call runs on a thread of its own.
#[derive(Debug)]
pub struct DefaultLeaderElector {
    driver: Arc<tokio::sync::Mutex<Driver>>,
    terms: Terms,
    listeners: Arc<ElectorListeners>,
    config: Arc<LeaderElectionConfig>,
    span: tracing::Span,
}

impl DefaultLeaderElector {
    /// Creates an elector for a checked configuration.
    #[must_use]
    pub fn new(config: LeaderElectionConfig) -> Self {
        // The span has the highest level, so that every event has the span, whatever the filter.
        let (lock, identity) = (config.lock.describe(), &config.rules.identity);
        let span = tracing::error_span!("leader_election", name = config.basics.name, lock, identity);
        let config = Arc::new(config);
        let listeners = Arc::new(ElectorListeners::new(Arc::clone(&config)));
        let driver = Driver::new(Arc::clone(&config), Arc::clone(&listeners));
        let driver = Arc::new(tokio::sync::Mutex::new(driver));
        Self { driver, terms: Terms::default(), listeners, config, span }
    }

    /// Returns a handle that tells the rest of the process who leads.
    #[must_use]
    pub fn handle(&self) -> LeaderHandle {
        let (identity, clock) = (self.config.rules.identity.as_str().into(), Arc::clone(&self.config.basics.clock));
        let ElectorListeners { status, tuning, .. } = &*self.listeners;
        LeaderHandle::new(status.watch(), identity, clock, Some(Arc::clone(tuning)), None)
    }

    /// Returns the line to the peers of this elector: see [`peers`](crate::peers).
    #[cfg(feature = "peers")]
    #[must_use]
    pub fn peer_line(&self) -> PeerLine {
        self.listeners.line.open(&self.config, &self.listeners.tuning)
    }

    /// Returns a check like client-go's `HealthzAdaptor`. The check fails when the elector leads by a renewal that is
    /// older than the lease duration plus `tolerated_delay`.
    #[must_use]
    pub fn health_check(&self, tolerated_delay: Duration) -> HealthCheck {
        let (name, lease_duration) = (self.config.basics.name.clone(), self.config.rules.lease_duration);
        HealthCheck::new(&self.handle(), name, lease_duration, tolerated_delay)
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
        self.whole(Driver::run_term(&self.driver, &cancel, self.callback(), Duration::ZERO)).await
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
        let campaign = async {
            let mut stand_back = Duration::ZERO;
            while !cancel.is_cancelled() {
                let outcome = Driver::run_term(&self.driver, &cancel, self.callback(), stand_back).await?;
                // The former leader knows first that the lease is free, and would win it back each time.
                let cools_down = outcome.reason().is_some_and(EndReason::cools_down);
                stand_back = if cools_down { self.cool_down() } else { Duration::ZERO };
            }
            Ok(())
        };
        self.whole(campaign).await
    }

    /// Competes and leads on a task of its own, as [`campaign`](Self::campaign) does, and returns the handle and the task.
    ///
    /// Dropping the [`JoinHandle`] changes nothing. Aborting the task has the effect of dropping the future of a campaign.
    /// A program that ends has to wait for the task after it has cancelled `cancel`, because the task releases the lease.
    ///
    /// ```
    /// # use leaderelection::{DefaultLeaderElector, LeaderCallbacks, LeaderElectionConfig, MemoryLock, MemoryStore};
    /// # use tokio_util::sync::CancellationToken;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let lock = MemoryLock::new(MemoryStore::new(), "lock", "a");
    /// # let elector = DefaultLeaderElector::new(LeaderElectionConfig::builder(lock, LeaderCallbacks::new()).build()?);
    /// let shutdown = CancellationToken::new();
    /// let (mut handle, task) = elector.spawn(shutdown.clone());
    /// println!("leading with fencing token {}", handle.elected().await?.fencing_token());
    /// shutdown.cancel();
    /// task.await??;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Panics
    ///
    /// Outside of a tokio runtime.
    pub fn spawn(self, cancel: CancellationToken) -> (LeaderHandle, JoinHandle<Result<(), StoreUnfit>>) {
        (self.handle(), tokio::spawn(async move { self.campaign(cancel).await }))
    }

    /// Competes until it leads, and returns the term: leading without callbacks. Returns `None` when `cancel` is
    /// cancelled.
    ///
    /// ```
    /// # use leaderelection::{DefaultLeaderElector, LeaderCallbacks, LeaderElectionConfig, MemoryLock, MemoryStore};
    /// # use tokio_util::sync::CancellationToken;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let lock = MemoryLock::new(MemoryStore::new(), "lock", "a");
    /// # let elector = DefaultLeaderElector::new(LeaderElectionConfig::builder(lock, LeaderCallbacks::new()).build()?);
    /// let mut reconciled = 0; // State lives here: no callback has to own it.
    /// let shutdown = CancellationToken::new();
    /// while let Some(term) = elector.next_term(&shutdown).await? {
    ///     let token = term.fencing_token();
    ///     let work = async {
    ///         reconciled += 1;
    ///         println!("reconciling with fencing token {token}");
    ///     };
    ///     if term.run_until_lost(work).await.is_some() {
    ///         shutdown.cancel();
    ///     }
    ///     term.release().await; // Or let it go out of scope.
    /// }
    /// assert_eq!(reconciled, 1);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// The caller does the leader's work, in place of `on_start_leading`. The other callbacks are called as always. `cancel`
    /// also ends the term that was returned, and the lease of that term is then released if
    /// [so configured](crate::LeaderElectionConfigBuilder::release_on_cancel).
    ///
    /// After a term that its owner has dropped, other candidates go first for the
    /// [cool-down](crate::LeaderElectionConfigBuilder::step_down_cool_down). While a term is held, a further call waits for
    /// its end, or for `cancel`. `None` comes after the release of a term that was dropped before, so a program may end on it.
    ///
    /// # Cancellation safety
    ///
    /// Dropping the future ends the candidacy, and no term gets lost: a term begins in the poll that returns it. A write
    /// under way may still win the lease, which then runs out, unless the elector competes again and finds its own write.
    ///
    /// # Errors
    ///
    /// [`StoreUnfit`] if the store fails the [check](crate::LeaderElectionConfigBuilder::store_check) that is demanded.
    pub async fn next_term(&self, cancel: &CancellationToken) -> Result<Option<Term>, StoreUnfit> {
        let compete = |work, stand_back| self.candidacy(cancel.clone(), work, stand_back);
        self.terms.next(cancel, &self.config.basics.clock, || self.cool_down(), compete).await
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
        let outcome = self.whole(Driver::run_term(&self.driver, &cancel, work, Duration::ZERO)).await?;
        output.after(outcome)
    }

    /// Does the job `id`, unless the lock says that the job is done: a job that has to succeed only once, on any number of
    /// machines.
    ///
    /// All candidates compete and wait, as for [`run_while_leading`](Self::run_while_leading). A candidate whose `work`
    /// returns `Ok` writes the job into the record with its release, in one write. A candidate that reads a record with
    /// the job returns [`JobOutcome::AlreadyDone`] without running `work`. After an error of `work`, a panic or a crash
    /// there is no such mark, so the next candidate does the job. No clock decides anything: a candidate that starts
    /// late finds the mark, as long as the record remembers the job ([`REMEMBERED_JOBS`](crate::lock::REMEMBERED_JOBS)).
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
        let outcome = self.whole(Driver::run_term(&self.driver, &cancel, work, Duration::ZERO)).await?;
        output.after_job(outcome)
    }

    /// An election from its beginning to its end, with the last write of the history.
    fn whole<T, F: Future<Output = T>>(&self, election: F) -> impl Future<Output = T> + use<T, F> {
        let history = self.config.basics.history.clone();
        // An async block would have room for the election twice: once as it was given, and once as it runs.
        let whole = election.then(|end| async move {
            if let Some(history) = history {
                history.written().await;
            }
            end
        });
        whole.instrument(self.span.clone())
    }

    fn cool_down(&self) -> Duration {
        self.config.step_down_cool_down.unwrap_or_else(|| self.listeners.tuning.timings().lease_duration())
    }

    fn callback(&self) -> StartWork {
        StartWork::Callback(self.config.callbacks.on_start_leading.clone())
    }

    /// A candidacy for one term that outlives the call, and the elector if need be.
    fn candidacy(
        &self,
        cancel: CancellationToken,
        work: StartWork,
        stand_back: Duration,
    ) -> impl Future<Output = Result<RunOutcome, StoreUnfit>> + Send + use<> {
        let driver = Arc::clone(&self.driver);
        self.whole(async move { Driver::run_term(&driver, &cancel, work, stand_back).await })
    }
}
