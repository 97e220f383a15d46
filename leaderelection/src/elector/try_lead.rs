//! One attempt to lead.

use std::sync::Arc;

use futures_util::FutureExt;

use super::run_error::ElectionError;
use super::terms::{Term, Terms};
use super::work::StartWork;
use crate::clock::Clock;
use crate::election::RunOutcome;
use crate::handle::observation::LastError;
use crate::handle::status::LeaderHandle;
use crate::util::stop::OwnedStop;

/// Why [`try_lead`](crate::Elector::try_lead) has returned no term.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TryLeadError {
    /// Another candidate leads, or led until recently, and its lease has not expired.
    #[error("{leader:?} leads")]
    Led {
        /// The identity of the holder. It may be this candidate's own, if an earlier process had the same identity.
        leader: String,
    },
    /// Nobody is known to lead, but another candidate was faster, or has to go first.
    #[error("nobody is known to lead, but another candidate was faster or goes first; try again")]
    NotWon,
    /// The store did not answer a request of the attempt, or rejected it.
    #[error("the attempt failed: {}", .0.message)]
    Failed(LastError),
    /// No attempt was made.
    #[error(transparent)]
    Election(#[from] ElectionError),
}

/// Makes one attempt to lead for the elector with this `handle`. `compete` begins the candidacy.
pub(super) async fn attempt<R>(
    mut handle: LeaderHandle,
    terms: &Terms,
    clock: &Arc<dyn Clock>,
    compete: impl FnOnce(StartWork) -> R,
) -> Result<Term, TryLeadError>
where
    R: Future<Output = (Result<RunOutcome, ElectionError>, OwnedStop)> + Send + 'static,
{
    let _claim = terms.claim_alone()?;
    // Skip the errors from before this attempt.
    let _ = handle.next_error().now_or_never();
    if let Ok(term) = terms.compete(clock, true, compete).await? {
        return Ok(term);
    }
    let (failed, status) = (handle.next_error().now_or_never(), handle.status());
    Err(match (failed, status.holder) {
        (Some(Ok(error)), _) => TryLeadError::Failed(error),
        // The status names the last holder even after its lease has expired. Such a holder no longer leads.
        (_, Some(leader)) if status.observed.is_some_and(|lease| !lease.has_expired()) => TryLeadError::Led { leader },
        _ => TryLeadError::NotWon,
    })
}
