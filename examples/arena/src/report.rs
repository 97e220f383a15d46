//! The reports of a candidate to the program that started it: lines of JSON on the standard output.

use std::io::Write as _;

use leaderelection::clock::LocalInstant;
use serde::{Deserialize, Serialize};

/// One line of a candidate's standard output.
///
/// Its instants are nanoseconds of a clock that all processes of the machine share.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "report", rename_all = "snake_case")]
pub enum Report {
    /// At this moment the candidate was inside its leadership window.
    Inside {
        /// The fencing token of the term.
        token: u64,
        /// The moment of the report.
        #[serde(with = "nanos")]
        at: LocalInstant,
        /// The end of the window, unless the lease is renewed.
        #[serde(with = "nanos")]
        until: LocalInstant,
    },
    /// The log has accepted the entry with this number.
    Appended {
        /// The fencing token of the term.
        token: u64,
        /// The entry's number in the term.
        number: u64,
    },
    /// The log has not accepted an entry. Unless the log has refused it, the entry may be in the log.
    NotAppended {
        /// The fencing token of the term.
        token: u64,
        /// The reason.
        error: String,
    },
    /// The term is over, and its work has ended.
    Ended {
        /// The fencing token of the term.
        token: u64,
        /// The moment of the end.
        #[serde(with = "nanos")]
        at: LocalInstant,
    },
    /// The candidate was frozen, goes on, and has asked its handle whether it leads.
    Thawed {
        /// The answer of the handle.
        leading: bool,
    },
    /// The candidate has tried to write with the token of a term that is over.
    TriedStaleToken {
        /// The token of the last term.
        token: u64,
        /// `true` if the log has refused the entry.
        refused: bool,
        /// The log's answer in words.
        answer: String,
    },
    /// The candidate ends, and has got messages from leaders so far.
    Messages {
        /// The number of messages that it got.
        words: u64,
        /// The number of reads of the lock that the words have saved.
        reads_saved: u64,
    },
}

impl Report {
    /// Prints the report.
    pub fn send(&self) {
        // One write for the whole line, so that a kill leaves no part of it. An error means that the parent has
        // ended. Standard input has then ended too, and so will this process.
        let _ = std::io::stdout().write_all(format!("{}\n", serde_json::json!(self)).as_bytes());
    }
}

mod nanos {
    use leaderelection::clock::LocalInstant;
    use serde::{Deserialize as _, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(instant: &LocalInstant, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u64(instant.as_nanos())
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<LocalInstant, D::Error> {
        u64::deserialize(deserializer).map(LocalInstant::from_nanos)
    }
}
