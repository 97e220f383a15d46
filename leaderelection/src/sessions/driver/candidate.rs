//! The elector of one lock of a session.

use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::attempt::Attempt;
use super::settings::Settings;
use super::shared::LockEntry;
use crate::election::{EndReason, RunOutcome};
use crate::elector::output::Output;
use crate::elector::run_error::RunError;
use crate::elector::terms::Term;
use crate::elector::work::StartWork;
use crate::handle::health::HealthCheck;
use crate::handle::status::LeaderHandle;
use crate::leadership::Leadership;
use crate::store::check::StoreUnfit;

/// Competes for one lock of a [`Session`](crate::Session), as a [`DefaultLeaderElector`](crate::DefaultLeaderElector)
/// does for a lock with a lease of its own.
///
/// The lock is led through the session, so [`Session::run`](crate::Session::run) has to run as well. After a term of one
/// lock ends, the lock alone is released. When the session's run ends, all candidacies and terms of its electors end. A
/// candidacy that begins while the session does not run waits for the session's next run.
///
/// Dropping the elector frees its name.
#[derive(Debug)]
pub struct SessionElector {
    pub(super) entry: Arc<LockEntry>,
}

impl SessionElector {
    /// The name of the lock.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.entry.name
    }

    /// Returns a handle that tells the rest of the process who leads.
    #[must_use]
    pub fn handle(&self) -> LeaderHandle {
        self.entry.handle()
    }

    /// Returns a check like that of a [`DefaultLeaderElector`](crate::DefaultLeaderElector::health_check). The check
    /// fails when the elector leads by a renewal of the session that is older than the lease duration plus
    /// `tolerated_delay`.
    #[must_use]
    pub fn health_check(&self, tolerated_delay: Duration) -> HealthCheck {
        self.entry.health_check(tolerated_delay)
    }

    /// Competes until it leads, leads until the term ends, and returns. Returns as well when the run of the session
    /// ends. A second call waits until the first call has ended, or until `cancel` is cancelled.
    ///
    /// Dropping the future ends leadership of the lock at once, drops the work, and releases the lock.
    ///
    /// # Errors
    ///
    /// [`StoreUnfit`] if the store fails the [check](crate::SessionBuilder::store_check) that is demanded.
    pub async fn run(&self, cancel: CancellationToken) -> Result<RunOutcome, StoreUnfit> {
        self.run_term(&cancel, self.callback(), Duration::ZERO).await
    }

    /// Competes and leads, again and again, until `cancel` is cancelled. Waits while the session does not run.
    ///
    /// After a [step-down](crate::LeaderHandle::step_down) or a panic of its work, the elector lets other members go
    /// first for one lease duration.
    ///
    /// # Errors
    ///
    /// [`StoreUnfit`] if the store fails the [check](crate::SessionBuilder::store_check) that is demanded.
    pub async fn campaign(&self, cancel: CancellationToken) -> Result<(), StoreUnfit> {
        let mut stand_back = Duration::ZERO;
        while !cancel.is_cancelled() {
            let outcome = self.run_term(&cancel, self.callback(), stand_back).await?;
            // The former leader knows first that the lock is free, and may be the first in rank for it.
            let cools_down = outcome.reason().is_some_and(EndReason::cools_down);
            stand_back = if cools_down { self.cool_down() } else { Duration::ZERO };
        }
        Ok(())
    }

    /// Competes and leads on a task of its own, as [`campaign`](Self::campaign) does, and returns the handle and the task:
    /// see [`DefaultLeaderElector::spawn`](crate::DefaultLeaderElector::spawn).
    ///
    /// # Panics
    ///
    /// Outside of a tokio runtime.
    pub fn spawn(self, cancel: CancellationToken) -> (LeaderHandle, JoinHandle<Result<(), StoreUnfit>>) {
        (self.handle(), tokio::spawn(async move { self.campaign(cancel).await }))
    }

    /// Competes until it leads, and returns the term, as
    /// [`DefaultLeaderElector::next_term`](crate::DefaultLeaderElector::next_term) does. Waits while the session does not
    /// run.
    ///
    /// # Cancellation safety
    ///
    /// Dropping the future ends the candidacy. A term that has begun by then ends at once, and its lock is released.
    ///
    /// # Errors
    ///
    /// [`StoreUnfit`] if the store fails the [check](crate::SessionBuilder::store_check) that is demanded.
    pub async fn next_term(&self, cancel: &CancellationToken) -> Result<Option<Term>, StoreUnfit> {
        let compete = |work, stand_back| {
            let (entry, cancel) = (Arc::clone(&self.entry), cancel.clone());
            async move { Attempt::run(&entry, &cancel, work, stand_back).await }
        };
        self.entry.terms.next(cancel, &self.entry.shared.settings.basics.clock, || self.cool_down(), compete).await
    }

    /// Wins one term, runs `work` on a task of its own, releases the lock, and returns the output, as
    /// [`DefaultLeaderElector::run_while_leading`](crate::DefaultLeaderElector::run_while_leading) does.
    ///
    /// # Errors
    ///
    /// [`RunError::Cancelled`] or [`RunError::StoreUnfit`] if `work` was never started, because of `cancel`, of the end of
    /// the session's run, or of its store; [`RunError::Lost`] if leadership ended before `work` was complete, if `work`
    /// panicked, or if `work` did not stop in time.
    pub async fn run_while_leading<F, W, T>(&self, cancel: CancellationToken, work: F) -> Result<T, RunError>
    where
        F: FnOnce(Leadership) -> W + Send + 'static,
        W: Future<Output = T> + Send + 'static,
        T: Send + 'static,
    {
        let (work, output) = Output::of(work);
        output.after(self.run_term(&cancel, work, Duration::ZERO).await?)
    }

    /// Waits for so many retry periods by the session's clock, from the first poll on.
    pub(super) async fn retry_periods(&self, number: u32) {
        let Settings { rules, basics, .. } = &self.entry.shared.settings;
        let pause = rules.election.retry_period.saturating_mul(number);
        basics.clock.sleep_until(basics.clock.now() + pause).await;
    }

    fn callback(&self) -> StartWork {
        StartWork::Callback(self.entry.on_start.clone())
    }

    fn run_term<'a>(
        &'a self,
        cancel: &'a CancellationToken,
        work: StartWork,
        stand_back: Duration,
    ) -> impl Future<Output = Result<RunOutcome, StoreUnfit>> + Send + 'a {
        Attempt::run(&self.entry, cancel, work, stand_back)
    }

    fn cool_down(&self) -> Duration {
        self.entry.shared.settings.rules.election.lease_duration
    }
}

impl Drop for SessionElector {
    fn drop(&mut self) {
        self.entry.shared.leave(&self.entry);
    }
}
