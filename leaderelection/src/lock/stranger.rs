//! The refusal of a lock whose holder has other parts (rule M8).

use super::record::{LeaderElectionRecord, LockParts};

/// The candidates of other parts that have written a lock. A leader of those parts and a leader of these may lead together.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "its record is that of candidates that need {theirs}, and this candidate needs {ours}, so both may lead at the same time: \
     give all replicas the same locks in the same order; if no other replica runs, `leaderelect release --force` ends the claim"
)]
pub struct Stranger {
    theirs: String,
    ours: String,
}

impl Stranger {
    pub(crate) fn new(theirs: &LockParts, ours: impl ToString) -> Self {
        Self { theirs: theirs.to_string(), ours: ours.to_string() }
    }

    /// Returns the candidates that have written this record, if a leader on this lock alone does not exclude them.
    #[must_use]
    pub fn beside_one(record: &LeaderElectionRecord) -> Option<Self> {
        let theirs = record.lock_parts().filter(|parts| parts.needed < parts.of.len())?;
        Some(Self::new(theirs, "this lock alone"))
    }
}
