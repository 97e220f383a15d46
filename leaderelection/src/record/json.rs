//! Reads and writes the record's JSON, strictly in every field on which a decision depends.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Datelike, Timelike, Utc};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

use super::peer::PeerAddress;
use super::unknown::UnknownFields;
use super::{LeaderElectionRecord, MAX_LEADER_TRANSITIONS, RELEASED_LEASE};
use crate::store::MAX_BODY_BYTES;

const HOLDER_IDENTITY: &str = "holderIdentity";
const LEASE_DURATION: &str = "leaseDuration";
const LEASE_DURATION_SECONDS: &str = "leaseDurationSeconds";
const ACQUIRE_TIME: &str = "acquireTime";
const RENEW_TIME: &str = "renewTime";
const LEADER_TRANSITIONS: &str = "leaderTransitions";
const WRITE_ID: &str = "writeId";
const PREFERRED_HOLDER: &str = "preferredHolder";
const SESSION: &str = "session";
const PEER: &str = "peer";
const RANK: &str = "rank";
const TAKE_BACKS: &str = "takeBacks";

/// The error of an object's body that is not a record.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a leader election record: {field}: {problem}")]
pub struct RecordError {
    field: &'static str,
    problem: String,
}

impl RecordError {
    fn new(field: &'static str, problem: impl Into<String>) -> Self {
        Self { field, problem: problem.into() }
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

    /// Returns the record as one line of JSON.
    #[must_use]
    pub fn to_json(&self) -> Vec<u8> {
        let mut body = Body(Vec::with_capacity(320));
        body.text(HOLDER_IDENTITY, &self.holder_identity);
        match &self.session {
            None => body.duration(LEASE_DURATION, self.lease_duration),
            Some(session) => body.text(SESSION, session),
        }
        for (name, time) in [(ACQUIRE_TIME, self.acquire_time), (RENEW_TIME, self.renew_time)] {
            // A wall clock can be wrong by thousands of years. The times are for people and are optional.
            if let Some(time) = time.filter(|time| has_four_digit_year(*time)) {
                body.time(name, time);
            }
        }
        body.value(LEADER_TRANSITIONS, &self.leader_transitions);
        if let Some(write_id) = &self.write_id {
            body.text(WRITE_ID, write_id);
        }
        if let Some(preferred_holder) = &self.preferred_holder {
            body.text(PREFERRED_HOLDER, preferred_holder);
        }
        if let Some(peer) = &self.peer {
            body.value(PEER, &**peer);
        }
        if let Some(rank) = &self.rank {
            body.value(RANK, &**rank);
        }
        if self.take_backs > 0 {
            body.value(TAKE_BACKS, &self.take_backs);
        }
        // Another program may have written something else under these names, and a name may occur only once.
        let is_written = |name: &str| match name {
            PEER => self.peer.is_some(),
            RANK => self.rank.is_some(),
            TAKE_BACKS => self.take_backs > 0,
            _ => false,
        };
        for (name, value) in self.unknown.0.iter().filter(|(name, _)| !is_written(name)) {
            body.unknown(name, value);
        }
        body.0.push(b'}');
        body.0
    }
}

/// Reads a record as a session does, which accepts a lock without a lease that a session holds.
pub(crate) fn parse_of_session(body: &[u8], max_lease_duration: Duration) -> Result<LeaderElectionRecord, RecordError> {
    if body.len() > MAX_BODY_BYTES {
        let problem = format!("{} bytes are more than {MAX_BODY_BYTES}", body.len());
        return Err(RecordError::new("body", problem));
    }
    let mut fields: UnknownFields =
        serde_json::from_slice(body).map_err(|error| RecordError::new("body", error.to_string()))?;
    let holder_identity: String = required(HOLDER_IDENTITY, take(&mut fields, HOLDER_IDENTITY)?)?;
    // A lease without a holder blocks no candidate. Its duration is always one second, even if that is longer
    // than the configured maximum.
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
        peer: take_peer(&mut fields),
        rank: take_if_known(&mut fields, RANK).map(Arc::new),
        take_backs: take_if_known(&mut fields, TAKE_BACKS).unwrap_or_default(),
        unknown: fields,
    })
}

/// Removes a field; `None` if it is missing or null.
fn take<T: DeserializeOwned>(fields: &mut UnknownFields, name: &'static str) -> Result<Option<T>, RecordError> {
    let Some(raw) = fields.0.remove(name) else { return Ok(None) };
    serde_json::from_str(raw.get())
        .map_err(|error| RecordError::new(name, format!("{} ({})", error, excerpt(raw.get()))))
}

/// Removes the address of the leader. No decision depends on it, so anything else under its name stays with the unknown
/// fields.
fn take_peer(fields: &mut UnknownFields) -> Option<Arc<PeerAddress>> {
    let peer = PeerAddress::from_json(fields.0.get(PEER)?.get())?;
    fields.0.remove(PEER);
    Some(Arc::new(peer))
}

/// Removes a field on which no promise depends. Anything else under its name stays with the unknown fields.
fn take_if_known<T: DeserializeOwned>(fields: &mut UnknownFields, name: &'static str) -> Option<T> {
    let known = serde_json::from_str(fields.0.get(name)?.get()).ok()?;
    fields.0.remove(name);
    Some(known)
}

