//! The age of a lease, which needs more than one read of the lock, or of the session that holds it.

use std::time::Duration;

use leaderelection::admin::Follower;
use leaderelection::clock::{Clock as _, LocalInstant, SystemClock};
use leaderelection::handle::Observation;
use serde::Serialize;

use crate::args::timing::request_limit;
use crate::exit::Failure;
use crate::lock::OperatorLock;
use crate::lock::view::{State, View, as_seconds};

/// A reader that reads a lock repeatedly.
#[derive(Debug)]
pub(crate) struct Observer<'a> {
    url: &'a OperatorLock,
    inner: Follower,
    began: LocalInstant,
}

/// The age of a lease, as far as it is known.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Age {
    /// The time since the first read.
    #[serde(serialize_with = "as_seconds", rename = "watchedForSeconds")]
    pub(crate) watched_for: Option<Duration>,
    /// The time for which the lease is known to be unchanged.
    #[serde(serialize_with = "as_seconds", rename = "unchangedForSeconds")]
    pub(crate) unchanged_for: Duration,
    /// The time until any candidate may take the lease, unless the holder renews it; `null` if no renewal was
    /// observed.
    #[serde(serialize_with = "as_seconds", rename = "leftSeconds")]
    pub(crate) left: Option<Duration>,
    /// The lease was observed without a renewal for its whole duration.
    pub(crate) expired: bool,
}

/// The result of one read.
#[derive(Clone, Debug)]
pub(crate) struct Look {
    pub(crate) view: View,
    /// The age of the lease; `None` if the lease has no holder.
    pub(crate) age: Option<Age>,
    /// The age of the last renewal by the store's clock; `None` if the store does not tell, or if the lease has no holder.
    pub(crate) store_age: Option<Duration>,
}

impl Look {
    /// Returns `true` if further reads would show nothing new.
    pub(crate) fn is_conclusive(&self) -> bool {
        self.age.is_none_or(|age| age.expired || age.left.is_some())
    }
}

impl<'a> Observer<'a> {
    pub(crate) async fn new(
        url: &'a OperatorLock,
        request_timeout: Duration,
        period: Duration,
    ) -> Result<Self, Failure> {
        let target = url.target(Some(request_limit(request_timeout))).await?;
        Ok(Self { url, inner: target.follow(period), began: SystemClock.now() })
    }

    /// Reads again when the period is over, or when the lease runs out. The first read is at once.
    pub(crate) async fn next(&mut self) -> Result<Look, Failure> {
        let seen = self.inner.next().await;
        let age = seen.as_ref().ok().and_then(|seen| self.age(seen.lease()));
        let store_age = seen.as_ref().ok().and_then(|seen| seen.lease().store_age());
        let view = View::of_look(self.url, seen.map(|seen| seen.look))?.named(self.url);
        let is_held = view.state == State::Held;
        Ok(Look { age: age.filter(|_| is_held), store_age: store_age.filter(|_| is_held), view })
    }

    fn age(&self, seen: &Observation) -> Option<Age> {
        let left = seen.expires_at()?.saturating_since(seen.answered_at);
        let expired = seen.has_expired();
        Some(Age {
            watched_for: Some(seen.answered_at.saturating_since(self.began)),
            unchanged_for: seen.answered_at.saturating_since(seen.first_seen_at),
            left: (seen.was_seen_to_change && !expired).then_some(left),
            expired,
        })
    }
}
