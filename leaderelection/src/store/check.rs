//! The check of a store, before an elector first competes for a lock in it.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;

use crate::clock::Clock;
use crate::store::ConditionalStore;

/// A check that a store has to pass before leaders are elected on it: see
/// [`store_check`](crate::LeaderElectionConfigBuilder::store_check).
///
/// `leaderelection-conformance` has such a check, which tests that the store enforces its conditions under races.
#[async_trait]
pub trait StoreCheck: fmt::Debug + Send + Sync + 'static {
    /// Checks the store of a candidacy, and logs the facts that the store's operators should know.
    ///
    /// The future is dropped when the elector is cancelled.
    async fn check(&self, candidacy: Candidacy<'_>) -> StoreFitness;
}

#[async_trait]
impl<C: StoreCheck + ?Sized> StoreCheck for Arc<C> {
    async fn check(&self, candidacy: Candidacy<'_>) -> StoreFitness {
        (**self).check(candidacy).await
    }
}

/// The lock for which an elector is about to compete, as a [`StoreCheck`] receives it.
#[derive(Debug)]
#[non_exhaustive]
pub struct Candidacy<'a> {
    /// The store that holds the lock.
    pub store: Arc<dyn ConditionalStore>,
    /// The key of the lock's object in the store. The object belongs to the election: a check must not change
    /// it.
    pub key: &'a str,
    /// A unique name, from which the check makes the keys of its own objects.
    pub id: String,
    /// The longest time that one request may take.
    pub request_timeout: Duration,
    /// The pause before the next check, if this one is inconclusive.
    pub pause: Duration,
    /// The elector's clock.
    pub clock: &'a Arc<dyn Clock>,
}

/// The result of a [`StoreCheck`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum StoreFitness {
    /// The store is fit for leader election, and is not checked again.
    Fit,
    /// The store breaks its contract. No leader is elected on it.
    Unfit {
        /// The part of the check that failed, and the reason.
        why: String,
    },
    /// The store answers with errors, or not in time. The elector repeats the check after a lease duration.
    Inconclusive {
        /// The part of the check that did not complete, and the reason.
        why: String,
    },
}

/// The error of an elector whose store failed its [`StoreCheck`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no leader is elected: the store failed the probe: {why}; use another store")]
#[non_exhaustive]
pub struct StoreUnfit {
    /// The part of the check that failed, and the reason.
    pub why: String,
}
