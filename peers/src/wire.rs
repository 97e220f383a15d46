//! The messages of a leader, as JSON objects, and the check of each.

use std::sync::Arc;

use leaderelection::LeaderElectionRecord;
use leaderelection::lock::UnknownFields;
use leaderelection::peers::LeaderTerm;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::key::SharedKey;
use crate::refusal::Refusal;

/// The largest answer or event, in bytes.
pub(crate) const LARGEST: usize = 8192;

/// The largest record in an answer. The other fields have to fit beside it.
const LARGEST_RECORD: usize = 2048;

/// The media type of a stream.
pub(crate) const EVENT_STREAM: &str = "text/event-stream";

/// The header with the code of a question, by which an asker shows that it knows the shared key.
pub(crate) const CODE: &str = "leaderelection-code";

/// The challenge of a server that misses the code.
pub(crate) const CHALLENGE: &str = "leaderelection-peers";

/// The fields of a question, for the code of the shared key. No code of an answer fits, because its first field is a byte.
pub(crate) fn question<'a>(lock: &'a str, nonce: &'a str) -> [&'a [u8]; 3] {
    [b"question", lock.as_bytes(), nonce.as_bytes()]
}

/// The answer to one request: the question that it answers, and what is said.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Message {
    /// `false` if the term is over, and its lease released.
    pub(crate) leading: bool,
    pub(crate) lock: String,
    /// The holder of the term.
    pub(crate) holder: String,
    /// The token of the term.
    pub(crate) term: u64,
    /// The number of the write in the term.
    pub(crate) number: u64,
    /// The version that the store gave to the write.
    pub(crate) version: String,
    /// The record as written, without unknown fields if it is large.
    pub(crate) record: Box<RawValue>,
    /// The number of locks that a session has released one by one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) released: Option<u64>,
    /// The hashes of the names of the last of these locks, newest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) released_locks: Vec<String>,
    /// The number that the asker has drawn.
    pub(crate) nonce: String,
    /// The number of messages before this one in the same answer.
    pub(crate) counter: u64,
    /// The code of the shared key, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) mac: Option<String>,
}

/// The place of a message: what was asked, and the number of messages before it.
#[derive(Clone, Debug)]
pub(crate) struct Place<'a> {
    pub(crate) lock: &'a str,
    pub(crate) nonce: &'a str,
    pub(crate) counter: u64,
}

impl Message {
    /// The message of the leader of `term`; `None` if its record is too large.
    pub(crate) fn of(term: &LeaderTerm, place: &Place<'_>, key: Option<&SharedKey>) -> Option<Self> {
        let (leading, write) = match &term.released {
            None => (true, &term.last),
            Some(released) => (false, released),
        };
        let mut message = Self {
            leading,
            lock: place.lock.to_owned(),
            holder: term.last.record.holder_identity.clone(),
            term: term.leadership.fencing_token().into(),
            number: write.number,
            version: write.version.as_str().to_owned(),
            record: raw(&write.record)?,
            released: term.releases.as_ref().map(|releases| releases.count),
            released_locks: term.releases.iter().flat_map(|releases| &releases.locks).map(spell).collect(),
            nonce: place.nonce.to_owned(),
            counter: place.counter,
            mac: None,
        };
        message.mac = key.map(|key| message.fields(|fields| key.code(fields)));
        Some(message)
    }

    /// Reads a message, and makes sure who has made it, and for what.
    pub(crate) fn read(json: &[u8], place: &Place<'_>, key: Option<&SharedKey>) -> Result<Self, Refusal> {
        let message: Self =
            serde_json::from_slice(json).map_err(|error| Refusal::not_a_peer(format!("no message: {error}")))?;
        if let Some(key) = key {
            let code = message.mac.as_deref().unwrap_or_default();
            if !message.fields(|fields| key.accepts(code, fields)) {
                return Err(Refusal::WrongKey);
            }
        }
        if message.nonce != place.nonce || message.counter != place.counter {
            return Err(Refusal::Replayed);
        }
        if message.lock != place.lock {
            return Err(Refusal::not_a_peer("about another lock"));
        }
        Ok(message)
    }

    /// The record of the write.
    pub(crate) fn record(&self) -> Result<LeaderElectionRecord, Refusal> {
        LeaderElectionRecord::from_json(self.record.get().as_bytes(), std::time::Duration::MAX)
            .map_err(|error| Refusal::not_a_peer(error.to_string()))
    }

    /// The number of locks that a session has released, and the hashes of the last ones.
    pub(crate) fn releases(&self) -> Option<(u64, Vec<u64>)> {
        let hashes = self.released_locks.iter().map_while(|hash| u64::from_str_radix(hash, 16).ok());
        Some((self.released?, hashes.collect()))
    }

    fn fields<T>(&self, take: impl FnOnce(&mut dyn Iterator<Item = &[u8]>) -> T) -> T {
        let numbers = [self.term, self.number, self.counter].map(u64::to_be_bytes);
        let (leading, released) = ([u8::from(self.leading)], self.released.map(u64::to_be_bytes));
        let fields: [&[u8]; 9] = [
            &leading,
            self.lock.as_bytes(),
            self.nonce.as_bytes(),
            self.holder.as_bytes(),
            self.version.as_bytes(),
            self.record.get().as_bytes(),
            &numbers[0],
            &numbers[1],
            &numbers[2],
        ];
        let locks = self.released_locks.iter().map(String::as_bytes);
        // Each field has its length before it, so that further fields are part of no other message.
        take(&mut fields.into_iter().chain(released.iter().map(|count| &count[..])).chain(locks))
    }
}

