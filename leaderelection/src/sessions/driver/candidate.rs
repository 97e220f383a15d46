//! The elector of one lock of a session.

use std::sync::Arc;
use std::time::Duration;

use super::attempt::Attempt;
use super::settings::Settings;
use super::shared::LockEntry;
use crate::clock::Clock;
use crate::config::callbacks::OnStart;
use crate::election::RunOutcome;
use crate::elector::terms::Terms;
use crate::elector::work::StartWork;
use crate::elector::{Compete, ElectionError, Elector};
use crate::handle::health::HealthCheck;
use crate::handle::status::LeaderHandle;
use crate::util::stop::{OwnedStop, Stop};

/// Competes for one lock of a [`Session`](crate::Session). Its counterpart for a lock with a lease of its own is
/// [`DefaultLeaderElector`](crate::DefaultLeaderElector).
///
/// The session holds the lock, so [`Session::run`](crate::Session::run) has to run as well. At the end of a term, only this lock is
/// released. When the session's run ends, all candidacies and terms of its electors end:
///
/// - Calls for one term return as after a cancellation.
/// - `campaign` and `next_term` wait for the session's next run, so stop them together with the session.
///
/// A candidacy that begins while the session does not run waits, too. Dropping the future of a call ends leadership of the
/// lock at once, drops the work, and releases the lock. Dropping the elector frees its name.
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

    /// Waits for this many retry periods by the session's clock. The wait begins when the future first runs.
    pub(super) async fn wait_retry_periods(&self, number: u32) {
        let Settings { rules, basics, .. } = &self.entry.shared.settings;
        let pause = rules.election.retry_period.saturating_mul(number);
        basics.clock.sleep_until(basics.clock.now() + pause).await;
    }
}

impl Elector for SessionElector {
    fn handle(&self) -> LeaderHandle {
        self.entry.handle()
    }

    fn health_check(&self, tolerated_delay: Duration) -> HealthCheck {
        self.entry.health_check(tolerated_delay)
    }
}

impl Compete for SessionElector {
    fn compete<'a>(
        &'a self,
        stop: Stop<'a>,
        work: StartWork,
        stand_back: Duration,
    ) -> impl Future<Output = Result<RunOutcome, ElectionError>> + Send + 'a {
        Attempt::run(&self.entry, stop, work, stand_back)
    }

    fn candidacy(
        &self,
        mut stop: OwnedStop,
        work: StartWork,
        stand_back: Duration,
    ) -> impl Future<Output = (Result<RunOutcome, ElectionError>, OwnedStop)> + Send + 'static {
        let entry = Arc::clone(&self.entry);
        async move {
            let outcome = Attempt::run(&entry, stop.as_mut(), work, stand_back).await;
            (outcome, stop)
        }
    }

    /// Adds no span, because the session's run has one.
    fn whole<T: Send, F: Future<Output = T> + Send>(&self, election: F) -> impl Future<Output = T> + Send {
        election
    }

    fn cool_down(&self) -> Duration {
        self.entry.shared.settings.rules.election.lease_duration
    }

    fn on_start(&self) -> Option<&Arc<OnStart>> {
        self.entry.on_start.as_ref()
    }

    fn terms(&self) -> &Terms {
        &self.entry.terms
    }

    fn clock(&self) -> &Arc<dyn Clock> {
        &self.entry.shared.settings.basics.clock
    }
}

impl Drop for SessionElector {
    fn drop(&mut self) {
        self.entry.shared.leave(&self.entry);
    }
}
