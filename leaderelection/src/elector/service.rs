//! A service that runs on every candidate, whoever leads.

use std::error::Error;

use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use super::DefaultLeaderElector;
use crate::config::work_outcome::WorkOutcome;
use crate::store::check::StoreUnfit;

/// The reason for which [`DefaultLeaderElector::campaign_with`] ended without being asked to.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CampaignError {
    /// The store failed the [check](crate::LeaderElectionConfigBuilder::store_check) that is demanded.
    #[error(transparent)]
    StoreUnfit(#[from] StoreUnfit),
    /// The service returned an error or panicked.
    #[error("the service beside the campaign failed, so the campaign was ended; mend the service, and start again")]
    Service(#[source] Box<dyn Error + Send + Sync>),
}

impl DefaultLeaderElector {
    /// Competes and leads as [`campaign`](Self::campaign) does, and runs a service meanwhile: a server for probes and
    /// metrics, or whatever else every candidate runs, leader or not.
    ///
    /// The service runs on a task of its own from now on. Its token is cancelled when the campaign is over and the lease is
    /// released, so that the service outlives the work of the last term. This function then waits for the service, without a limit.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use leaderelection::{DefaultLeaderElector, LeaderCallbacks, LeaderElectionConfig, MemoryLock, MemoryStore};
    /// # use leaderelection::{Leadership, Probes};
    /// # use tokio_util::sync::CancellationToken;
    /// # async fn controller(leadership: Leadership) { leadership.lost().await }
    /// # async fn serve(probes: Probes, stop: CancellationToken) -> std::io::Result<()> { Ok(stop.cancelled().await) }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let lock = MemoryLock::new(MemoryStore::new(), "lock", "a");
    /// # let shutdown = CancellationToken::new();
    /// let callbacks = LeaderCallbacks::new().on_start_leading(controller);
    /// let config = LeaderElectionConfig::builder(lock, callbacks).release_on_cancel(true).build()?;
    /// let elector = DefaultLeaderElector::new(config);
    /// let probes = Probes::new(elector.handle(), elector.health_check(Duration::from_secs(20)));
    /// # shutdown.cancel();
    /// elector.campaign_with(shutdown, |stop| serve(probes, stop)).await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// A service that ends by itself with `()` or `Ok` leaves the campaign as it is.
    ///
    /// # Cancellation safety
    ///
    /// Dropping the future drops the campaign and aborts the service.
    ///
    /// # Errors
    ///
    /// [`CampaignError::Service`] if the service fails or panics. The campaign was then ended as by `cancel`, so that no
    /// work runs any more and the lease is released if so configured. [`CampaignError::StoreUnfit`] as for
    /// [`campaign`](Self::campaign).
    pub async fn campaign_with<F, S>(&self, cancel: CancellationToken, service: F) -> Result<(), CampaignError>
    where
        F: FnOnce(CancellationToken) -> S,
        S: Future<Output: WorkOutcome> + Send + 'static,
    {
        let (stop, cancel) = (CancellationToken::new(), cancel.child_token());
        // A panic ends the campaign, too.
        let failed = cancel.clone().drop_guard();
        let service = service(stop.clone());
        let service = AbortOnDropHandle::new(tokio::spawn(async move {
            let outcome = service.await.outcome();
            if outcome.is_ok() {
                failed.disarm();
            }
            outcome
        }));
        let campaign = self.campaign(cancel).await;
        stop.cancel();
        let served = service.await;
        campaign?;
        served.map_err(Into::into).flatten().map_err(CampaignError::Service)
    }
}