fn required<T>(name: &'static str, value: Option<T>) -> Result<T, RecordError> {
    value.ok_or_else(|| RecordError::new(name, "missing"))
}

/// Shortens a value so that a reader recognises it and a log stays short.
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
    humantime::parse_duration(text).map_err(|error| {
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

/// Returns `true` if RFC 3339 can represent the year; other parsers reject any other year.
fn has_four_digit_year(time: DateTime<Utc>) -> bool {
    (0..=9999).contains(&time.year())
}

/// An object of JSON that is being written. A map of serde would escape the names of the known fields in every renewal.
struct Body(Vec<u8>);

impl Body {
    fn separate(&mut self) {
        self.0.push(if self.0.is_empty() { b'{' } else { b',' });
    }

    /// Writes the name of a known field, which needs no escapes.
    fn name(&mut self, name: &'static str) {
        self.separate();
        self.0.push(b'"');
        self.0.extend_from_slice(name.as_bytes());
        self.0.extend_from_slice(b"\":");
    }

    fn value(&mut self, name: &'static str, value: &impl Serialize) {
        self.name(name);
        self.json(value);
    }

    fn unknown(&mut self, name: &str, value: &RawValue) {
        self.separate();
        self.json(name);
        self.0.push(b':');
        self.json(value);
    }

    fn text(&mut self, name: &'static str, text: &str) {
        self.value(name, &text);
    }

    fn duration(&mut self, name: &'static str, duration: Duration) {
        self.name(name);
        self.0.push(b'"');
        for (number, unit) in Spelled(duration).parts() {
            self.json(&number);
            self.0.extend_from_slice(unit.as_bytes());
        }
        self.0.push(b'"');
    }

    fn time(&mut self, name: &'static str, time: DateTime<Utc>) {
        self.name(name);
        self.0.extend_from_slice(&spell_time(time));
    }

    fn json(&mut self, value: &(impl Serialize + ?Sized)) {
        if let Err(error) = serde_json::to_writer(&mut self.0, value) {
            // Writing to memory does not fail, and every key is a string.
            unreachable!("a record is always JSON: {error}");
        }
    }
}

/// Spells a time of a four-digit year as RFC 3339 does, with microseconds, and in quotation marks.
fn spell_time(time: DateTime<Utc>) -> [u8; 29] {
    let time = time.naive_utc();
    let (year, nanos) = (time.year().unsigned_abs(), time.nanosecond());
    // chrono counts a leap second as the second before it, with more than a second's nanoseconds.
    let (second, micros) = (time.second() + nanos / 1_000_000_000, nanos / 1_000 % 1_000_000);
    let mut text = *b"\"0000-00-00T00:00:00.000000Z\"";
    for (at, number) in [
        (1, year / 100),
        (3, year % 100),
        (6, time.month()),
        (9, time.day()),
        (12, time.hour()),
        (15, time.minute()),
        (18, second),
        (21, micros / 10_000),
        (23, micros / 100 % 100),
        (25, micros % 100),
    ] {
        text[at] += (number / 10) as u8;
        text[at + 1] += (number % 10) as u8;
    }
    text
}

/// Spells a duration as Go does (`1m30s`), but in whole units below a second (`1500ms`, not `1.5s`).
struct Spelled(Duration);

impl Spelled {
    /// The numbers and their units, largest first.
    fn parts(&self) -> impl Iterator<Item = (u128, &'static str)> {
        let Self(duration) = self;
        let seconds = duration.as_secs();
        let units = match duration.subsec_nanos() {
            0 => {
                [(seconds / 3600, "h"), (seconds / 60 % 60, "m"), (seconds % 60, "s")].map(|(n, unit)| (n.into(), unit))
            }
            nanos if nanos.is_multiple_of(1_000_000) => [(0, ""), (0, ""), (duration.as_millis(), "ms")],
            nanos if nanos.is_multiple_of(1_000) => [(0, ""), (0, ""), (duration.as_micros(), "us")],
            _ => [(0, ""), (0, ""), (duration.as_nanos(), "ns")],
        };
        let first = units.iter().position(|(number, _)| *number > 0).unwrap_or(units.len() - 1);
        units.into_iter().skip(first)
    }
}

impl fmt::Display for Spelled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.parts().try_for_each(|(number, unit)| write!(f, "{number}{unit}"))
    }
}

#[cfg(test)]
mod tests {
    use chrono::SecondsFormat;
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn times_are_spelled_as_chrono_does(seconds in -62_167_219_200_i64..253_402_300_800, nanos in 0_u32..1_000_000_000) {
            let time = DateTime::from_timestamp(seconds, nanos).unwrap();
            let expected = format!("{:?}", time.to_rfc3339_opts(SecondsFormat::Micros, true));
            prop_assert_eq!(String::from_utf8(spell_time(time).to_vec()).unwrap(), expected);
        }
    }

    #[test]
    fn a_leap_second_is_the_sixtieth() {
        let time = DateTime::parse_from_rfc3339("2016-12-31T23:59:60.250000Z").unwrap().to_utc();
        assert_eq!(&spell_time(time), b"\"2016-12-31T23:59:60.250000Z\"");
    }
}
