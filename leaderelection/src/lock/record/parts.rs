//! The parts of a lock that is made of several locks, bound to the term of the leader that has written them.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// The parts of a lock that is made of several locks: the field `parts` of a [record](super::LeaderElectionRecord).
///
/// ```json
/// {"needed": 2, "of": ["s3://a/locks/x", "s3://b/locks/x", "s3://c/locks/x"], "term": 7}
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[non_exhaustive]
pub struct LockParts {
    /// The number of parts that a leader needs.
    pub needed: usize,
    /// The names of the parts, in the order in which candidates take them.
    pub of: Vec<String>,
    /// The fencing token of the term. The parts count only in this term.
    pub term: u64,
}

impl LockParts {
    /// Creates the parts of the lock in one term.
    #[must_use]
    pub fn new(needed: usize, of: Vec<String>, term: u64) -> Arc<Self> {
        Arc::new(Self { needed, of, term })
    }

    /// Returns `true` if a leader of these parts and a leader of `others` exclude each other. For that, any set of
    /// parts with which one can lead must overlap any set with which the other can lead, and both lists must have their
    /// common parts in the same order.
    #[must_use]
    pub fn suit(&self, others: &Self) -> bool {
        let (ours, theirs) = (self.in_common(others), others.in_common(self));
        let common = ours.len();
        // The number of common parts that a leader needs even if it has all parts that only its own list has.
        let needed = |parts: &Self| parts.needed.saturating_sub(parts.of.len() - common);
        ours == theirs && needed(self).saturating_add(needed(others)) > common
    }

    /// Returns the number of parts whose writers may be hostile without making a second leader possible (M12).
    #[must_use]
    pub fn may_be_hostile(&self) -> usize {
        // Two leaders with q of n parts each share at least 2q-n. One honest part among these excludes the second one.
        self.needed.saturating_mul(2).saturating_sub(self.of.len()).saturating_sub(1)
    }

    /// The parts that are in both lists, in the order of this one. A name counts as often as both lists have it.
    fn in_common<'a>(&self, others: &'a Self) -> Vec<&'a str> {
        let mut left: Vec<&String> = others.of.iter().collect();
        let take = |name: &String| Some(left.swap_remove(left.iter().position(|other| *other == name)?).as_str());
        self.of.iter().filter_map(take).collect()
    }
}

impl fmt::Display for LockParts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {}", self.needed, self.of.join(", "))
    }
}
