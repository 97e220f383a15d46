//! Reads the record's JSON. In a field on which a decision depends, a wrong value is an error.

use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Timelike, Utc};
use serde::de::DeserializeOwned;

use super::fields::{
    ACQUIRE_TIME, FAILBACKS, HOLDER_IDENTITY, LEADER_TRANSITIONS, LEASE_DURATION, LEASE_DURATION_SECONDS, PARTS, PEER,
    PREFERRED_HOLDER, RANK, RENEW_TIME, SESSION, WRITE_ID, has_four_digit_year,
};
use super::peer::PeerAddress;
use super::unknown::UnknownFields;
use super::write::Spelled;
use super::{LeaderElectionRecord, MAX_LEADER_TRANSITIONS, RELEASED_LEASE};
use crate::store::MAX_BODY_BYTES;
use crate::util::causes::one_line;
use crate::util::duration;

/// A field that only a history has. The history of the lock `x` is at the key `x.history`, which may also be the key
/// that somebody has chosen for a lock.
const TERMS_OF_HISTORY: &str = "terms";

/// The maximum length of the problem in an error, in characters.
const LONGEST_PROBLEM: usize = 400;

/// The error of an object's body that is not a record.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a leader election record: {field}: {problem}")]
pub struct RecordError {
    field: &'static str,
    problem: String,
}

impl RecordError {
    /// Makes `problem` short and printable, because it quotes an object that anyone may have written.
    fn new(field: &'static str, problem: impl AsRef<str>) -> Self {
        Self { field, problem: one_line(problem.as_ref(), LONGEST_PROBLEM) }
    }

    /// The name of the faulty field, or `body` if the fault is not in one field.
    #[must_use]
    pub fn field(&self) -> &str {
        self.field
    }
}

impl LeaderElectionRecord {
    /// Reads a record from an object's body.
    ///
    /// `leaseDuration` may be a Go duration or, under client-go's name `leaseDurationSeconds`, a whole number
    /// of seconds. A record with a lease longer than `max_lease_duration` is refused, and so is the record of a lock
    /// that a session holds.
    ///
    /// # Errors
    ///
    /// The error names the field and the problem. The caller must not overwrite such an object.
    pub fn from_json(body: &[u8], max_lease_duration: Duration) -> Result<Self, RecordError> {
        let record = parse_of_session(body, max_lease_duration)?;
        if let Some(session) = &record.session {
            let problem = format!(
                "the session {:?} holds the lock, which has no lease to wait for: choose another key for this elector, or \
                 let it compete through a session",
                excerpt(session)
            );
            return Err(RecordError::new(SESSION, problem));
        }
        Ok(record)
    }

    /// Reads a record to show who holds the lock. A lock that a session holds is accepted: its `session` is set, and
    /// its lease duration is zero. Only a session may replace such a record.
    ///
    /// # Errors
    ///
    /// Those of [`from_json`](Self::from_json), except that of a record with a session.
    pub fn from_json_of_any(body: &[u8], max_lease_duration: Duration) -> Result<Self, RecordError> {
        parse_of_session(body, max_lease_duration)
    }
}

/// Reads a record. A lock that a session holds, and that therefore has no lease, is accepted.
pub(crate) fn parse_of_session(body: &[u8], max_lease_duration: Duration) -> Result<LeaderElectionRecord, RecordError> {
    if body.len() > MAX_BODY_BYTES {
        let problem = format!("{} bytes are more than {MAX_BODY_BYTES}", body.len());
        return Err(RecordError::new("body", problem));
    }
    let mut fields: UnknownFields = serde_json::from_slice(body).map_err(|error| {
        let problem = if error.is_data() { error.to_string() } else { format!("not JSON: {error}") };
        RecordError::new("body", problem)
    })?;
    let holder_identity = take(&mut fields, HOLDER_IDENTITY)?;
    if holder_identity.is_none() && fields.get(TERMS_OF_HISTORY).is_some() {
        let problem = "it is the history of another lock, which `keep_history` writes beside that: choose another name";
        return Err(RecordError::new("body", problem));
    }
    let holder_identity: String = required(HOLDER_IDENTITY, holder_identity)?;
    // A lease without a holder blocks no candidate. Releases write one second, so one second is accepted even if the
    // configured maximum is shorter.
    let longest = if holder_identity.is_empty() { max_lease_duration.max(RELEASED_LEASE) } else { max_lease_duration };
    let session = take(&mut fields, SESSION)?.filter(|session: &String| !session.is_empty());
    let lease_duration = match take_lease_duration(&mut fields, longest)? {
        Some(duration) if session.is_none() => duration,
        None if session.is_some() => Duration::ZERO,
        None => return Err(RecordError::new(LEASE_DURATION, "missing")),
        Some(duration) => {
            let problem =
                format!("{} contradicts {SESSION}: a lock that a session holds has no lease", Spelled(duration));
            return Err(RecordError::new(LEASE_DURATION, problem));
        }
    };
    if session.is_some() && holder_identity.is_empty() {
        return Err(RecordError::new(HOLDER_IDENTITY, format!("empty, which contradicts {SESSION}")));
    }
    Ok(LeaderElectionRecord {
        holder_identity,
        lease_duration,
        session,
        acquire_time: take_time(&mut fields, ACQUIRE_TIME)?,
        renew_time: take_time(&mut fields, RENEW_TIME)?,
        leader_transitions: take_transitions(&mut fields)?,
        write_id: take(&mut fields, WRITE_ID)?,
        preferred_holder: take(&mut fields, PREFERRED_HOLDER)?.filter(|preferred: &String| !preferred.is_empty()),
        peer: fields.take_as(PEER, PeerAddress::from_json).map(Arc::new),
        rank: fields.take_if_known(RANK).map(Arc::new),
        parts: fields.take_if_known(PARTS).map(Arc::new),
        failbacks: fields.take_if_known(FAILBACKS).unwrap_or_default(),
        // A map that was emptied keeps memory for eleven fields, and a process may keep the records of 10,000 locks.
        unknown: if fields.is_empty() { UnknownFields::default() } else { fields },
    })
}

