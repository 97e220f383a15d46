//! The current leader at one moment, as far as this process knows.

use std::time::Duration;

use chrono::{DateTime, Utc};
use leaderelection::handle::{LastError, ObservedLease, Operation};
use leaderelection::{FencingToken, LeaderHandle, LeaderStatus};
use serde::Serialize;

use crate::cause::Cause;
use crate::lock::status::{Age, LockStatus};
use crate::lock::view::{as_seconds, as_time};

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
    /// The address at which clients reach the leader, if it advertises one.
    #[serde(rename = "address")]
    pub(super) client_address: Option<String>,
    /// The fencing token of the leader's term.
    pub(super) fencing_token: Option<FencingToken>,
    /// This process leads at this moment.
    pub(super) leading: bool,
    /// The identity of this process.
    pub(super) identity: String,
    /// The start of the term, by the holder's wall clock.
    #[serde(serialize_with = "as_time")]
    pub(super) acquire_time: Option<DateTime<Utc>>,
    /// The release of a lease that nobody holds, by the wall clock of the one who released it.
    #[serde(skip)]
    pub(super) free_since: Option<DateTime<Utc>>,
    /// The candidate that goes first once the lease is free.
    #[serde(skip)]
    pub(super) preferred_holder: Option<String>,
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
    /// A renewal was seen, or another change of the lock.
    #[serde(skip)]
    pub(super) seen_to_change: bool,
    /// Another process renews the lease with the same identity.
    #[serde(skip)]
    pub(super) of_duplicate: bool,
    /// The last error, if it may still matter.
    #[serde(skip)]
    pub(super) trouble: Option<LastError>,
}

/// A snapshot, with the state of this process.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Published {
    #[serde(flatten)]
    pub(super) snapshot: Snapshot,
    #[serde(flatten)]
    pub(super) status: LockStatus,
    /// This process stops: the work should end, and POST /term should say so.
    pub(super) draining: bool,
    /// The job of --job-id is done.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) job_done: Option<bool>,
}

/// All that an event is about.
pub(super) type DedupKey = (String, Option<FencingToken>, bool, bool, Option<bool>);

impl Published {
    pub(super) fn essence(&self) -> DedupKey {
        let Self { snapshot, draining, job_done, .. } = self;
        (snapshot.name.clone(), snapshot.fencing_token, snapshot.leading, *draining, *job_done)
    }
}

impl Snapshot {
    /// Takes one snapshot of the status, so that all parts of the answer agree.
    pub(super) fn take(handle: &LeaderHandle) -> Self {
        let status = handle.status();
        let LeaderStatus { leader, holder, client_address, leadership, remaining, observed, last_error, .. } = status;
        let held = observed.as_ref().filter(|_| holder.is_some());
        let led = held.filter(|_| leader.is_some());
        Self {
            trouble: last_error.filter(|error| is_open(error, observed.as_ref())),
            seen_to_change: held.is_some_and(|lease| lease.seen_to_change),
            of_duplicate: held.is_some_and(|lease| lease.of_duplicate && !lease.has_expired()),
            fencing_token: leadership
                .as_ref()
                .map(|term| term.fencing_token())
                .or_else(|| led.map(|lease| lease.fencing_token)),
            leading: leadership.is_some(),
            client_address,
            left: leadership.map(|_| remaining).or_else(|| held.map(until_expiry)),
            name: leader.unwrap_or_default(),
            holder: holder.unwrap_or_default(),
            identity: handle.identity().to_owned(),
            acquire_time: held.and_then(|lease| lease.acquire_time),
            free_since: observed.as_ref().filter(|_| held.is_none()).and_then(|lease| lease.acquire_time),
            preferred_holder: observed.as_ref().and_then(|lease| lease.preferred_holder.clone()),
            renew_time: held.and_then(|lease| lease.renew_time),
            lease_duration: held.map(|lease| lease.lease_duration),
            age: observed.as_ref().map(|lease| lease.checked_for),
            unchanged_for: observed.as_ref().map(|lease| lease.unchanged_for),
        }
    }

    /// The fault of the store or the lock that is told if nobody can lead or the leader is not known.
    pub(super) fn cause(&self) -> Cause {
        let silence = if self.age.is_some() { Cause::Silent } else { Cause::NotYet };
        self.trouble.as_ref().map_or(silence, |error| Cause::of(error.kind))
    }

    /// The status of the lock, as this candidate sees it. A store that has not answered within `patience` tells nothing.
    pub(super) fn status(&self, patience: Duration, now: DateTime<Utc>) -> LockStatus {
        let is_blind = self.trouble.as_ref().is_some_and(|error| error.operation == Operation::Get);
        let is_own = self.holder == self.identity;
        match self.cause() {
            _ if self.leading => LockStatus::Led,
            _ if self.of_duplicate => LockStatus::DuplicateIdentity,
            Cause::NotARecord if self.name.is_empty() => LockStatus::Unknown(Cause::NotARecord),
            cause if self.name.is_empty() && (!self.is_fresh(patience) || is_blind && !is_own) => {
                LockStatus::Unknown(cause)
            }
            _ if self.holder.is_empty() => LockStatus::Free,
            _ => {
                let lease = self.lease_duration.unwrap_or_default();
                let age = Age::new(None, self.unchanged_for.unwrap_or_default(), lease, self.seen_to_change && !is_own);
                LockStatus::of_lease(Some(lease), Some(&age), None, self.renew_time.filter(|_| !is_own), now)
            }
        }
    }

    /// Returns `true` if the store answered within `patience`.
    pub(super) fn is_fresh(&self, patience: Duration) -> bool {
        self.age.is_some_and(|age| age <= patience)
    }
}

/// Returns `true` if nothing has shown since the error that its cause is gone: an answer after a failed read, and a change of
/// the lock after a failed write, because a candidate that cannot write may still read.
fn is_open(error: &LastError, seen: Option<&ObservedLease>) -> bool {
    let mended_for = |lease: &ObservedLease| match error.operation {
        Operation::Get => lease.checked_for,
        _ => lease.unchanged_for,
    };
    seen.is_none_or(|lease| error.age < mended_for(lease))
}

/// The longest time until the lease is known to have expired, unless it is renewed.
fn until_expiry(lease: &ObservedLease) -> Duration {
    lease.lease_duration.saturating_sub(lease.unchanged_for)
}
