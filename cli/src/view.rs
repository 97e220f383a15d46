//! What is shown of a lock: for people and as JSON.

use std::time::Duration;

use chrono::{DateTime, SecondsFormat, Utc};
use leaderelection::{
    LeaderElectionRecord, LockError, ObjectStoreBasedLock as _, StoreErrorKind, Version, with_causes,
};
use serde::Serialize;

use crate::exit::Failure;
use crate::lock::{Lock, LockUrl};

/// What one look at a lock showed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct View {
    pub(crate) lock: String,
    pub(crate) state: State,
    /// Who holds the lease, dead or alive.
    pub(crate) holder: Option<String>,
    /// That of the holder's term, or of the last one.
    pub(crate) fencing_token: Option<u64>,
    #[serde(serialize_with = "as_seconds", rename = "leaseDurationSeconds")]
    pub(crate) lease_duration: Option<Duration>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) preferred_holder: Option<String>,
    /// By the holder's clock.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) by_holders_clock: Option<Times>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) problem: Option<String>,
    #[serde(skip)]
    pub(crate) version: Option<Version>,
}

/// What a lock can be seen to be in one look.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum State {
    /// Somebody holds the lease; whether it has expired, one look does not tell.
    Held,
    /// Nobody holds it.
    Free,
    /// There is no object.
    Absent,
    /// There is an object that is not a record.
    Unreadable,
    /// The store gave no good answer.
    Unreachable,
}

/// Times that the holder wrote, by its own clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Times {
    #[serde(serialize_with = "as_time")]
    pub(crate) acquire_time: Option<DateTime<Utc>>,
    #[serde(serialize_with = "as_time")]
    pub(crate) renew_time: Option<DateTime<Utc>>,
}

impl View {
    /// Looks once, for no longer than `patience`. Only errors of the store are errors.
    pub(crate) async fn of(url: &LockUrl, lock: &Lock, patience: Duration) -> Result<Self, Failure> {
        match tokio::time::timeout(patience, lock.get()).await {
            Err(_) => Err(Failure::silent(&lock.describe(), patience)),
            Ok(Ok(None)) => Ok(Self::empty(url, State::Absent)),
            Ok(Ok(Some(found))) => Ok(Self { version: Some(found.version), ..Self::of_record(url, &found.record) }),
            Ok(Err(error)) if error.kind() == StoreErrorKind::Unreadable => Ok(Self::unreadable(url, &error)),
            Ok(Err(error)) => Err(error.into()),
        }
    }

    pub(crate) fn of_record(url: &LockUrl, record: &LeaderElectionRecord) -> Self {
        let state = if record.is_released() { State::Free } else { State::Held };
        Self {
            holder: Some(record.holder_identity.clone()).filter(|holder| !holder.is_empty()),
            fencing_token: Some(record.leader_transitions),
            lease_duration: Some(record.lease_duration),
            preferred_holder: record.preferred_holder.clone(),
            by_holders_clock: Some(Times { acquire_time: record.acquire_time, renew_time: record.renew_time }),
            ..Self::empty(url, state)
        }
    }

    fn unreadable(url: &LockUrl, error: &LockError) -> Self {
        // The cause alone, for the lock is named already.
        let cause = std::error::Error::source(error).map_or_else(|| error.to_string(), with_causes);
        Self { problem: Some(cause), ..Self::empty(url, State::Unreadable) }
    }

    pub(crate) fn unreachable(url: &LockUrl, failure: &Failure) -> Self {
        Self { problem: Some(failure.to_string()), ..Self::empty(url, State::Unreachable) }
    }

    fn empty(url: &LockUrl, state: State) -> Self {
        Self {
            lock: url.to_string(),
            state,
            holder: None,
            fencing_token: None,
            lease_duration: None,
            preferred_holder: None,
            by_holders_clock: None,
            problem: None,
            version: None,
        }
    }

    /// Who leads, in a few words.
    pub(crate) fn leader(&self) -> &str {
        match (&self.holder, self.state) {
            (Some(holder), _) => holder,
            (None, State::Absent) => "nobody: there is no such object yet; the first candidate creates it",
            (None, State::Unreadable) => "unknown: the object is not a record, and no candidate writes over it",
            (None, State::Unreachable) => "unknown",
            (None, State::Free | State::Held) => "nobody: the lease is free",
        }
    }
}

/// A duration as people say it: `1.8s`, `83s`, `12m 5s`, `3days 4h`.
pub(crate) fn short(duration: Duration) -> String {
    if duration < Duration::from_secs(60) {
        return format!("{:.1}s", duration.as_secs_f64());
    }
    let text = humantime::format_duration(Duration::from_secs(duration.as_secs())).to_string();
    text.split(' ').take(2).collect::<Vec<_>>().join(" ")
}

/// How long ago `time` was, as far as the clocks agree.
pub(crate) fn ago(time: DateTime<Utc>, now: DateTime<Utc>) -> String {
    match (now - time).to_std() {
        Ok(age) => format!("{} ago", short(age)),
        Err(_) => format!("{} ahead of our clock", short((time - now).to_std().unwrap_or_default())),
    }
}

/// A time as it is written everywhere here.
pub(crate) fn time(time: DateTime<Utc>) -> String {
    time.to_rfc3339_opts(SecondsFormat::Millis, true)
}

pub(crate) fn as_time<S: serde::Serializer>(value: &Option<DateTime<Utc>>, serializer: S) -> Result<S::Ok, S::Error> {
    value.map(time).serialize(serializer)
}

/// Seconds, with what is behind the point.
pub(crate) fn as_seconds<S: serde::Serializer>(value: &Option<Duration>, serializer: S) -> Result<S::Ok, S::Error> {
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
