//! The methods of every elector, whether its lock has a lease of its own or belongs to a session.

use std::pin::pin;
use std::time::Duration;

use futures_util::FutureExt;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::compete::{Compete, campaigning, require_no_callback};
use super::output::Output;
use super::run_error::{ElectionError, RunError};
use super::service::{self, CampaignError};
use super::terms::Term;
use super::try_lead::{self, TryLeadError};
use super::work::StartWork;
use crate::config::WorkOutcome;
use crate::election::RunOutcome;
use crate::handle::health::HealthCheck;
use crate::handle::status::LeaderHandle;
use crate::leadership::Leadership;
use crate::lock::job::{JobId, JobOutcome};
use crate::util::stop;

/// Competes for one lock. A library that takes `impl Elector` works with a
/// [`DefaultLeaderElector`](crate::DefaultLeaderElector) and with a [`SessionElector`](crate::SessionElector).
///
/// ```
/// use leaderelection::{
///     DefaultLeaderElector, Elector, LeaderElectionConfig, MemoryLock, MemoryStore, RunError, Session,
/// };
///
/// /// A migration that runs on one machine at a time.
/// async fn migrate(elector: impl Elector) -> Result<(), RunError> {
///     elector.run_while_leading(std::future::pending(), |leadership| async move {
///         println!("migrating with fencing token {}", leadership.fencing_token());
///     }).await
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let lock = MemoryLock::new(MemoryStore::new(), "lock", "a");
/// migrate(DefaultLeaderElector::new(LeaderElectionConfig::builder(lock, ()).build()?)).await?;
///
/// let session = Session::builder(MemoryStore::new(), "fleet", "a").build()?;
/// let elector = session.elector("lock", ())?;
/// tokio::spawn(async move { session.run(std::future::pending()).await });
/// migrate(elector).await?;
/// # Ok(())
/// # }
/// ```
///
/// # Stopping
///
/// The methods that wait for leadership take a future that tells them when to stop, like the graceful shutdown of a web
/// server: [`shutdown_signal`](crate::shutdown_signal), `token.cancelled_owned()` of a [`CancellationToken`], or
/// [`pending`](std::future::pending()) to never stop.
///
/// An elector has one election at a time. Either a callback does the leader's work, or the caller of the method:
///
/// ```
/// # use {leaderelection::*, std::future::pending}; #[tokio::main(flavor = "current_thread")] async fn main() {
/// # let builder = |callbacks| LeaderElectionConfig::builder(MemoryLock::new(MemoryStore::new(), "lock", "a"), callbacks);
/// # let elector = |callbacks| DefaultLeaderElector::new(builder(callbacks).build().unwrap());
/// let caller = elector(LeaderCallbacks::new());
/// let term = caller.next_term(pending()).await;
/// assert_eq!(caller.run(pending()).await, Err(ElectionError::AlreadyRunning));
///
/// let callback = elector(LeaderCallbacks::new().on_start_leading(async |_| {}));
/// let method = "next_term";
/// assert_eq!(callback.next_term(pending()).await.unwrap_err(), ElectionError::CallbackIsSet { method });
/// # }
/// ```
///
/// Only this crate implements the trait, so that later versions can add methods.
#[allow(private_bounds, reason = "the trait is sealed")]
pub trait Elector: Compete {
    /// Returns a handle that tells the rest of the process who leads.
    #[must_use]
    fn handle(&self) -> LeaderHandle;

    /// Returns a check like client-go's `HealthzAdaptor`. The check fails if the elector leads although its last renewal is older than
    /// the lease duration plus `tolerated_delay`. For a session's lock, the session's renewals count.
    #[must_use]
    fn health_check(&self, tolerated_delay: Duration) -> HealthCheck;

    /// Competes until it leads, leads until the term ends, and returns: client-go's `Run`.
    ///
    /// An error of the store is logged, and the elector tries again. Such errors never end a candidacy.
    ///
    /// # Errors
    ///
    /// [`ElectionError`] if the election could not begin.
    fn run(
        &self,
        shutdown: impl Future<Output = ()> + Send + 'static,
    ) -> impl Future<Output = Result<RunOutcome, ElectionError>> + Send {
        async move {
            let _claim = self.terms().claim_alone()?;
            let work = StartWork::Callback(self.on_start().cloned());
            self.whole(self.compete(pin!(shutdown.fuse()), work, Duration::ZERO)).await
        }
    }

