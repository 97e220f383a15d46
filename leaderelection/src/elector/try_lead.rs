//! One attempt to lead.

use std::time::Duration;

use futures_util::FutureExt;
use tokio_util::sync::CancellationToken;

use super::DefaultLeaderElector;
use super::terms::Term;
use crate::handle::observation::LastError;
use crate::store::check::StoreUnfit;

/// The reason for which [`DefaultLeaderElector::try_lead`] has returned no term.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TryLeadError {
    /// Another candidate leads, or has led until a moment ago: its lease has not run out.
    #[error("{leader:?} leads")]
    Led {
        /// The identity of the holder. It may be our own, if an earlier process had this identity.
        leader: String,
    },
    /// Nobody is known to lead, but another candidate was faster, or goes first.
    #[error("nobody is known to lead, but another candidate was faster or goes first; try again")]
    NotWon,
    /// The store did not answer the attempt, or refused it.
    #[error("the attempt failed: {}", .0.message)]
    Failed(LastError),
    /// The store failed its [check](crate::store::StoreCheck).
    #[error(transparent)]
    StoreUnfit(#[from] StoreUnfit),
}

impl DefaultLeaderElector {
    /// Makes one attempt to lead: returns the term if the lease is free, and the name of the leader if another candidate
    /// leads.
    ///
    /// ```
    /// # use leaderelection::{DefaultLeaderElector, LeaderCallbacks, LeaderElectionConfig, MemoryLock, MemoryStore};
    /// use leaderelection::TryLeadError;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let store = MemoryStore::new();
    /// # let elector = |identity| {
    /// #     let lock = MemoryLock::new(store.clone(), "lock", identity);
    /// #     LeaderElectionConfig::builder(lock, LeaderCallbacks::new()).build().map(DefaultLeaderElector::new)
    /// # };
    /// let (a, b) = (elector("a")?, elector("b")?);
    /// let term = a.try_lead().await?;
    /// let Err(TryLeadError::Led { leader }) = b.try_lead().await else { panic!("two leaders") };
    /// assert_eq!(leader, "a");
    /// term.release().await;
    /// b.try_lead().await?.release().await;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// An attempt is a read, and a write if the lease is free. A request whose outcome is unknown is read again once. The
    /// lease of a leader that has crashed is not free before it has run out, which an elector notices only by watching it
    /// for a whole lease duration: [`next_term`](Self::next_term) does, and so do attempts that are repeated.
    ///
    /// The caller does the leader's work, as with [`next_term`](Self::next_term). The attempt waits for the end of an
    /// earlier term or candidacy of this elector. Dropping the future ends the attempt.
    ///
    /// # Errors
    ///
    /// [`TryLeadError`].
    pub async fn try_lead(&self) -> Result<Term, TryLeadError> {
        let mut handle = self.handle();
        // The errors before this attempt.
        let _ = handle.next_error().now_or_never();
        let attempt = |work| self.candidacy(CancellationToken::new(), work, Duration::ZERO);
        if let Ok(term) = self.terms.compete(&self.config.basics.clock, true, attempt).await? {
            return Ok(term);
        }
        let (failed, status) = (handle.next_error().now_or_never(), handle.status());
        Err(match (failed, status.holder) {
            (Some(Ok(error)), _) => TryLeadError::Failed(error),
            // The store names the last holder even when its lease has run out, and that holder leads no more.
            (_, Some(leader)) if status.observed.is_some_and(|lease| !lease.has_run_out()) => {
                TryLeadError::Led { leader }
            }
            _ => TryLeadError::NotWon,
        })
    }
}
