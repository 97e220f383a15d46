//! The arguments of `run` and `serve` for a lock that is made of several.

use std::fmt;
use std::sync::Arc;

use leaderelection::lock::LockParts;
use leaderelection::{Majority, ObjectStoreBasedLock};

use crate::exit::Failure;
use crate::lock::{CandidateLock, Lock, LockUrl};

/// The parts of a lock beside the first, and the number that a leader needs.
#[derive(Debug, clap::Args)]
pub(crate) struct Parts {
    /// Also hold the old lock during a migration
    ///
    /// Use it in the second of three rollouts that move a service from this lock to the one of --lock: first the old lock, then
    /// both, then the new lock. Check who leads after each rollout. At each rollout, nobody leads for about one poll. The next
    /// fencing token is larger than the tokens of both locks.
    #[arg(long, value_name = "URL", value_parser = LockUrl::shared_parser(), hide_short_help = true)]
    #[arg(conflicts_with = "require_probe")]
    second_lock: Option<LockUrl>,
    /// Require this many of the locks
    ///
    /// With several --lock, a leader must hold this many of them; the default is a majority. Require all of them in the second
    /// of three rollouts from one lock to several, and on the way back.
    #[arg(long, value_name = "NUMBER", conflicts_with = "second_lock", hide_short_help = true)]
    quorum: Option<usize>,
}

impl Parts {
    /// Returns the lock to compete for: `first`, which is opened, or all parts together.
    pub(crate) async fn join(
        &self,
        locks: &CandidateLock,
        first: Lock,
        identity: &str,
    ) -> Result<Arc<dyn ObjectStoreBasedLock>, Failure> {
        let open = async |url: &LockUrl| {
            let is_first = std::ptr::eq(url, &raw const **locks);
            if is_first { Ok(first.clone()) } else { url.open(identity).await }
        };
        self.join_by(locks, open).await
    }

    /// Returns the lock to compete for, whose parts are opened by `open`.
    pub(crate) async fn join_by(
        &self,
        locks: &CandidateLock,
        open: impl AsyncFn(&LockUrl) -> Result<Lock, Failure>,
    ) -> Result<Arc<dyn ObjectStoreBasedLock>, Failure> {
        if let (Some(old), [_, _, ..]) = (&self.second_lock, locks.parts()) {
            let count = locks.parts().len();
            let message = format!("--second-lock ({old}) needs exactly one --lock, the one to move to; found {count}");
            return Err(Failure::usage(message));
        }
        let urls: Vec<&LockUrl> = self.urls(locks).collect();
        for (number, url) in urls.iter().enumerate() {
            for other in &urls[..number] {
                if url.names_the_object_of(other).await {
                    let message = format!("{url} and {other} are the same lock; name each lock once");
                    return Err(Failure::usage(message));
                }
            }
        }
        if urls.len() == 1 && self.quorum.is_none() {
            return Ok(Arc::new(open(locks).await?));
        }
        let mut parts = Vec::new();
        for url in urls {
            parts.push(open(url).await?);
        }
        let most = Majority::of(parts)?;
        Ok(match self.quorum {
            None => Arc::new(most),
            Some(needed) => Arc::new(most.needing(needed)?),
        })
    }

    /// Says that no part of the lock may have a hostile writer, if none may.
    pub(crate) fn trust(&self, locks: &CandidateLock) -> Option<String> {
        let names: Vec<String> = self.urls(locks).map(ToString::to_string).collect();
        let (size, needed) = (names.len(), self.quorum.unwrap_or(names.len() / 2 + 1));
        let is_trusted = size > 1 && LockParts::new(needed, names, 0).may_be_hostile() == 0;
        is_trusted.then(|| {
            format!("{needed} of {size} locks are required: anyone who can write one of them can cause two leaders")
        })
    }

    /// The URLs of all parts.
    pub(crate) fn urls<'a>(&'a self, locks: &'a CandidateLock) -> impl Iterator<Item = &'a LockUrl> {
        self.second_lock.iter().chain(locks.parts())
    }

    /// The name of all parts.
    pub(crate) fn with(&self, locks: &CandidateLock) -> impl fmt::Display {
        self.second_lock.as_ref().map_or_else(|| locks.to_string(), |old| format!("{locks} and {old}"))
    }
}
