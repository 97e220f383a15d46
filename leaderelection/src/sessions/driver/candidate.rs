//! The elector of one lock of a session.

use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::attempt::Attempt;
use super::settings::Settings;
use super::shared::LockEntry;
use crate::clock::Clock;
use crate::config::callbacks::OnStart;
use crate::election::RunOutcome;
use crate::elector::front;
use crate::elector::output::Output;
use crate::elector::terms::Terms;
use crate::elector::work::StartWork;
use crate::handle::health::HealthCheck;
use crate::handle::status::LeaderHandle;
use crate::store::check::StoreUnfit;

/// Competes for one lock of a [`Session`](crate::Session), as a [`DefaultLeaderElector`](crate::DefaultLeaderElector)
/// does for a lock with a lease of its own.
///
/// The lock is led through the session, so [`Session::run`](crate::Session::run) has to run as well. After a term of one
/// lock ends, the lock alone is released. When the session's run ends, all candidacies and terms of its electors end, and
/// their calls return as after a cancellation. A candidacy that begins while the session does not run waits for the
/// session's next run.
///
/// Dropping the future of a call ends leadership of the lock at once, drops the work, and releases the lock. Dropping the
/// elector frees its name.
#[derive(Debug)]
pub struct SessionElector {
    pub(super) entry: Arc<LockEntry>,
}

front! { SessionElector, r#"
# let elector = |identity| {
#     let session = Session::builder(store.clone(), "fleet", identity).build().unwrap();
#     let elector = session.elector("lock", LeaderCallbacks::new()).unwrap();
#     tokio::spawn(async move { session.run(CancellationToken::new()).await });
#     elector
# };"# }

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

    /// Waits for so many retry periods by the session's clock, from the first poll on.
    pub(super) async fn retry_periods(&self, number: u32) {
        let Settings { rules, basics, .. } = &self.entry.shared.settings;
        let pause = rules.election.retry_period.saturating_mul(number);
        basics.clock.sleep_until(basics.clock.now() + pause).await;
    }

    fn on_start(&self) -> Option<Arc<OnStart>> {
        self.entry.on_start.clone()
    }

    fn terms(&self) -> &Terms {
        &self.entry.terms
    }

    fn clock(&self) -> &Arc<dyn Clock> {
        &self.entry.shared.settings.basics.clock
    }

    /// The session's run has its own surroundings.
    fn whole<F: Future>(&self, election: F) -> F {
        election
    }

    fn compete<'a>(
        &'a self,
        cancel: &'a CancellationToken,
        work: StartWork,
        stand_back: Duration,
    ) -> impl Future<Output = Result<RunOutcome, StoreUnfit>> + Send + 'a {
        Attempt::run(&self.entry, cancel, work, stand_back)
    }

    /// A candidacy for one term that outlives the call, and the elector if need be.
    fn candidacy(
        &self,
        cancel: CancellationToken,
        work: StartWork,
        stand_back: Duration,
    ) -> impl Future<Output = Result<RunOutcome, StoreUnfit>> + Send + use<> {
        let entry = Arc::clone(&self.entry);
        async move { Attempt::run(&entry, &cancel, work, stand_back).await }
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
