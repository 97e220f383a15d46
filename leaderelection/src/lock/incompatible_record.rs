//! Refuses a lock whose record belongs to an incompatible configuration: another service, or other parts (rule M8).

use super::LockError;
use super::action::READ;
#[cfg(feature = "majority")]
use super::record::COMPLETED_JOBS;
use super::record::{LeaderElectionRecord, LockParts};
use crate::store::StoreErrorKind;

/// The field that names the service that owns a lock. A candidate without a service keeps it unchanged.
const SERVICE: &str = "purpose";

/// The reason why a candidate must not lead on a lock: an incompatible configuration has written its record.
#[derive(Clone, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum IncompatibleRecord {
    /// The record belongs to another service.
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
    /// Candidates with other parts have written the record. One of them may lead at the same time as this candidate.
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
    /// Returns why a candidate of `service` that competes for this lock alone must not lead; `None` if it may. A record
    /// or a candidate without a service is compatible with every service. Parts in the record are compatible if their
    /// leader needs all of them: otherwise, it may lead without this lock.
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

    /// The error of the read that returned the record.
    pub(crate) fn refusal(self, lock: String) -> LockError {
        LockError::new(StoreErrorKind::Unreadable, READ, lock, self)
    }
}

impl LeaderElectionRecord {
    /// The service that owns the lock; `None` if no candidate with a
    /// [service](crate::LeaderElectionConfigBuilder::service) has led since the lock was created or released by force.
    #[must_use]
    pub fn service(&self) -> Option<String> {
        serde_json::from_str(self.unknown.get(SERVICE)?).ok()
    }

    /// Sets the service that owns the lock. `None` leaves the record unchanged.
    pub(crate) fn claim_for(&mut self, service: Option<&str>) {
        if let Some(service) = service {
            self.unknown.set(SERVICE, &service);
        }
    }

    /// Removes the service and the marks of jobs.
    #[cfg(feature = "majority")]
    pub(crate) fn forget_claims(&mut self) {
        self.unknown.remove(SERVICE);
        self.unknown.remove(COMPLETED_JOBS);
    }

    /// Returns `true` if the record has parts or a service, which make incompatible candidates refuse the lock.
    pub(crate) fn has_claim(&self) -> bool {
        self.parts.is_some() || self.unknown.get(SERVICE).is_some()
    }

    /// Returns the record without its parts and its service.
    pub(crate) fn without_claim(mut self) -> Self {
        self.parts = None;
        self.unknown.remove(SERVICE);
        self
    }
}
