//! A service that runs beside a campaign, on every candidate, whoever leads.

use std::error::Error;

use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use super::run_error::ElectionError;
use crate::config::work_outcome::WorkOutcome;
use crate::util::stop::{self, OwnedStop};

/// Why [`campaign_with`](crate::Elector::campaign_with) has failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CampaignError {
    /// No campaign has begun.
    #[error(transparent)]
    Election(#[from] ElectionError),
    /// The service returned an error or panicked.
    #[error("the service beside the campaign failed, so the campaign was ended; fix the service, and start again")]
    Service(#[source] Box<dyn Error + Send + Sync>),
}

/// Runs a campaign and a service at the same time. If the service fails, the campaign ends.
pub(super) async fn beside<C, F, S>(
    campaign: impl FnOnce(OwnedStop) -> C,
    shutdown: impl Future<Output = ()> + Send + 'static,
    service: F,
) -> Result<(), CampaignError>
where
    C: Future<Output = Result<(), ElectionError>>,
    F: FnOnce(CancellationToken) -> S,
    S: Future<Output: WorkOutcome> + Send + 'static,
{
    let (end, failed) = (CancellationToken::new(), CancellationToken::new());
    let service = service(end.clone());
    // A guard, so that a panic of the service cancels `failed`, too.
    let (failure, failed) = (failed.clone().drop_guard(), failed.cancelled_owned());
    let service = AbortOnDropHandle::new(tokio::spawn(async move {
        let outcome = service.await.outcome();
        if outcome.is_ok() {
            failure.disarm();
        }
        outcome
    }));
    let shutdown = async {
        tokio::select! {
            () = shutdown => {}
            () = failed => {}
        }
    };
    let campaign = campaign(stop::owned(shutdown)).await;
    end.cancel();
    let served = service.await;
    // If the election could not begin, the caller gets that error, not one of the service.
    campaign?;
    // `Result::flatten` needs Rust 1.89.
    served.unwrap_or_else(|panicked| Err(panicked.into())).map_err(CampaignError::Service)
}
