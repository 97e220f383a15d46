//! The stream of a leader: what its bytes say about a term.

use leaderelection::LeaderElectionRecord;

use crate::events::Events;
use crate::key::SharedKey;
use crate::refusal::Refusal;
use crate::wire::{Message, Place};

/// A stream that is being read.
#[derive(Debug)]
pub struct Stream<'a> {
    lock: &'a str,
    nonce: &'a str,
    key: Option<&'a SharedKey>,
    events: Events,
    /// The number of messages so far.
    counter: u64,
}

/// A message of a leader.
#[derive(Debug)]
pub enum Said {
    /// A write of the term is committed.
    Committed {
        /// The number of the write in the term.
        number: u64,
        /// The random id of the write.
        write_id: String,
        /// The record as written.
        record: Box<LeaderElectionRecord>,
        /// The number of locks that a session has released, and the hashes of the names of the last ones, newest first.
        releases: Option<(u64, Vec<u64>)>,
    },
    /// The term is over.
    Ended,
}

impl<'a> Stream<'a> {
    /// Creates the stream about `lock` that answers the question with the number `nonce`.
    #[must_use]
    pub fn new(lock: &'a str, nonce: &'a str, key: Option<&'a SharedKey>) -> Self {
        Self { lock, nonce, key, events: Events::default(), counter: 0 }
    }

    /// Takes bytes of the stream, up to the end of the next message about the term of `holder` with this token. Returns `None`
    /// if the bytes end before.
    ///
    /// # Errors
    ///
    /// If the bytes are not those of this leader about this term. Nothing after them counts.
    pub fn next(&mut self, bytes: &mut &[u8], holder: &str, token: u64) -> Result<Option<Said>, Refusal> {
        let Some(json) = self.events.next(bytes)? else { return Ok(None) };
        let place = Place { lock: self.lock, nonce: self.nonce, counter: self.counter };
        let message = Message::read(&json, &place, self.key)?;
        if (message.holder.as_str(), message.term) != (holder, token) {
            return Err(Refusal::OtherTerm);
        }
        if !message.leading {
            return Ok(Some(Said::Ended));
        }
        let record = message.record()?;
        let write_id = record.write_id.clone().ok_or_else(|| Refusal::not_a_peer("without a write id"))?;
        self.counter += 1;
        Ok(Some(Said::Committed {
            number: message.number,
            write_id,
            record: Box::new(record),
            releases: message.releases(),
        }))
    }
}
