//! A term that has ended.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use crate::term::{FencingToken, TermEndReason};

/// A term that has ended: who led, when, and why the term ended. Times are those of the holder's wall clock.
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
    pub fencing_token: FencingToken,
    /// The beginning of the term; `None` if the record did not show it.
    #[serde(default, with = "time", skip_serializing_if = "Option::is_none")]
    pub from: Option<DateTime<Utc>>,
    /// The end of the term. If the next leader has written this entry: the last renewal, or `None` for a lock of a
    /// session.
    #[serde(default, with = "time", skip_serializing_if = "Option::is_none")]
    pub to: Option<DateTime<Utc>>,
    /// The reason for the end; [`Expired`](TermEndReason::Expired) if the next leader has written this entry.
    #[serde(flatten)]
    pub why: TermEndReason,
    /// The job of the term, if [`run_once`](crate::Elector::run_once) ran it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job: Option<String>,
    /// The result of the work, if the work has [reported](crate::Leadership::report_result) one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<String>,
}

/// Reads and writes times in the format of RFC 3339.
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
