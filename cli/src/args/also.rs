//! `--also`, an argument of `run` and `serve`: the lock from which a service moves away.

use std::fmt;
use std::sync::Arc;

use leaderelection::{Majority, ObjectStoreBasedLock};

use crate::exit::Failure;
use crate::lock::{CandidateLock, Lock, LockUrl};

/// The lock that is held together with the lock of `--lock`.
#[derive(Debug, clap::Args)]
pub(crate) struct Also {
    /// Hold this lock too, from which a service moves to the lock of --lock. The replicas are rolled out three times, and
    /// each time with a look at who leads: with the old lock, with both, with the new lock. There is no gap, and the
    /// fencing token is above the tokens of both locks
    #[arg(long, value_name = "URL", value_parser = LockUrl::shared_parser())]
    #[arg(conflicts_with = "require_probe")]
    also: Option<LockUrl>,
}

impl Also {
    /// Returns the lock to compete for: `new`, or `new` and the old lock together.
    pub(crate) async fn join(
        &self,
        url: &CandidateLock,
        new: Lock,
        identity: &str,
    ) -> Result<Arc<dyn ObjectStoreBasedLock>, Failure> {
        let Some(also) = &self.also else { return Ok(Arc::new(new)) };
        if also.names_the_object_of(url).await {
            let message =
                format!("--also names the lock of --lock, {also}; name the lock that the service moves away from");
            return Err(Failure::usage(message));
        }
        Ok(Arc::new(Majority::both(also.open(identity).await?, new)?))
    }

    /// The name of both locks; `url` is the new one.
    pub(crate) fn with(&self, url: &CandidateLock) -> impl fmt::Display {
        self.also.as_ref().map_or_else(|| url.to_string(), |also| format!("{url} and {also}"))
    }
}