fn spell(lock: &u64) -> String {
    format!("{lock:016x}")
}

/// The JSON of a record. Unknown fields are left out if they make it large, because followers do not need them.
fn raw(record: &Arc<LeaderElectionRecord>) -> Option<Box<RawValue>> {
    let mut json = record.to_json();
    if json.len() > LARGEST_RECORD {
        let mut record = LeaderElectionRecord::clone(record);
        record.unknown = UnknownFields::default();
        json = record.to_json();
    }
    (json.len() <= LARGEST_RECORD).then(|| RawValue::from_string(String::from_utf8(json).ok()?).ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(first: char) -> SharedKey {
        SharedKey::new(format!("{first}{}", "x".repeat(40))).unwrap()
    }

    fn message(key: &SharedKey) -> Message {
        let record = r#"{"holderIdentity":"a","leaseDuration":"15s","leaderTransitions":7,"writeId":"w"}"#;
        let mut message = Message {
            leading: true,
            lock: "lock".to_owned(),
            holder: "a".to_owned(),
            term: 7,
            number: 3,
            version: "v".to_owned(),
            record: RawValue::from_string(record.to_owned()).unwrap(),
            released: Some(2),
            released_locks: vec![spell(&1)],
            nonce: "n".to_owned(),
            counter: 2,
            mac: None,
        };
        message.mac = Some(message.fields(|fields| key.code(fields)));
        message
    }

    const PLACE: Place<'static> = Place { lock: "lock", nonce: "n", counter: 2 };

    #[test]
    fn a_message_is_believed_in_its_own_place_and_from_who_knows_the_key() {
        let json = serde_json::to_vec(&message(&key('a'))).unwrap();
        let read = Message::read(&json, &PLACE, Some(&key('a'))).unwrap();
        assert_eq!((read.record().unwrap().write_id.as_deref(), read.number), (Some("w"), 3));
        assert_eq!(read.releases(), Some((2, vec![1])));
        assert_eq!(Message::read(&json, &PLACE, Some(&key('b'))).unwrap_err(), Refusal::WrongKey);
        for place in [Place { nonce: "m", ..PLACE }, Place { counter: 1, ..PLACE }, Place { counter: 3, ..PLACE }] {
            assert_eq!(Message::read(&json, &place, Some(&key('a'))).unwrap_err(), Refusal::Replayed);
        }
        let place = Place { lock: "other", ..PLACE };
        assert!(matches!(Message::read(&json, &place, Some(&key('a'))), Err(Refusal::NotAPeer { .. })));
    }

    #[test]
    fn a_record_that_overflows_is_refused_and_its_field_is_named() {
        let key = key('a');
        let mut message = message(&key);
        let record = r#"{"holderIdentity":"x","leaseDuration":"18446744073709551615s1000ms","leaderTransitions":7}"#;
        message.record = RawValue::from_string(record.to_owned()).unwrap();
        let Err(Refusal::NotAPeer { problem: why }) = message.record() else { panic!("{message:?}") };
        assert!(why.contains("leaseDuration"), "{why}");
    }

    #[test]
    fn unknown_fields_of_a_large_record_are_left_out() {
        let length = |holder: usize, unknown: usize| {
            let (holder, unknown) = ("h".repeat(holder), "u".repeat(unknown));
            let json = format!(
                r#"{{"holderIdentity":"{holder}","leaseDuration":"15s","leaderTransitions":7,"x":"{unknown}"}}"#
            );
            let record = LeaderElectionRecord::from_json(json.as_bytes(), std::time::Duration::MAX).unwrap();
            raw(&Arc::new(record)).map(|raw| raw.get().len())
        };
        let rest = length(1, 1).unwrap() - 2;
        let without = length(1, LARGEST_RECORD).unwrap() - 1;
        assert_eq!(length(1, LARGEST_RECORD - rest - 1), Some(LARGEST_RECORD));
        assert_eq!(length(1, LARGEST_RECORD - rest), Some(without + 1));
        assert_eq!(length(LARGEST_RECORD - without, 1), Some(LARGEST_RECORD));
        assert_eq!(length(LARGEST_RECORD - without + 1, 1), None);
    }

    #[test]
    fn no_field_can_be_changed() {
        let key = key('a');
        let changes: [fn(&mut Message); 14] = [
            |message| message.leading = false,
            |message| message.lock.push('x'),
            |message| message.holder.push('x'),
            |message| message.term += 1,
            |message| message.number += 1,
            |message| message.version.push('x'),
            |message| message.record = RawValue::from_string("{}".to_owned()).unwrap(),
            |message| message.nonce.push('x'),
            |message| message.counter += 1,
            |message| message.released = Some(3),
            |message| message.released = None,
            |message| message.released_locks[0].push('x'),
            |message| message.mac = None,
            |message| message.mac = Some(String::new()),
        ];
        for change in changes {
            let mut message = message(&key);
            change(&mut message);
            let json = serde_json::to_vec(&message).unwrap();
            let place = Place { lock: &message.lock, nonce: &message.nonce, counter: message.counter };
            assert_eq!(Message::read(&json, &place, Some(&key)).unwrap_err(), Refusal::WrongKey, "{message:?}");
        }
    }
}
