//! What watching tells that one look cannot: whether the lease is alive, and how old it is.

use std::time::Duration;

use leaderelection::clock::{Clock as _, LocalInstant, SystemClock};
use serde::Serialize;

use crate::exit::Failure;
use crate::lock::{Lock, LockUrl};
use crate::view::{State, View, as_seconds};

/// A lock that is looked at again and again.
#[derive(Debug)]
pub(crate) struct Observer<'a> {
    url: &'a LockUrl,
    lock: Lock,
    patience: Duration,
    began: LocalInstant,
    last: Option<Seen>,
}

#[derive(Debug)]
struct Seen {
    view: View,
    /// When a look first showed it.
    at: LocalInstant,
    /// Whether an earlier look showed something else, so that it was written since.
    is_change: bool,
}

/// What is known of the lease's age.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Age {
    /// How long we have watched.
    #[serde(serialize_with = "as_seconds", rename = "watchedForSeconds")]
    pub(crate) watched_for: Option<Duration>,
    /// How long it is known not to have changed.
    #[serde(serialize_with = "as_seconds", rename = "unchangedForSeconds")]
    pub(crate) unchanged_for: Option<Duration>,
    /// Until anybody may take it, unless it is renewed; `null` if the last renewal was not seen.
    #[serde(serialize_with = "as_seconds", rename = "leftSeconds")]
    pub(crate) left: Option<Duration>,
    /// Whether it was seen to stay unrenewed for as long as it lasts.
    pub(crate) expired: bool,
}

impl<'a> Observer<'a> {
    pub(crate) async fn new(url: &'a LockUrl, patience: Duration) -> Result<Self, Failure> {
        let lock = url.open_to_look().await?;
        Ok(Self { url, lock, patience, began: SystemClock.now(), last: None })
    }

    /// Looks once more.
    pub(crate) async fn look(&mut self) -> Result<&View, Failure> {
        let view = View::of(self.url, &self.lock, self.patience).await?;
        let at = SystemClock.now();
        let seen = match self.last.take() {
            // Without a version there is nothing to compare but what is shown.
            Some(last) if last.view == view => last,
            last => Seen { view, at, is_change: last.is_some() },
        };
        Ok(&self.last.insert(seen).view)
    }

    /// How old the lease is; `None` if nobody holds it.
    pub(crate) fn age(&self) -> Option<Age> {
        let seen = self.last.as_ref().filter(|seen| seen.view.state == State::Held)?;
        let now = SystemClock.now();
        let lease = seen.view.lease_duration.unwrap_or_default();
        let unchanged_for = now.saturating_since(seen.at);
        let expired = unchanged_for >= lease;
        Some(Age {
            watched_for: Some(now.saturating_since(self.began)),
            unchanged_for: Some(unchanged_for),
            left: (seen.is_change && !expired).then(|| lease.saturating_sub(unchanged_for)),
            expired,
        })
    }

    /// Whether watching on would tell anything new.
    pub(crate) fn knows(&self) -> bool {
        self.age().is_none_or(|age| age.expired || age.left.is_some())
    }

    /// When an unchanged lease expires; `None` if it has, or if nobody holds one.
    pub(crate) fn expiry(&self) -> Option<LocalInstant> {
        let seen = self.last.as_ref().filter(|seen| seen.view.state == State::Held)?;
        let expiry = seen.at + seen.view.lease_duration?;
        (expiry > SystemClock.now()).then_some(expiry)
    }
}
