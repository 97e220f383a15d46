//! The rank of a leader, bound to the leader's term.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// The rank of the leader of one term: the field `rank` of a [record](super::LeaderElectionRecord).
///
/// ```json
/// {"rank": 1, "term": 7}
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[non_exhaustive]
pub struct HolderRank {
    /// The rank; 0 is the best.
    pub rank: u8,
    /// The fencing token of the leader's term. The rank counts only in this term.
    pub term: u64,
}

impl HolderRank {
    /// Creates the rank of the leader of one term; `None` for the best rank, which is not written.
    #[must_use]
    pub fn new(rank: u8, term: u64) -> Option<Arc<Self>> {
        (rank > 0).then(|| Arc::new(Self { rank, term }))
    }
}
