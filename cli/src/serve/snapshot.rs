//! The current leader at one moment, as far as this process knows.

use std::time::Duration;

use chrono::{DateTime, Utc};
use leaderelection::{LeaderHandle, LeaderStatus, ObservedLease};
use serde::Serialize;

use crate::view::{as_seconds, as_time};

/// The answer of /leader. The page shows the same data to people.
///
/// Kubernetes' leader-elector sidecar answered with `name` alone.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Snapshot {
    /// The leader; empty if nobody is known to lead. Names this process only while it leads.
    pub(super) name: String,
    /// The holder that the lock named last, which may be dead; empty if there was none.
    pub(super) holder: String,
    /// The fencing token of the leader's term.
    pub(super) fencing_token: Option<u64>,
    /// This process leads at this moment.
    pub(super) leading: bool,
    /// The identity of this process.
    pub(super) identity: String,
    /// The start of the term, by the holder's wall clock.
    #[serde(serialize_with = "as_time")]
    pub(super) acquire_time: Option<DateTime<Utc>>,
    /// The last renewal of the lease, by the holder's wall clock.
    #[serde(serialize_with = "as_time")]
    pub(super) renew_time: Option<DateTime<Utc>>,
    /// The duration of the lease after a renewal.
    #[serde(rename = "leaseDurationSeconds", serialize_with = "as_seconds")]
    pub(super) lease_duration: Option<Duration>,
    /// The time since the store's last answer.
    #[serde(rename = "ageSeconds", serialize_with = "as_seconds")]
    pub(super) age: Option<Duration>,
    /// The time for which the store has returned exactly this record.
    #[serde(rename = "unchangedForSeconds", serialize_with = "as_seconds")]
    pub(super) unchanged_for: Option<Duration>,
    /// The time left. For the leader: until leadership ends without a renewal. For others: until another
    /// candidate may take the lease if the holder does not renew it.
    #[serde(rename = "leftSeconds", serialize_with = "as_seconds")]
    pub(super) left: Option<Duration>,
}

impl Snapshot {
    /// Takes one snapshot of the status, so that all parts of the answer agree.
    pub(super) fn take(handle: &LeaderHandle) -> Self {
        let LeaderStatus { leader, holder, leadership, remaining, observed, .. } = handle.status();
        let held = observed.as_ref().filter(|_| holder.is_some());
        let led = held.filter(|_| leader.is_some());
        Self {
            fencing_token: leadership
                .as_ref()
                .map(|term| term.fencing_token())
                .or_else(|| led.map(|lease| lease.fencing_token)),
            leading: leadership.is_some(),
            left: leadership.map(|_| remaining).or_else(|| held.map(until_expiry)),
            name: leader.unwrap_or_default(),
            holder: holder.unwrap_or_default(),
            identity: handle.identity().to_owned(),
            acquire_time: held.and_then(|lease| lease.acquire_time),
            renew_time: held.and_then(|lease| lease.renew_time),
            lease_duration: held.map(|lease| lease.lease_duration),
            age: observed.as_ref().map(|lease| lease.checked_for),
            unchanged_for: observed.as_ref().map(|lease| lease.unchanged_for),
        }
    }

    /// Returns `true` if the store answered within `patience`.
    pub(super) fn is_fresh(&self, patience: Duration) -> bool {
        self.age.is_some_and(|age| age <= patience)
    }
}

/// The longest time until the lease is known to have expired, unless it is renewed.
fn until_expiry(lease: &ObservedLease) -> Duration {
    lease.lease_duration.saturating_sub(lease.unchanged_for)
}
