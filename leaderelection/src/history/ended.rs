//! A term that has ended.

use std::fmt;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use crate::term::EndReason;

/// A term that has ended: who led, when, and why the term ended. Times are by the wall clock of the holder.
///
/// ```json
/// {"holder": "node-1", "fencingToken": 7, "from": "2026-02-02T03:00:00Z", "to": "2026-02-02T03:07:12Z",
///  "why": "work_finished", "job": "2026-02-02", "result": "exit code 0"}
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct EndedTerm {
    /// The leader.
    pub holder: String,
    /// The token of the term.
    pub fencing_token: u64,
    /// The beginning of the term.
    #[serde(default, with = "time", skip_serializing_if = "Option::is_none")]
    pub from: Option<DateTime<Utc>>,
    /// The end of the term. If the holder has not written its own end: its last renewal, and nothing for a lock of a session.
    #[serde(default, with = "time", skip_serializing_if = "Option::is_none")]
    pub to: Option<DateTime<Utc>>,
    /// The reason for the end.
    #[serde(flatten)]
    pub why: Why,
    /// The job of the term, if it was one of [`run_once`](crate::DefaultLeaderElector::run_once).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job: Option<String>,
    /// The result of the work, if the work has [told](crate::Leadership::tell_result) one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<String>,
}

/// The reason for which a term ended, as a history has it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Why {
    /// The [name](EndReason::name) of the reason; or `expired`, if the next leader has found the lease expired.
    #[serde(rename = "why")]
    pub name: String,
    /// The candidate that was to lead next, or that has taken over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

impl Why {
    /// The name of the reason that a later leader writes for one that has written none.
    pub(super) const EXPIRED: &str = "expired";

    pub(super) fn expired(next: &str) -> Self {
        Self { name: Self::EXPIRED.to_owned(), next: Some(next.to_owned()) }
    }

    /// Returns `true` if another than the holder has written the end of the term.
    #[must_use]
    pub fn is_seen_by_next(&self) -> bool {
        self.name == Self::EXPIRED
    }
}

impl From<&EndReason> for Why {
    fn from(reason: &EndReason) -> Self {
        let next = match reason {
            EndReason::Transferred { to: next } | EndReason::TakenOver { by: next } => Some(next.clone()),
            _ => None,
        };
        Self { name: reason.name().to_owned(), next }
    }
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words = match self.name.as_str() {
            "cancelled" => "stopped",
            "stepped_down" => "stepped down",
            "transferred" => "handed over",
            "renew_deadline" => "not renewed in time",
            "taken_over" => "taken over",
            "emptied" => "released by somebody else",
            "deleted" => "the object was deleted",
            "unreadable" => "the object was replaced",
            "work_panicked" => "the work panicked",
            "work_failed" => "the work failed",
            "work_finished" => "the work is complete",
            // What a later version writes.
            other => other,
        };
        match &self.next {
            Some(next) if self.name == "transferred" => write!(f, "{words} to {next}"),
            Some(next) if self.is_seen_by_next() => write!(f, "{words}, taken over by {next}"),
            Some(next) => write!(f, "{words} by {next}"),
            None => f.write_str(words),
        }
    }
}

/// Times as RFC 3339 spells them, as in a record.
mod time {
    use chrono::{DateTime, SecondsFormat, Utc};
    use serde::de::Error as _;
    use serde::{Deserialize as _, Deserializer, Serialize as _, Serializer};

    pub(super) fn serialize<S: Serializer>(time: &Option<DateTime<Utc>>, serializer: S) -> Result<S::Ok, S::Error> {
        time.map(|time| time.to_rfc3339_opts(SecondsFormat::Millis, true)).serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<DateTime<Utc>>, D::Error> {
        let text: Option<String> = Option::deserialize(deserializer)?;
        text.map(|text| DateTime::parse_from_rfc3339(&text).map(|time| time.to_utc()).map_err(D::Error::custom))
            .transpose()
    }
}
