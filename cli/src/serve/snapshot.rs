//! Who leads, at one moment, as far as this process knows.

use std::time::Duration;

use chrono::{DateTime, Utc};
use leaderelection::{LeaderHandle, ObservedLease};
use serde::Serialize;

use crate::view::{as_seconds, as_time};

/// What /leader says. The page says the same to people.
///
/// `name` alone is what Kubernetes' leader-elector sidecar said.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Snapshot {
    /// Who holds the lease; empty if nobody, or if nothing is known.
    pub(super) name: String,
    /// The token of that holder's term.
    pub(super) fencing_token: Option<u64>,
    /// Whether this process leads, right now.
    pub(super) leading: bool,
    /// Who this process is.
    pub(super) identity: String,
    /// Since when, by the holder's wall clock.
    #[serde(serialize_with = "as_time")]
    pub(super) acquire_time: Option<DateTime<Utc>>,
    /// When the holder last renewed the lease, by its wall clock.
    #[serde(serialize_with = "as_time")]
    pub(super) renew_time: Option<DateTime<Utc>>,
    /// How long the lease lasts after a renewal.
    #[serde(rename = "leaseDurationSeconds", serialize_with = "as_seconds")]
    pub(super) lease_duration: Option<Duration>,
    /// How long ago the store said so.
    #[serde(rename = "ageSeconds", serialize_with = "as_seconds")]
    pub(super) age: Option<Duration>,
    /// For how long the store has been saying exactly this.
    #[serde(rename = "unchangedForSeconds", serialize_with = "as_seconds")]
    pub(super) unchanged_for: Option<Duration>,
    /// While we lead: until when, unless we renew. Else: until somebody else may, unless the holder does.
    #[serde(rename = "leftSeconds", serialize_with = "as_seconds")]
    pub(super) left: Option<Duration>,
}

impl Snapshot {
    /// All is read without awaiting, on the thread that the elector runs on: nothing changes in between.
    pub(super) fn take(handle: &LeaderHandle) -> Self {
        let observed = handle.observed();
        let leadership = handle.leadership();
        let leader = handle.leader();
        let held = observed.as_ref().filter(|_| leader.is_some());
        Self {
            fencing_token: leadership
                .as_ref()
                .map(|term| term.fencing_token())
                .or_else(|| held.map(|lease| lease.fencing_token)),
            leading: leadership.is_some(),
            left: leadership.map(|term| term.remaining()).or_else(|| held.map(until_expiry)),
            name: leader.unwrap_or_default(),
            identity: handle.identity().to_owned(),
            acquire_time: held.and_then(|lease| lease.acquire_time),
            renew_time: held.and_then(|lease| lease.renew_time),
            lease_duration: held.map(|lease| lease.lease_duration),
            age: observed.as_ref().map(|lease| lease.checked_for),
            unchanged_for: observed.as_ref().map(|lease| lease.unchanged_for),
        }
    }

    /// Whether the store answered within `patience`.
    pub(super) fn is_fresh(&self, patience: Duration) -> bool {
        self.age.is_some_and(|age| age <= patience)
    }
}

/// How long, at most, until the lease is known to have expired unless it is renewed.
fn until_expiry(lease: &ObservedLease) -> Duration {
    lease.lease_duration.saturating_sub(lease.unchanged_for)
}
