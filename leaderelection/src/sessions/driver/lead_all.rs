//! One call that runs a session and campaigns for many locks.

use futures_util::FutureExt as _;
use futures_util::stream::{FuturesUnordered, StreamExt as _};
use tokio_util::sync::CancellationToken;

use super::session::{LockNameError, Session};
use crate::config::callbacks::LeaderCallbacks;
use crate::elector::{ElectionError, Elector};
use crate::util::stop::stop_by;

/// Why [`Session::lead_all`] could not lead, or no longer leads.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LeadAllError {
    /// The name of a lock is invalid, or the lock already has an elector. Nothing was sent.
    #[error(transparent)]
    LockName(#[from] LockNameError),
    /// The session could not run. Nobody has led.
    #[error(transparent)]
    Election(#[from] ElectionError),
}

impl Session {
    /// Runs the session, and campaigns for the locks `names` until `shutdown` completes. `callbacks` returns the callbacks for
    /// the lock of a name.
    ///
    /// ```
    /// use leaderelection::{CancellationToken, LeaderCallbacks, MemoryStore, Session, unique_identity};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let session = Session::builder(MemoryStore::new(), "shards", unique_identity()).build()?;
    /// let shutdown = CancellationToken::new();
    /// let callbacks = |shard: &str| {
    ///     let (shard, stop) = (shard.to_owned(), shutdown.clone());
    ///     LeaderCallbacks::new().on_start_leading(move |leadership| {
    ///         println!("{shard} is ours, with the fencing token {}", leadership.fencing_token());
    ///         stop.cancel();
    ///         async move { leadership.lost().await }
    ///     })
    /// };
    /// session.lead_all((0..100).map(|shard| format!("{shard:03}")), callbacks, shutdown.clone().cancelled_owned()).await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// Dropping the future ends leadership of all locks at once, drops their work, lets the session expire, and frees the names.
    ///
    /// # Errors
    ///
    /// [`LeadAllError`]. All names are checked before the first request.
    pub async fn lead_all(
        &self,
        names: impl IntoIterator<Item: Into<String>>,
        mut callbacks: impl FnMut(&str) -> LeaderCallbacks,
        shutdown: impl Future<Output = ()> + Send + 'static,
    ) -> Result<(), LeadAllError> {
        let mut electors = Vec::new();
        for name in names {
            let name: String = name.into();
            let callbacks = callbacks(&name);
            electors.push(self.elector(name, callbacks)?);
        }
        let stop = CancellationToken::new();
        let campaigns: FuturesUnordered<_> =
            electors.iter().map(|elector| elector.campaign(stop.clone().cancelled_owned())).collect();
        let campaigns = campaigns.for_each(|_| std::future::ready(())).map(Ok);
        // If `run` fails, the campaigns are dropped, too. Otherwise, if another call runs the session, they would lead
        // through that run.
        let led = async { tokio::try_join!(self.run(stop.clone().cancelled_owned()), campaigns) };
        stop_by(shutdown, &stop, led).await?;
        Ok(())
    }
}
