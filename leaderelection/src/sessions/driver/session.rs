//! The public type of a session, which creates electors and runs the driver.

use std::fmt;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use tracing::Instrument;

use super::candidate::SessionElector;
use super::event_loop::Driver;
#[cfg(feature = "peers")]
use super::session_channel::SessionChannel;
use super::settings::Settings;
use super::shared::{LockEntry, Shared};
use crate::config::callbacks::LeaderCallbacks;
use crate::elector::ElectionError;
use crate::handle::health::Unhealthy;
use crate::util::names;

/// Membership in a fleet of processes that share many locks. One session holds all locks of a process, and one request per
/// retry period renews them all.
///
/// The session makes progress only while the future of [`run`](Self::run) is polled. Each lock has an
/// [elector](Self::elector), which competes while one of the elector's futures is polled. Clones are the same session.
///
/// ```
/// use leaderelection::{CancellationToken, Elector, MemoryStore, Session, unique_identity};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let session = Session::builder(MemoryStore::new(), "shards", unique_identity()).build()?;
/// let shutdown = CancellationToken::new();
/// let elector = session.elector("17", ())?;
/// let stop = shutdown.clone();
/// let work = elector.run_while_leading(shutdown.clone().cancelled_owned(), move |leadership| async move {
///     println!("shard 17 is ours, with the fencing token {}", leadership.fencing_token());
///     stop.cancel();
/// });
/// let (ended, output) = tokio::join!(session.run(shutdown.cancelled_owned()), work);
/// ended?;
/// output?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Session {
    shared: Arc<Shared>,
    driver: Arc<tokio::sync::Mutex<Driver>>,
}

/// Why a lock's name is rejected.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LockNameError {
    /// The session has an elector for this lock already.
    #[error("the session has an elector for the lock {name:?} already; use that elector, or choose another name")]
    Taken {
        /// The name.
        name: String,
    },
    /// The name is invalid.
    #[error("no lock can be called {name:?}: the name {problem}")]
    Bad {
        /// The name.
        name: String,
        /// What is wrong with the name.
        problem: String,
    },
}

impl Session {
    pub(super) fn new(settings: Settings) -> Self {
        let (calls, receiver) = tokio::sync::mpsc::unbounded_channel();
        let driver = Arc::new(tokio::sync::Mutex::new(Driver::new(&settings, receiver)));
        Self { shared: Arc::new(Shared::new(settings, calls)), driver }
    }

    /// Returns an elector for the lock `name`. A session has one elector for each lock at a time. Dropping it frees the name.
    ///
    /// # Errors
    ///
    /// [`LockNameError`] if the session has an elector for this lock, or if the name is invalid.
    pub fn elector(
        &self,
        name: impl Into<String>,
        callbacks: impl Into<LeaderCallbacks>,
    ) -> Result<SessionElector, LockNameError> {
        let name: String = name.into();
        if let Some(problem) = problem_with(&name) {
            return Err(LockNameError::Bad { name, problem });
        }
        let entry = Arc::new(LockEntry::new(name.as_str().into(), callbacks.into(), &self.shared));
        if !self.shared.join(&entry) {
            return Err(LockNameError::Taken { name });
        }
        Ok(SessionElector { entry })
    }

    /// Makes the [health check](crate::Elector::health_check) of every lock. A lock fails the check if its term is open
    /// although the last renewal of the session is older than the lease duration plus `tolerated_delay`. The time of
    /// the check grows with the number of electors.
    ///
    /// # Errors
    ///
    /// [`Unhealthy`] names one lock that fails the check.
    pub fn check_health(&self, tolerated_delay: Duration) -> Result<(), Unhealthy> {
        self.shared.check_health(tolerated_delay)
    }

    /// Returns the channel for messages from and to the other members: see [`peers`](crate::peers).
    #[cfg(feature = "peers")]
    #[must_use]
    pub fn peer_channel(&self) -> SessionChannel {
        SessionChannel { shared: Arc::clone(&self.shared) }
    }

    /// Opens a session, renews it, and leads locks through it, until `shutdown` completes. Then the leadership of all locks
    /// ends. Once their work has stopped, one write ends the session and frees all locks.
    ///
    /// If the session is lost, this call opens another. Errors of the store are logged, and the request is tried again.
    ///
    /// Dropping this future ends leadership of all locks at once, drops their work, and lets the session expire.
    ///
    /// # Errors
    ///
    /// [`ElectionError`] if another call is running, or if the store failed its check. Then no session was opened.
    pub async fn run(&self, shutdown: impl Future<Output = ()> + Send + 'static) -> Result<(), ElectionError> {
        let run = async {
            let mut driver = self.driver.try_lock().map_err(|_| ElectionError::AlreadyRunning)?;
            Ok(driver.run(&self.shared, pin!(shutdown.fuse())).await?)
        };
        run.instrument(self.shared.span.clone()).await
    }
}

fn problem_with(name: &str) -> Option<String> {
    if name.is_empty() {
        return Some("is empty".to_owned());
    }
    if name.len() > 512 {
        return Some("has more than 512 bytes".to_owned());
    }
    names::problem_with(name)
}

impl fmt::Display for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.shared.settings.basics.name)
    }
}
