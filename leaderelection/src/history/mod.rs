//! The history of a lock: its ended terms, in one small object beside the lock's object.
//!
//! An elector or a session writes the history if [`keep_history`](crate::LeaderElectionConfigBuilder::keep_history) is
//! set. The object's key is the lock's key with [`SUFFIX`]. No decision of an election depends on a history.

mod ended;
mod object;
pub(crate) mod tracker;
pub(crate) mod writer;
#[cfg(feature = "serde")]
mod written;

use std::time::Duration;

pub use ended::EndedTerm;
pub use object::parse;

/// The suffix of a history's key.
pub const SUFFIX: &str = ".history";

/// Returns the key of the history of the lock at `key`.
///
/// ```
/// assert_eq!(leaderelection::history::key_of("locks/scheduler"), "locks/scheduler.history");
/// ```
#[must_use]
pub fn key_of(key: &str) -> String {
    format!("{key}{SUFFIX}")
}

/// Returns the key of the lock whose history may be at `key`; `None` if this cannot be the key of a history.
#[must_use]
pub fn lock_of(key: &str) -> Option<&str> {
    key.strip_suffix(SUFFIX).filter(|lock| !lock.is_empty())
}

/// How many terms a history keeps, and for how long.
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
    /// The most terms that a history can keep.
    pub const MOST_TERMS: u16 = 200;

    /// Keeps the last `terms` terms for 90 days. A configuration accepts 1 to [`MOST_TERMS`](Self::MOST_TERMS).
    #[must_use]
    pub fn terms(terms: u16) -> Self {
        Self { terms, age: Duration::from_secs(90 * 24 * 60 * 60) }
    }

    /// Sets how long a term is kept after its end. The next write of the history removes older terms.
    #[must_use]
    pub fn for_at_most(self, age: Duration) -> Self {
        Self { age, ..self }
    }
}
