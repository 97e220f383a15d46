//! The refusal of a lock that candidates of another kind use: of another service, or with other parts (rule M8).

use super::LockError;
use super::action::READ;
#[cfg(feature = "majority")]
use super::record::COMPLETED_JOBS;
use super::record::{LeaderElectionRecord, LockParts};
use crate::store::StoreErrorKind;

/// The field with the service that owns a lock. Like every field of others, it stays when a candidate without a service writes.
const SERVICE: &str = "purpose";

/// The candidates of another kind that have written a lock: of another service, or of other parts, so that a leader of those
/// parts and a leader of these may lead together.
#[derive(Clone, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum IncompatibleRecord {
    /// Candidates of another service.
    #[error(
        "its record is for the service {theirs:?}, and this candidate is for {ours:?}: give each of the two deployments a \
         lock of its own; if the service has a new name, `leaderelect release --force` ends the claim of the old one"
    )]
    Service {
        /// The service in the record.
        theirs: String,
        /// The service of this candidate.
        ours: String,
    },
    /// Candidates of other parts.
    #[error(
        "candidates that need {theirs} wrote its record, and this candidate needs {ours}, so both may lead at the same \
         time: give all replicas the same locks in the same order; if no other replica runs, `leaderelect release --force` \
         ends the claim"
    )]
    Parts {
        /// The parts in the record.
        theirs: String,
        /// The parts of this candidate.
        ours: String,
    },
}

impl IncompatibleRecord {
    /// Returns the candidates that have written this record, if it is of another service than `service`, or if a leader on
    /// this lock alone does not exclude them. A candidate without a service, or a record without one, suits any other.
    #[must_use]
    pub fn of(record: &LeaderElectionRecord, service: Option<&str>) -> Option<Self> {
        let theirs = record.service();
        match (theirs, service) {
            (Some(theirs), Some(ours)) if theirs != ours => Some(Self::Service { theirs, ours: ours.to_owned() }),
            _ => {
                let theirs = record.lock_parts().filter(|parts| parts.needed < parts.of.len())?;
                Some(Self::of_parts(theirs, "this lock alone"))
            }
        }
    }

    pub(crate) fn of_parts(theirs: &LockParts, ours: impl ToString) -> Self {
        Self::Parts { theirs: theirs.to_string(), ours: ours.to_string() }
    }

    /// The error of the read that has shown these candidates.
    pub(crate) fn refusal(self, lock: String) -> LockError {
        LockError::new(StoreErrorKind::Unreadable, READ, lock, self)
    }
}

impl LeaderElectionRecord {
    /// The service that owns the lock; `None` if no candidate with a
    /// [service](crate::LeaderElectionConfigBuilder::service) has led since the lock was created.
    #[must_use]
    pub fn service(&self) -> Option<String> {
        serde_json::from_str(self.unknown.get(SERVICE)?).ok()
    }

    /// Names the service that owns the lock.
    pub(crate) fn claim_for(&mut self, service: Option<&str>) {
        if let Some(service) = service {
            self.unknown.set(SERVICE, &service);
        }
    }

    /// Removes what a record says of jobs and of a service.
    #[cfg(feature = "majority")]
    pub(crate) fn forget_claims(&mut self) {
        self.unknown.remove(SERVICE);
        self.unknown.remove(COMPLETED_JOBS);
    }

    /// Returns `true` if candidates of another kind refuse the lock because of this record.
    pub(crate) fn has_claim(&self) -> bool {
        self.parts.is_some() || self.unknown.get(SERVICE).is_some()
    }

    /// Returns the record without what makes candidates of another kind refuse the lock.
    pub(crate) fn without_claim(mut self) -> Self {
        self.parts = None;
        self.unknown.remove(SERVICE);
        self
    }
}
