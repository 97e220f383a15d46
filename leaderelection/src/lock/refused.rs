//! Detects writes that the store refuses although their precondition holds.
//!
//! A conflict means that the object does not have the version that the write expected. If read after read shows exactly
//! that version, the store does not compare versions as it should: it spells them in two ways, or answers reads from a
//! cache. No candidate could lead on such a store, and without this check, no error would say so.

use crate::lock::{LockError, VersionedRecord};
use crate::store::{StoreErrorKind, Version};

/// The number of refusals in a row that prove a fault of the store. A single one may come from a proxy, or from a
/// concurrent write that failed afterwards.
const TOO_MANY: u32 = 3;

/// The precondition of a write: the version that it replaces, or `None` if it creates the object.
type Expected = Option<Version>;

/// Counts refused writes in a row whose precondition still holds at the next read. `None` before the first conflict.
/// Boxed, because a session has thousands of locks.
#[derive(Clone, Debug, Default)]
pub(crate) struct SpuriousConflicts(Option<Box<Refusals>>);

#[derive(Clone, Debug, Default)]
struct Refusals {
    /// The precondition of the last refused write, until a read checks it.
    unchecked: Option<Expected>,
    count: u32,
    /// The count that was last reported.
    reported: u32,
}

impl SpuriousConflicts {
    /// Records the answer to a write with this precondition.
    pub(crate) fn answered<T>(&mut self, expected: Option<&Version>, answer: Result<T, StoreErrorKind>) {
        match answer {
            Ok(_) => self.0 = None,
            Err(StoreErrorKind::Conflict) => self.0.get_or_insert_default().unchecked = Some(expected.cloned()),
            Err(_) => self.0.iter_mut().for_each(|refusals| refusals.unchecked = None),
        }
    }

    /// Records what a read found. Returns an error to report if the store is at fault: at the third refusal in a row,
    /// and then each time their number has doubled.
    pub(crate) fn saw(&mut self, found: Option<&VersionedRecord>, lock: impl FnOnce() -> String) -> Option<LockError> {
        let refusals = self.0.as_mut()?;
        let expected = refusals.unchecked.take()?;
        if expected.as_ref() != found.map(|found| &found.version) {
            self.0 = None;
            return None;
        }
        refusals.count += 1;
        if refusals.count < TOO_MANY || refusals.count < refusals.reported.saturating_mul(2) {
            return None;
        }
        refusals.reported = refusals.count;
        let cause = SpuriousConflict { times: refusals.count, exists: expected.is_some() };
        Some(LockError::new(StoreErrorKind::Fatal, "cannot write lock", lock(), cause))
    }
}

/// The store refuses writes that it has to accept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the store rejected the condition of {times} writes in a row, although {}; nobody can lead with it: run \
     `leaderelect probe` to find out how it treats conditions",
    if *.exists { "the record still has the version that they named" } else { "there is no object" }
)]
struct SpuriousConflict {
    times: u32,
    /// `true` if the writes were updates, `false` if they were creates.
    exists: bool,
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::lock::record::LeaderElectionRecord;
    use crate::util::causes::with_causes;

    const CONFLICT: Result<(), StoreErrorKind> = Err(StoreErrorKind::Conflict);

    fn record(version: &str) -> VersionedRecord {
        VersionedRecord::new(LeaderElectionRecord::new("a", Duration::from_secs(15)), Version::new(version))
    }

    /// Records a refused write and the read after it; returns the text of the error, if the store is blamed.
    fn refuse(refused: &mut SpuriousConflicts, expected: Option<&str>, found: Option<&str>) -> Option<String> {
        refused.answered(expected.map(Version::new).as_ref(), CONFLICT);
        let found = found.map(record);
        refused.saw(found.as_ref(), || "memory:lock".to_owned()).map(|error| with_causes(&error))
    }

    #[test]
    fn the_third_refusal_in_a_row_is_blamed_on_the_store() {
        let mut refused = SpuriousConflicts::default();
        let blamed: Vec<_> = (1..=24).filter(|_| refuse(&mut refused, Some("1"), Some("1")).is_some()).collect();
        assert_eq!(blamed, [3, 6, 12, 24]);
    }

    #[test]
    fn the_error_says_what_to_do() {
        let mut refused = SpuriousConflicts::default();
        let texts: Vec<_> = (0..3).filter_map(|_| refuse(&mut refused, Some("1"), Some("1"))).collect();
        assert_eq!(
            texts,
            ["cannot write lock memory:lock: the store rejected the condition of 3 writes in a row, although \
              the record still has the version that they named; nobody can lead with it: run `leaderelect probe` to find \
              out how it treats conditions"]
        );
        let mut refused = SpuriousConflicts::default();
        let texts: Vec<_> = (0..3).filter_map(|_| refuse(&mut refused, None, None)).collect();
        assert!(texts[0].contains("although there is no object"), "{texts:?}");
    }

    #[test]
    fn whatever_else_happens_in_between_is_no_fault_of_the_store() {
        let is_blamed = |between: &dyn Fn(&mut SpuriousConflicts)| {
            let mut refused = SpuriousConflicts::default();
            (0..10).any(|_| {
                let blamed = (0..2).any(|_| refuse(&mut refused, Some("1"), Some("1")).is_some());
                between(&mut refused);
                blamed
            })
        };
        assert!(is_blamed(&|_| {}));
        // A read that does not follow a refused write changes nothing.
        assert!(is_blamed(&|refused| assert!(refused.saw(Some(&record("2")), String::new).is_none())));
        assert!(is_blamed(&|refused| refused.answered::<()>(None, Err(StoreErrorKind::Ambiguous))));
        assert!(!is_blamed(&|refused| refused.answered(Some(&Version::new("1")), Ok(()))));
        assert!(!is_blamed(&|refused| assert!(refuse(refused, Some("1"), Some("2")).is_none())));
        assert!(!is_blamed(&|refused| assert!(refuse(refused, Some("1"), None).is_none())));
        assert!(!is_blamed(&|refused| assert!(refuse(refused, None, Some("1")).is_none())));
    }
}
