//! A view of a lock, for people and as JSON.

mod session;
mod words;

use std::time::Duration;

use chrono::{DateTime, Utc};
use leaderelection::admin::ObservedTarget;
use leaderelection::causes::with_causes;
use leaderelection::implement::{Version, VersionedRecord};
use leaderelection::lock::LockParts;
use leaderelection::{FencingToken, LeaderElectionRecord, LockError, StoreErrorKind};
use serde::Serialize;

use crate::cause::Cause;
use crate::exit::Failure;
use crate::lock::LockUrl;
use crate::lock::status::LockStatus;

pub(crate) use self::session::{SessionObject, SessionRow, SessionView, work};
pub(crate) use self::words::{failure, leader_unknown};
pub(crate) use super::text::{ago, as_seconds, as_time, shell_word, short, time};

/// The result of one read of a lock.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct View {
    pub(crate) lock: String,
    #[serde(flatten)]
    pub(crate) status: LockStatus,
    /// The holder of the lease, dead or alive.
    pub(crate) holder: Option<String>,
    /// The fencing token of the holder's term, or of the last term.
    pub(crate) fencing_token: Option<FencingToken>,
    /// The lock's own lease; `None` if a session holds the lock.
    #[serde(serialize_with = "as_seconds", rename = "leaseDurationSeconds")]
    pub(crate) lease_duration: Option<Duration>,
    /// The session that holds the lock, or held it last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) session: Option<SessionView>,
    /// The address that the holder advertises.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) leader_address: Option<String>,
    /// The rank that the holder has written; the best rank is not written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) leader_rank: Option<u8>,
    /// The locks of which this one is a part, as the record names them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) part_of: Option<String>,
    /// The number of parts whose writers may be hostile, and yet make no second leader.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) parts_that_may_be_hostile: Option<usize>,
    /// The purpose that the record names.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) purpose: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) preferred_holder: Option<String>,
    /// The jobs that the lock says are done, newest first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) completed_jobs: Vec<String>,
    /// The times of the record, by the holder's clock.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) by_holders_clock: Option<Times>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) problem: Option<String>,
    /// The holder whose work failed last, and when, by the history of the lock.
    #[serde(skip)]
    pub(crate) failed: Option<(String, Option<DateTime<Utc>>)>,
    #[serde(skip)]
    pub(crate) version: Option<Version>,
}

/// The times that the holder wrote, by the holder's own clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Times {
    #[serde(serialize_with = "as_time")]
    pub(crate) acquire_time: Option<DateTime<Utc>>,
    #[serde(serialize_with = "as_time")]
    pub(crate) renew_time: Option<DateTime<Utc>>,
}

impl Times {
    fn of(record: &LeaderElectionRecord) -> Self {
        Self { acquire_time: record.acquire_time, renew_time: record.renew_time }
    }
}

impl View {
    /// The view of one poll. Only errors of the store are errors.
    pub(crate) fn of_target(url: &LockUrl, answer: Result<ObservedTarget, LockError>) -> Result<Self, Failure> {
        let ObservedTarget { found, session, .. } = match answer {
            Ok(observed) => observed,
            Err(error) if error.kind() == StoreErrorKind::Unreadable => return Ok(Self::of_read(url, Err(&error))),
            Err(error) => return Err(error.into()),
        };
        let view = Self::of_read(url, Ok(found.as_ref()));
        Ok(match session {
            Some(session) => {
                view.with_session(SessionObject::of(&url.at(session.target.key()), session.found.as_ref()))
            }
            None => view,
        })
    }

    /// Names the lock, which may be made of several.
    pub(crate) fn named(self, lock: &impl ToString) -> Self {
        Self { lock: lock.to_string(), ..self }
    }

    /// The view of one answer, which may be an error of the store.
    pub(crate) fn of_read(url: &LockUrl, answer: Result<Option<&VersionedRecord>, &LockError>) -> Self {
        match answer {
            Ok(None) => Self::empty(url, LockStatus::Absent),
            Ok(Some(found)) => Self { version: Some(found.version.clone()), ..Self::of_record(url, &found.record) },
            Err(error) if error.kind() == StoreErrorKind::Unreadable => {
                // Only the cause is shown, because the lock is already named.
                let cause = std::error::Error::source(error).map_or_else(|| error.to_string(), with_causes);
                Self::troubled(url, Cause::NotARecord, cause)
            }
            Err(error) => Self::troubled(url, Cause::of(error.kind()), error.in_full()),
        }
    }

    pub(crate) fn of_record(url: &LockUrl, record: &LeaderElectionRecord) -> Self {
        let status = match &record.preferred_holder {
            _ if record.is_released() => LockStatus::Free,
            Some(_) => LockStatus::HandingOver,
            None => LockStatus::Held,
        };
        Self {
            holder: Some(record.holder_identity.clone()).filter(|holder| !holder.is_empty()),
            fencing_token: Some(record.leader_transitions.into()),
            lease_duration: Some(record.lease_duration).filter(|_| record.session.is_none()),
            session: SessionView::of_record(record),
            leader_address: record.leader_address().map(str::to_owned),
            leader_rank: Some(record.leader_rank()).filter(|rank| *rank > 0),
            part_of: record.lock_parts().map(ToString::to_string),
            parts_that_may_be_hostile: record.lock_parts().map(LockParts::may_be_hostile),
            purpose: record.service(),
            preferred_holder: record.preferred_holder.clone(),
            completed_jobs: record.completed_jobs(),
            by_holders_clock: Some(Times::of(record)),
            ..Self::empty(url, status)
        }
    }

    pub(crate) fn unreachable(url: &LockUrl, failure: &Failure) -> Self {
        Self::troubled(url, failure.cause.unwrap_or(Cause::Silent), failure.to_string())
    }

    fn troubled(url: &LockUrl, cause: Cause, problem: String) -> Self {
        Self { problem: Some(problem), ..Self::empty(url, LockStatus::Unknown(cause)) }
    }

    fn empty(url: &LockUrl, status: LockStatus) -> Self {
        Self { lock: url.to_string(), status, ..Self::default() }
    }
}