    /// Competes and leads, again and again, until `shutdown` completes.
    ///
    /// After a [step-down](crate::LeaderHandle::step_down), or a panic or an error of its work, the elector lets other
    /// candidates go first for the cool-down. The cool-down is one lease duration by default. Only an elector with a
    /// lease of its own can [change it](crate::LeaderElectionConfigBuilder::step_down_cool_down).
    ///
    /// # Errors
    ///
    /// [`ElectionError`] if the election could not begin.
    fn campaign(
        &self,
        shutdown: impl Future<Output = ()> + Send + 'static,
    ) -> impl Future<Output = Result<(), ElectionError>> + Send {
        // Boxed: an async block that pins `shutdown` would store it twice, for each of ten thousand locks.
        campaigning(self, stop::owned(shutdown), false)
    }

    /// Competes and leads on a task of its own, as [`campaign`](Self::campaign) does, and returns the handle and the task.
    ///
    /// Dropping the [`JoinHandle`](tokio::task::JoinHandle) has no effect. Aborting the task drops the campaign. The
    /// task releases the lock, so after `shutdown`, wait for the task before the program exits.
    ///
    /// ```
    /// # use leaderelection::*;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let store = MemoryStore::new();
    /// # let elector = |identity| {
    /// #     let lock = MemoryLock::new(store.clone(), "lock", identity);
    /// #     DefaultLeaderElector::new(LeaderElectionConfig::builder(lock, ()).build().unwrap())
    /// # };
    /// # let elector = elector("a");
    /// let shutdown = CancellationToken::new();
    /// let (mut handle, task) = elector.spawn(shutdown.clone().cancelled_owned());
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
    fn spawn(
        self,
        shutdown: impl Future<Output = ()> + Send + 'static,
    ) -> (LeaderHandle, JoinHandle<Result<(), ElectionError>>) {
        (self.handle(), tokio::spawn(async move { self.campaign(shutdown).await }))
    }

    /// Competes and leads as [`campaign`](Self::campaign) does, and meanwhile runs a service that every candidate needs, leader or not,
    /// such as a server for probes and metrics.
    ///
    /// The service starts at once, on a task of its own. The token that `service` gets is cancelled when the campaign
    /// is over and the lock is released. This function then waits for the service, without a limit.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use leaderelection::*;
    /// # async fn serve(probes: Probes, stop: CancellationToken) -> std::io::Result<()> { Ok(stop.cancelled().await) }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let store = MemoryStore::new();
    /// # let elector = |identity| {
    /// #     let lock = MemoryLock::new(store.clone(), "lock", identity);
    /// #     DefaultLeaderElector::new(LeaderElectionConfig::builder(lock, ()).build().unwrap())
    /// # };
    /// # let elector = elector("a");
    /// # let shutdown = CancellationToken::new();
    /// let probes = Probes::new(elector.handle(), elector.health_check(Duration::from_secs(20)));
    /// # shutdown.cancel();
    /// elector.campaign_with(shutdown.cancelled_owned(), |stop| serve(probes, stop)).await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// If the service returns `()` or `Ok` during the campaign, the campaign continues.
    ///
    /// # Cancellation safety
    ///
    /// Dropping the future drops the campaign and aborts the service.
    ///
    /// # Errors
    ///
    /// [`CampaignError::Service`](crate::CampaignError::Service) if the service fails or panics. By then, the failure
    /// has ended the campaign as `shutdown` does: no work runs any more, and the lock is released as after any
    /// cancellation. [`CampaignError::Election`](crate::CampaignError::Election) if the election could not begin.
    fn campaign_with<F, S>(
        &self,
        shutdown: impl Future<Output = ()> + Send + 'static,
        service: F,
    ) -> impl Future<Output = Result<(), CampaignError>> + Send
    where
        F: FnOnce(CancellationToken) -> S + Send,
        S: Future<Output: WorkOutcome> + Send + 'static,
    {
        async move {
            // Claimed before the service begins: a second call must not start another service, for example on the same port.
            let _claim = self.terms().claim_alone()?;
            service::beside(|shutdown| campaigning(self, shutdown, true), shutdown, service).await
        }
    }

