//! The reports of a candidate to the program that started it: lines of JSON on the standard output.

use std::io::Write as _;

use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "report", rename_all = "snake_case")]
pub enum Report {
    /// It leads.
    Leading { token: u64 },
    /// The log has taken its entry.
    Appended { token: u64, entry: u64 },
    /// The log has not.
    NotAppended { token: u64, error: String },
    /// It does not lead any more, and its work has ended.
    StoppedLeading,
    /// It was frozen, goes on, and has asked its handle whether it leads.
    Thawed { leading: bool },
    /// It has tried to write with the token of a term that is over.
    TriedStaleToken { token: u64, refused: bool, answer: String },
}

impl Report {
    pub fn send(&self) {
        // Nobody listens any more: standard input has ended too, and so will we.
        let _ = writeln!(std::io::stdout(), "{}", serde_json::json!(self));
    }
}

/// The text of a leader's entry of this number.
pub fn entry_text(number: u64) -> String {
    format!("entry {number}")
}
