//! Detects anomalies of one object, which show people what is wrong with a store or a process. No decision depends on them.

use super::entropy::Entropy;
use super::log;
use super::request::Asked;
use super::rollback_detector::RollbackDetector;
use crate::election::{Answer, DuplicateIdentityDetector, Operation};
use crate::lock::LockError;
use crate::lock::refused::SpuriousConflicts;

/// The anomaly detectors of one object.
#[derive(Debug, Default)]
pub(crate) struct Anomalies {
    refused: SpuriousConflicts,
    rollback_detector: RollbackDetector,
    /// `None` for objects that a session writes, because the session's state machine detects duplicate identities, and ignores ages.
    /// Boxed, because a session has thousands of locks.
    of_lease: Option<Box<OfLease>>,
}

/// The detectors that only the lease of an elector needs.
#[derive(Debug)]
struct OfLease {
    duplicate: DuplicateIdentityDetector,
    /// `true` if the elector trusts the store's clock, and no answer without an age was reported yet.
    wants_age: bool,
}

/// What the detectors have found in an answer.
#[derive(Debug, Default)]
pub(crate) struct Anomaly {
    /// The error to report if the store rejects writes that it has to accept, with the operation that it rejects.
    pub(crate) spurious_conflict: Option<(Operation, LockError)>,
    /// `true` if a duplicate identity was found that is not reported yet.
    pub(crate) duplicate: bool,
    /// `true` if another process renews the lease under this elector's identity.
    pub(crate) of_duplicate: bool,
}

impl Anomalies {
    /// Creates the detectors for the lease of an elector. `wants_age` is `true` if the elector trusts the store's clock.
    pub(crate) fn of_lease(identity: &str, wants_age: bool) -> Self {
        let of_lease = Box::new(OfLease { duplicate: DuplicateIdentityDetector::new(identity), wants_age });
        Self { of_lease: Some(of_lease), ..Self::default() }
    }

    /// Checks an answer about the object. Call this for every answer. `describe` names the object.
    pub(crate) fn answered(
        &mut self,
        asked: &Asked,
        answer: &Answer,
        entropy: &Entropy,
        describe: impl FnOnce() -> String,
    ) -> Anomaly {
        let mut noticed = Anomaly::default();
        match answer {
            Answer::Written(written) => {
                let replaced = asked.write.as_ref().and_then(|write| write.expected.as_ref());
                self.refused.answered(replaced, written.as_ref().map_err(|failure| failure.kind));
            }
            Answer::Read(Ok(found)) => {
                let operation = if found.is_some() { Operation::Update } else { Operation::Create };
                noticed.spurious_conflict = self.refused.saw(found.as_ref(), describe).map(|error| (operation, error));
            }
            Answer::Read(Err(_)) => {}
        }
        let Some(shown) = asked.shown(answer) else { return noticed };
        // The prefix of an id identifies its writer. So this elector's write is recognized even if it is committed after the machine has
        // forgotten it, and is not reported as a duplicate identity (rule 2).
        let number = shown.and_then(|(record, _)| entropy.number_of(record.write_id.as_deref()?));
        if self.rollback_detector.has_rolled_back(number) {
            log::store_rolled_back();
        }
        if let Some(OfLease { duplicate, wants_age }) = self.of_lease.as_deref_mut() {
            noticed.duplicate = duplicate.saw(shown, number.is_some());
            noticed.of_duplicate = duplicate.goes_on(number.is_some());
            let has_no_age = matches!(answer, Answer::Read(Ok(Some(found))) if found.age.is_none());
            if has_no_age && std::mem::take(wants_age) {
                log::store_reports_no_age();
            }
        }
        noticed
    }
}