    /// Competes until it leads, and returns the term, for a caller without callbacks. Returns `None` after `shutdown`.
    ///
    /// ```
    /// # use leaderelection::*;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let store = MemoryStore::new();
    /// # let elector = |identity| {
    /// #     let lock = MemoryLock::new(store.clone(), "lock", identity);
    /// #     DefaultLeaderElector::new(LeaderElectionConfig::builder(lock, ()).build().unwrap())
    /// # };
    /// # let elector = elector("a");
    /// let mut reconciled = 0; // State lives here: no callback has to own it.
    /// let shutdown = CancellationToken::new();
    /// while let Some(term) = elector.next_term(shutdown.clone().cancelled_owned()).await? {
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
    /// Each call needs a future that also completes after an earlier signal: a clone of
    /// [`shutdown_signal`](crate::shutdown_signal), or a token's future, but not a new `ctrl_c()`.
    ///
    /// The caller does the leader's work, so no `on_start_leading` may be set. The other callbacks are called as always.
    /// `shutdown` also ends the term that was returned. A session's lock is then released; a lease is released unless
    /// [configured otherwise](crate::LeaderElectionConfigBuilder::release_on_cancel).
    ///
    /// After a term was dropped, other candidates go first for the cool-down, as in a [`campaign`](Self::campaign).
    /// While a term is held, a further call waits for its end, or for `shutdown`. Before a call returns `None`, it
    /// waits for the release of a dropped term, so that the program may exit.
    ///
    /// # Cancellation safety
    ///
    /// Dropping the future ends the candidacy. No term is lost, because a term begins in the poll that returns it. The
    /// exception is the term of a session's lock: it may have begun earlier, and then ends at once. A write in flight
    /// may still win a lease. That lease expires, unless the elector competes again and finds its own write.
    ///
    /// # Errors
    ///
    /// [`ElectionError`] if the election could not begin.
    fn next_term(
        &self,
        shutdown: impl Future<Output = ()> + Send + 'static,
    ) -> impl Future<Output = Result<Option<Term>, ElectionError>> + Send {
        async move {
            require_no_callback(self, "next_term")?;
            let _claim = self.terms().claim()?;
            let compete = |stop, work, stand_back| self.candidacy(stop, work, stand_back);
            self.terms().next(stop::owned(shutdown), self.clock(), || self.cool_down(), compete).await
        }
    }

    /// Makes one attempt to lead. Returns the term if the lock is free, and an error with the leader's name if another candidate leads.
    ///
    /// ```
    /// # use leaderelection::*;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let store = MemoryStore::new();
    /// # let elector = |identity| {
    /// #     let lock = MemoryLock::new(store.clone(), "lock", identity);
    /// #     DefaultLeaderElector::new(LeaderElectionConfig::builder(lock, ()).build().unwrap())
    /// # };
    /// let (a, b) = (elector("a"), elector("b"));
    /// let term = a.try_lead().await?;
    /// let Err(TryLeadError::Led { leader }) = b.try_lead().await else { panic!("two leaders") };
    /// assert_eq!(leader, "a");
    /// term.release().await;
    /// b.try_lead().await?.release().await;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// An attempt reads the lock, and writes it if the lock is free. If the outcome of a request is unknown, the
    /// attempt reads once more. A crashed leader's lock is free once its lease has expired. To notice that, an elector
    /// has to watch the lock for a whole lease duration, as [`next_term`](Self::next_term) and repeated attempts do.
    ///
    /// The caller does the leader's work, as with [`next_term`](Self::next_term). The attempt waits for the release of an
    /// earlier term that was dropped. Dropping the future ends the attempt.
    ///
    /// # Errors
    ///
    /// [`TryLeadError`](crate::TryLeadError).
    fn try_lead(&self) -> impl Future<Output = Result<Term, TryLeadError>> + Send {
        async move {
            require_no_callback(self, "try_lead")?;
            let stop = stop::owned(std::future::pending());
            let attempt = |work| self.candidacy(stop, work, Duration::ZERO);
            try_lead::attempt(self.handle(), self.terms(), self.clock(), attempt).await
        }
    }

