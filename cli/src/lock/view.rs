//! A view of a lock, for people and as JSON.

mod session;

use std::time::Duration;

use chrono::{DateTime, SecondsFormat, Utc};
use leaderelection::admin::Look;
use leaderelection::causes::with_causes;
use leaderelection::lock::LockParts;
use leaderelection::{LeaderElectionRecord, LockError, StoreErrorKind, Version, VersionedRecord};
use serde::Serialize;

use crate::cause::Cause;
use crate::exit::Failure;
use crate::lock::LockUrl;

pub(crate) use self::session::{SessionObject, SessionRow, SessionView, work};

/// The result of one read of a lock.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct View {
    pub(crate) lock: String,
    pub(crate) state: State,
    /// The holder of the lease, dead or alive.
    pub(crate) holder: Option<String>,
    /// The fencing token of the holder's term, or of the last term.
    pub(crate) fencing_token: Option<u64>,
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
    /// The fault behind the problem.
    #[serde(skip)]
    pub(crate) cause: Option<Cause>,
    #[serde(skip)]
    pub(crate) version: Option<Version>,
}

/// The state of a lock after one read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum State {
    /// A candidate holds the lease. One read cannot show whether the lease has expired.
    Held,
    /// The lease has no holder.
    Free,
    /// The object does not exist.
    #[default]
    Absent,
    /// The object exists, but is not a record.
    Unreadable,
    /// The store gave no usable answer.
    Unreachable,
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
    /// The view of one look. Only errors of the store are errors.
    pub(crate) fn of_look(url: &LockUrl, answer: Result<Look, LockError>) -> Result<Self, Failure> {
        let Look { found, session, .. } = match answer {
            Ok(look) => look,
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
            Ok(None) => Self::empty(url, State::Absent),
            Ok(Some(found)) => Self { version: Some(found.version.clone()), ..Self::of_record(url, &found.record) },
            Err(error) if error.kind() == StoreErrorKind::Unreadable => {
                // Only the cause is shown, because the lock is already named.
                let cause = std::error::Error::source(error).map_or_else(|| error.to_string(), with_causes);
                Self::troubled(url, State::Unreadable, Some(Cause::NotARecord), cause)
            }
            Err(error) => Self::troubled(url, State::Unreachable, Some(Cause::of(error.kind())), error.in_full()),
        }
    }

    pub(crate) fn of_record(url: &LockUrl, record: &LeaderElectionRecord) -> Self {
        let state = if record.is_released() { State::Free } else { State::Held };
        Self {
            holder: Some(record.holder_identity.clone()).filter(|holder| !holder.is_empty()),
            fencing_token: Some(record.leader_transitions),
            lease_duration: Some(record.lease_duration).filter(|_| record.session.is_none()),
            session: SessionView::of_record(record),
            leader_address: record.leader_address().map(str::to_owned),
            leader_rank: Some(record.leader_rank()).filter(|rank| *rank > 0),
            part_of: record.lock_parts().map(ToString::to_string),
            parts_that_may_be_hostile: record.lock_parts().map(LockParts::may_be_hostile),
            purpose: record.purpose(),
            preferred_holder: record.preferred_holder.clone(),
            completed_jobs: record.completed_jobs(),
            by_holders_clock: Some(Times::of(record)),
            ..Self::empty(url, state)
        }
    }

    pub(crate) fn unreachable(url: &LockUrl, failure: &Failure) -> Self {
        Self::troubled(url, State::Unreachable, failure.cause, failure.to_string())
    }

    fn troubled(url: &LockUrl, state: State, cause: Option<Cause>, problem: String) -> Self {
        Self { problem: Some(problem), cause, ..Self::empty(url, state) }
    }

    /// The text of the problem, which begins with its cause; empty if there is none.
    pub(crate) fn trouble(&self) -> String {
        let problem = self.problem.as_deref().unwrap_or_default();
        self.cause.map_or_else(|| problem.to_owned(), |cause| format!("{cause}: {problem}"))
    }

    fn empty(url: &LockUrl, state: State) -> Self {
        Self { lock: url.to_string(), state, ..Self::default() }
    }

    /// The current leader, in a few words.
    pub(crate) fn leader(&self) -> &str {
        match (&self.holder, self.state) {
            (Some(holder), _) => holder,
            (None, State::Absent) => "nobody: there is no such object yet; the first candidate creates it",
            (None, State::Unreadable) => "unknown: the object is not a record, and no candidate writes over it",
            (None, State::Unreachable) => "unknown",
            (None, _) if self.session.is_some() => "nobody: the session that held the lock has ended",
            (None, State::Free | State::Held) => "nobody: the lease is free",
        }
    }
}

/// Formats a duration for people: `1.8s`, `83s`, `12m 5s`, `3days 4h`.
pub(crate) fn short(duration: Duration) -> String {
    if duration < Duration::from_secs(60) {
        return format!("{:.1}s", duration.as_secs_f64());
    }
    let text = humantime::format_duration(Duration::from_secs(duration.as_secs())).to_string();
    text.split(' ').take(2).collect::<Vec<_>>().join(" ")
}

/// Formats the time since `time`, as far as the clocks agree.
pub(crate) fn ago(time: DateTime<Utc>, now: DateTime<Utc>) -> String {
    match (now - time).to_std() {
        Ok(age) => format!("{} ago", short(age)),
        Err(_) => format!("{} ahead of our clock", short((time - now).to_std().unwrap_or_default())),
    }
}

/// Formats a time in the form that all commands use.
pub(crate) fn time(time: DateTime<Utc>) -> String {
    time.to_rfc3339_opts(SecondsFormat::Millis, true)
}

pub(crate) fn as_time<S: serde::Serializer>(value: &Option<DateTime<Utc>>, serializer: S) -> Result<S::Ok, S::Error> {
    value.map(time).serialize(serializer)
}

/// Serializes a duration, if there is one, as seconds with fractions.
pub(crate) fn as_seconds<S, D>(value: &D, serializer: S) -> Result<S::Ok, S::Error>
where
    S: serde::Serializer,
    D: Copy + Into<Option<Duration>>,
{
    let value: Option<Duration> = (*value).into();
    value.map(|duration| (duration.as_secs_f64() * 1e3).round() / 1e3).serialize(serializer)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_short() {
        for (millis, text) in [(40, "0.0s"), (1_840, "1.8s"), (83_000, "1m 23s"), (273_845_000, "3days 4h")] {
            assert_eq!(short(Duration::from_millis(millis)), text);
        }
    }

    #[test]
    fn a_clock_that_is_ahead_is_called_so() {
        let now = DateTime::UNIX_EPOCH + Duration::from_secs(100);
        assert_eq!(ago(DateTime::UNIX_EPOCH, now), "1m 40s ago");
        assert_eq!(ago(now + Duration::from_secs(2), now), "2.0s ahead of our clock");
    }
}
