//! Writes the record's JSON.

use std::fmt;
use std::time::Duration;

use chrono::{DateTime, Datelike, Timelike, Utc};
use serde::Serialize;
use serde_json::value::RawValue;

use super::LeaderElectionRecord;
use super::fields::{
    ACQUIRE_TIME, COMPLETED_JOBS, FAILBACKS, HOLDER_IDENTITY, LEADER_TRANSITIONS, LEASE_DURATION, PARTS, PEER,
    PREFERRED_HOLDER, RANK, RENEW_TIME, SESSION, WRITE_ID, has_four_digit_year,
};
use crate::store::MAX_BODY_BYTES;

impl LeaderElectionRecord {
    /// Returns the record as one line of JSON, which every [`ConditionalStore`](crate::implement::ConditionalStore)
    /// accepts.
    ///
    /// If the record would be larger than [`MAX_BODY_BYTES`], old job marks are left out, and then the largest of the
    /// [unknown fields](Self::unknown), but never `completedJobs`. Otherwise, nobody could take over a lock whose
    /// record has no room for the next holder's fields.
    #[must_use]
    pub fn to_json(&self) -> Vec<u8> {
        let body = self.spell();
        if body.len() <= MAX_BODY_BYTES {
            return body;
        }
        let mut record = self.clone();
        record.make_room();
        record.spell()
    }

    /// Removes old job marks, and then unknown fields, until the record can be written. Returns the names of the
    /// removed fields.
    pub(crate) fn make_room(&mut self) -> Vec<String> {
        if self.spell().len() > MAX_BODY_BYTES {
            self.forget_oldest_jobs();
        }
        let excess = self.spell().len().saturating_sub(MAX_BODY_BYTES);
        self.unknown.remove_largest_except(COMPLETED_JOBS, excess)
    }

    /// Writes the record as JSON of any size.
    fn spell(&self) -> Vec<u8> {
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
        if let Some(parts) = &self.parts {
            body.value(PARTS, &**parts);
        }
        if self.failbacks > 0 {
            body.value(FAILBACKS, &self.failbacks);
        }
        // If one of these four fields has a value that is not understood, reading keeps it among the unknown fields. It
        // is written only if the record has no value of its own, because a name may occur only once.
        let is_written = |name: &str| match name {
            PEER => self.peer.is_some(),
            RANK => self.rank.is_some(),
            PARTS => self.parts.is_some(),
            FAILBACKS => self.failbacks > 0,
            _ => false,
        };
        for (name, value) in self.unknown.0.iter().filter(|(name, _)| !is_written(name)) {
            body.unknown(name, value);
        }
        body.0.push(b'}');
        body.0
    }
}

/// A JSON object that is being written. A map of serde would escape the names of known fields in every renewal.
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

/// Spells a time as in RFC 3339, with microseconds and in quotation marks. The year must have four digits.
fn spell_time(time: DateTime<Utc>) -> [u8; 29] {
    let time = time.naive_utc();
    let (year, nanos) = (time.year().unsigned_abs(), time.nanosecond());
    // chrono represents a leap second as the second before it, with at least 1,000,000,000 nanoseconds.
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

/// Spells a duration as Go does (`1m30s`), but without a decimal point: a fraction of a second is spelled in whole
/// `ms`, `us` or `ns` (`1500ms`, not `1.5s`).
pub(super) struct Spelled(pub(super) Duration);

impl Spelled {
    /// The numbers and their units, largest first.
    fn parts(&self) -> impl Iterator<Item = (u64, &'static str)> {
        let Self(duration) = self;
        let (seconds, nanos) = (duration.as_secs(), duration.subsec_nanos());
        let (unit, size) = match nanos {
            0 => return skip_zeros([(seconds / 3600, "h"), (seconds / 60 % 60, "m"), (seconds % 60, "s")]),
            nanos if nanos % 1_000_000 == 0 => ("ms", 1_000_000),
            nanos if nanos % 1_000 == 0 => ("us", 1_000),
            _ => ("ns", 1),
        };
        // Readers convert each number of `ms`, `us` or `ns` to nanoseconds in 64 bits. If all of the duration would
        // overflow, its whole seconds are a number of their own.
        match u64::try_from(duration.as_nanos()) {
            Ok(total) => skip_zeros([(0, ""), (0, ""), (total / size, unit)]),
            Err(_) => skip_zeros([(0, ""), (seconds, "s"), (u64::from(nanos) / size, unit)]),
        }
    }
}

/// Leaves out the zeros at the beginning of a duration, except for the last number.
fn skip_zeros(units: [(u64, &'static str); 3]) -> impl Iterator<Item = (u64, &'static str)> {
    let first = units.iter().position(|(number, _)| *number > 0).unwrap_or(units.len() - 1);
    units.into_iter().skip(first)
}

impl fmt::Display for Spelled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.parts().try_for_each(|(number, unit)| write!(f, "{number}{unit}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_is_spelled_in_the_largest_whole_unit() {
        for (duration, text) in [
            (Duration::ZERO, "0s"),
            (Duration::from_secs(60), "1m0s"),
            (Duration::from_secs(3_723), "1h2m3s"),
            (Duration::from_millis(1_500), "1500ms"),
            (Duration::from_micros(1_500), "1500us"),
            (Duration::from_nanos(1_500), "1500ns"),
            (Duration::from_nanos(1_000_001), "1000001ns"),
            (Duration::new(u64::MAX, 999_000_000), "18446744073709551615s999ms"),
        ] {
            assert_eq!(Spelled(duration).to_string(), text);
        }
    }

    #[test]
    fn a_leap_second_is_the_sixtieth() {
        let time = DateTime::parse_from_rfc3339("2016-12-31T23:59:60.250000Z").unwrap().to_utc();
        assert_eq!(&spell_time(time), b"\"2016-12-31T23:59:60.250000Z\"");
    }
}