    /// Wins one term, runs `work` on a task of its own, releases the lock, and returns the output. After
    /// `shutdown`, a lease is released unless
    /// [configured otherwise](crate::LeaderElectionConfigBuilder::release_on_cancel).
    ///
    /// `work` runs instead of `on_start_leading`. The other callbacks are called as always. The output of `work` is returned in two
    /// cases, whatever happens to the term afterwards: `work` completes before the term's window closes, or `shutdown` has told `work` to
    /// stop, and `work` completes before the lease has expired.
    ///
    /// # Errors
    ///
    /// [`RunError::Cancelled`](crate::RunError::Cancelled) or [`RunError::Election`](crate::RunError::Election) if
    /// `work` was never started; [`RunError::Lost`](crate::RunError::Lost) if leadership ended before `work` was
    /// complete, if `work` panicked, or if `work` did not stop in time.
    fn run_while_leading<F, W, T>(
        &self,
        shutdown: impl Future<Output = ()> + Send + 'static,
        work: F,
    ) -> impl Future<Output = Result<T, RunError>> + Send
    where
        F: FnOnce(Leadership) -> W + Send + 'static,
        W: Future<Output = T> + Send + 'static,
        T: Send + 'static,
    {
        async move {
            let _claim = self.terms().claim_alone()?;
            let (work, output) = Output::of(work);
            output.after(self.whole(self.compete(pin!(shutdown.fuse()), work, Duration::ZERO)).await?)
        }
    }

    /// Does the job `id`, unless the record marks the job as done. Use this for a job that has to succeed only once, on any number of
    /// machines.
    ///
    /// All candidates compete and wait, as for [`run_while_leading`](Self::run_while_leading). If `work` returns `Ok`,
    /// the release of the lease adds the job's ID to the record. A candidate that reads a record with this mark returns
    /// [`JobOutcome::AlreadyDone`](crate::lock::JobOutcome::AlreadyDone) without running `work`. After an error of
    /// `work`, a panic or a crash there is no mark, so the next candidate does the job. No clock matters: a candidate
    /// that starts late finds the mark, as long as the record [remembers](crate::lock::REMEMBERED_JOBS) the job.
    ///
    /// A process that crashes after the success of `work` and before the release leaves no mark, so the job is done
    /// again. The same happens if a session ends together with the work, because the session's last write frees all
    /// locks and marks no jobs. Therefore let the job check the fencing token, or make it harmless to repeat the job.
    ///
    /// ```
    /// use std::future::pending;
    /// use leaderelection::lock::{JobId, JobOutcome};
    /// use leaderelection::{DefaultLeaderElector, Elector, LeaderElectionConfig, MemoryLock, MemoryStore};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let night: JobId = "2026-11-30".parse()?;
    /// let lock = MemoryLock::new(MemoryStore::new(), "locks/nightly", "node-1");
    /// let elector = DefaultLeaderElector::new(LeaderElectionConfig::builder(lock, ()).build()?);
    /// for done_before in [false, true] {
    ///     let report = async |_| Ok::<_, std::io::Error>("42 rows");
    ///     match elector.run_once(pending(), &night, report).await? {
    ///         JobOutcome::Done(reported) => assert_eq!((reported, done_before), ("42 rows", false)),
    ///         JobOutcome::AlreadyDone => assert!(done_before, "another process has reported"),
    ///         JobOutcome::Unmarked(reported) => eprintln!("reported {reported}; another process may do so again"),
    ///         JobOutcome::Failed(error) => return Err(error.into()),
    ///         _ => {}
    ///     }
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As for [`run_while_leading`](Self::run_while_leading). If `work` fails, this function returns
    /// [`JobOutcome::Failed`](crate::lock::JobOutcome::Failed) instead of an error.
    fn run_once<F, W, T, E>(
        &self,
        shutdown: impl Future<Output = ()> + Send + 'static,
        id: &JobId,
        work: F,
    ) -> impl Future<Output = Result<JobOutcome<T, E>, RunError>> + Send
    where
        F: FnOnce(Leadership) -> W + Send + 'static,
        W: Future<Output = Result<T, E>> + Send + 'static,
        T: Send + 'static,
        E: Send + 'static,
    {
        async move {
            let _claim = self.terms().claim_alone()?;
            let (work, output) = Output::of_job(id, work);
            output.after_job(self.whole(self.compete(pin!(shutdown.fuse()), work, Duration::ZERO)).await?)
        }
    }
}
