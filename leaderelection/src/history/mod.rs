//! The history of a lock: its ended terms, in one small object beside that of the lock.
//!
//! [`keep_history`](crate::LeaderElectionConfigBuilder::keep_history) lets an elector or a session write it. The key of the
//! object is that of the lock with [`SUFFIX`]. No decision of an election depends on it.

mod ended;
mod object;
pub(crate) mod tracker;
pub(crate) mod writer;
#[cfg(feature = "serde")]
mod written;

use std::time::Duration;

pub use ended::EndedTerm;
pub use object::parse;

/// The end of the key of a history.
pub const SUFFIX: &str = ".history";

/// The key of the history of the lock at `key`.
///
/// ```
/// assert_eq!(leaderelection::history::key_of("locks/scheduler"), "locks/scheduler.history");
/// ```
#[must_use]
pub fn key_of(key: &str) -> String {
    format!("{key}{SUFFIX}")
}

/// The key of the lock whose history may be at `key`; `None` if none is there.
#[must_use]
pub fn lock_of(key: &str) -> Option<&str> {
    key.strip_suffix(SUFFIX).filter(|lock| !lock.is_empty())
}

/// The terms that a history keeps.
///
/// ```
/// use std::time::Duration;
/// use leaderelection::history::Retention;
///
/// let keep = Retention::terms(50).for_at_most(Duration::from_secs(7 * 24 * 60 * 60));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Deserialize), serde(from = "written::Written"))]
pub struct Retention {
    pub(crate) terms: u16,
    pub(crate) age: Duration,
}

impl Retention {
    /// The most terms that can be kept.
    pub const MOST_TERMS: u16 = 200;

    /// Keeps the last `terms`, at most [`MOST_TERMS`](Self::MOST_TERMS), for 90 days.
    #[must_use]
    pub fn terms(terms: u16) -> Self {
        Self { terms, age: Duration::from_secs(90 * 24 * 60 * 60) }
    }

    /// Sets the time after its end for which a term is kept at most. Older terms are removed with the next write.
    #[must_use]
    pub fn for_at_most(self, age: Duration) -> Self {
        Self { age, ..self }
    }
}
