//! A service that runs on every candidate, whoever leads.

use std::error::Error;

use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use crate::config::work_outcome::WorkOutcome;
use crate::store::check::StoreUnfit;

/// The reason for which [`DefaultLeaderElector::campaign_with`](crate::DefaultLeaderElector::campaign_with) ended without being asked to.
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

/// Runs a campaign, and a service beside it.
pub(crate) async fn beside<C, F, S>(
    campaign: impl FnOnce(CancellationToken) -> C,
    cancel: CancellationToken,
    service: F,
) -> Result<(), CampaignError>
where
    C: Future<Output = Result<(), StoreUnfit>>,
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
    let campaign = campaign(cancel).await;
    stop.cancel();
    let served = service.await;
    campaign?;
    // `flatten` of a result needs Rust 1.89.
    served.unwrap_or_else(|broken| Err(broken.into())).map_err(CampaignError::Service)
}