/// Removes and parses a field; `None` if it is missing or null.
fn take<T: DeserializeOwned>(fields: &mut UnknownFields, name: &'static str) -> Result<Option<T>, RecordError> {
    let Some(raw) = fields.0.remove(name) else { return Ok(None) };
    serde_json::from_str(raw.get())
        .map_err(|error| RecordError::new(name, format!("{} ({})", error, excerpt(raw.get()))))
}

fn required<T>(name: &'static str, value: Option<T>) -> Result<T, RecordError> {
    value.ok_or_else(|| RecordError::new(name, "missing"))
}

/// Shortens a value for an error message.
fn excerpt(text: &str) -> String {
    const LONGEST: usize = 60;
    let mut shown: String = text.chars().take(LONGEST).collect();
    if shown.len() < text.len() {
        shown.push('…');
    }
    shown
}

fn take_lease_duration(fields: &mut UnknownFields, max: Duration) -> Result<Option<Duration>, RecordError> {
    let text: Option<String> = take(fields, LEASE_DURATION)?;
    let seconds: Option<i64> = take(fields, LEASE_DURATION_SECONDS)?;
    let from_text = text.map(|text| parse_duration(&text)).transpose()?;
    let from_seconds = seconds
        .map(|seconds| {
            u64::try_from(seconds)
                .map(Duration::from_secs)
                .map_err(|_| RecordError::new(LEASE_DURATION_SECONDS, format!("{seconds} is negative")))
        })
        .transpose()?;
    let (name, duration) = match (from_text, from_seconds) {
        (Some(text), Some(seconds)) if text != seconds => {
            let problem = format!("{} contradicts {LEASE_DURATION_SECONDS} {}", Spelled(text), seconds.as_secs());
            return Err(RecordError::new(LEASE_DURATION, problem));
        }
        (Some(duration), _) => (LEASE_DURATION, duration),
        (None, Some(duration)) => (LEASE_DURATION_SECONDS, duration),
        (None, None) => return Ok(None),
    };
    if duration.is_zero() {
        return Err(RecordError::new(name, "must not be zero"));
    }
    if duration > max {
        let problem = format!("{} is longer than the longest lease allowed, {}", Spelled(duration), Spelled(max));
        return Err(RecordError::new(name, problem));
    }
    Ok(Some(duration))
}

fn parse_duration(text: &str) -> Result<Duration, RecordError> {
    if text.starts_with('-') {
        return Err(RecordError::new(LEASE_DURATION, format!("{:?} is negative", excerpt(text))));
    }
    duration::parse_duration(text).map_err(|error| {
        let problem = format!("{:?} is not a duration such as \"15s\" or \"1m30s\": {error}", excerpt(text));
        RecordError::new(LEASE_DURATION, problem)
    })
}

fn take_transitions(fields: &mut UnknownFields) -> Result<u64, RecordError> {
    let transitions: i64 = required(LEADER_TRANSITIONS, take(fields, LEADER_TRANSITIONS)?)?;
    match u64::try_from(transitions) {
        Ok(transitions) if transitions <= MAX_LEADER_TRANSITIONS => Ok(transitions),
        Ok(_) => {
            Err(RecordError::new(LEADER_TRANSITIONS, format!("{transitions} is more than {MAX_LEADER_TRANSITIONS}")))
        }
        Err(_) => Err(RecordError::new(LEADER_TRANSITIONS, format!("{transitions} is negative"))),
    }
}

fn take_time(fields: &mut UnknownFields, name: &'static str) -> Result<Option<DateTime<Utc>>, RecordError> {
    let Some(text) = take::<String>(fields, name)? else { return Ok(None) };
    let time = DateTime::parse_from_rfc3339(&text).map_err(|error| {
        let problem = format!("{:?} is not a time such as \"2026-02-02T10:15:30.000000Z\": {error}", excerpt(&text));
        RecordError::new(name, problem)
    })?;
    let time = time.to_utc();
    if !has_four_digit_year(time) {
        let problem = format!("{:?} is not between the years 0000 and 9999 in UTC", excerpt(&text));
        return Err(RecordError::new(name, problem));
    }
    // The library writes microseconds. A more precise time would change when the record is written again.
    Ok(time.with_nanosecond(time.nanosecond() / 1_000 * 1_000))
}
