//! The session that holds a lock, as a part of the lock's view.

use std::time::Duration;

use chrono::{DateTime, Utc};
use leaderelection::LeaderElectionRecord;
use leaderelection::implement::{Version, VersionedRecord};
use leaderelection::sessions::Progress;
use serde::Serialize;

use super::{Times, View, as_seconds, short};
use crate::lock::LockUrl;
use crate::lock::status::LockStatus;

/// The session that a lock's record names.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SessionView {
    pub(crate) id: String,
    /// The identity of the session's process.
    pub(crate) holder: String,
    /// The result of a read of the session's object.
    #[serde(flatten)]
    pub(crate) object: Option<SessionObject>,
}

/// A session on its own.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SessionRow {
    pub(crate) id: String,
    /// The identity of the session's process; `None` if the session has ended.
    pub(crate) holder: Option<String>,
    #[serde(flatten)]
    pub(crate) object: SessionObject,
    /// The number of locks that name the session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) locks: Option<usize>,
}

/// The object of a session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SessionObject {
    pub(crate) url: String,
    #[serde(rename = "state")]
    pub(crate) state: SessionState,
    #[serde(serialize_with = "as_seconds", rename = "leaseDurationSeconds")]
    pub(crate) lease_duration: Option<Duration>,
    /// The opening of the session and its last renewal, by the clock of the session's process.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) by_holders_clock: Option<Times>,
    /// The long work of the session's process at its last renewal.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) progress: Option<Progress>,
    #[serde(skip)]
    version: Option<Version>,
}

/// The state of a session after one read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum SessionState {
    /// The session was not ended. One read cannot show whether its lease has expired.
    Open,
    /// The session was ended, and holds nothing.
    Ended,
    /// The object does not exist, because the session ended long ago.
    Gone,
}

impl SessionRow {
    pub(crate) fn of_record(url: &LockUrl, id: &str, record: &LeaderElectionRecord) -> Self {
        let holder = Some(record.holder_identity.clone()).filter(|holder| !holder.is_empty());
        Self { id: id.to_owned(), holder, object: SessionObject::of_record(url, Some(record)), locks: None }
    }
}

impl SessionObject {
    pub(crate) fn of(url: &LockUrl, found: Option<&VersionedRecord>) -> Self {
        let object = Self::of_record(url, found.map(|found| &found.record));
        Self { version: found.map(|found| found.version.clone()), ..object }
    }

    fn of_record(url: &LockUrl, record: Option<&LeaderElectionRecord>) -> Self {
        let state = match record {
            None => SessionState::Gone,
            Some(record) if record.is_released() => SessionState::Ended,
            Some(_) => SessionState::Open,
        };
        Self {
            url: url.to_string(),
            state,
            lease_duration: record.filter(|_| state == SessionState::Open).map(|record| record.lease_duration),
            by_holders_clock: record.map(Times::of),
            progress: record.filter(|_| state == SessionState::Open).and_then(Progress::of),
            version: None,
        }
    }
}

/// Returns a session's long work in words.
pub(crate) fn work(progress: &Progress) -> String {
    let Progress { leads, taking, handing_over, waiting, seconds, .. } = progress;
    let since = short(Duration::from_secs(*seconds));
    format!("leads {leads}, takes {taking}, hands over {handing_over}, {waiting} wait, for {since}")
}

impl SessionView {
    /// The part of the view that the lock's own record shows.
    pub(super) fn of_record(record: &LeaderElectionRecord) -> Option<Self> {
        let id = record.session.clone()?;
        Some(Self { id, holder: record.holder_identity.clone(), object: None })
    }

    /// Returns `true` if the session is known to hold nothing.
    pub(crate) fn has_ended(&self) -> bool {
        self.object.as_ref().is_some_and(|object| object.state != SessionState::Open)
    }
}

impl View {
    /// Adds the object of the session that the lock names. An ended session holds nothing.
    pub(crate) fn with_session(mut self, object: SessionObject) -> Self {
        let Some(session) = &mut self.session else { return self };
        session.object = Some(object);
        if session.has_ended() {
            (self.status, self.holder) = (LockStatus::Free, None);
        }
        self
    }

    /// The lease on which the leader depends: that of the session, or the lock's own.
    pub(crate) fn lease(&self) -> Option<Duration> {
        self.session_object().map_or(self.lease_duration, |object| object.lease_duration)
    }

    /// The last renewal of that lease, by the holder's clock.
    pub(crate) fn renewed(&self) -> Option<DateTime<Utc>> {
        let times = self.session_object().map_or(self.by_holders_clock, |object| object.by_holders_clock);
        times.and_then(|times| times.renew_time)
    }

    fn session_object(&self) -> Option<&SessionObject> {
        self.session.as_ref()?.object.as_ref()
    }
}
