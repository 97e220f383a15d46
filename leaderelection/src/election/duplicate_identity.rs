//! Detects a second process with the same identity. No decision depends on it.

use std::mem::replace;

use crate::lock::record::LeaderElectionRecord;
use crate::store::Version;

/// Watches one identity for a duplicate.
///
/// If a lease under this identity changes although this process wrote nothing, another process renews it. If the lease never changes, it
/// may be left from an earlier process of this candidate.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct DuplicateIdentityDetector {
    identity: String,
    /// The version of the last record, and its write id if another process wrote it; `None` if it has another identity.
    last: Option<(Version, Option<String>)>,
    reported: bool,
}

impl DuplicateIdentityDetector {
    /// Creates a detector for `identity`.
    #[must_use]
    pub fn new(identity: impl Into<String>) -> Self {
        Self { identity: identity.into(), last: None, reported: false }
    }

    /// Takes the current state of the object. Returns `true` if that state shows a duplicate identity that was not yet
    /// reported.
    ///
    /// `is_ours` is `true` if the record has a write id of this elector, however old: such a write may be committed
    /// late.
    pub fn saw(&mut self, found: Option<(&LeaderElectionRecord, &Version)>, is_ours: bool) -> bool {
        let Some((record, version)) = found else {
            self.last = None;
            return false;
        };
        if record.holder_identity != self.identity {
            self.last = None;
            self.reported = false;
            return false;
        }
        if self.last.as_ref().is_some_and(|(last, _)| last == version) {
            return false;
        }
        // An id of this elector need not be remembered, because no other process ever writes one.
        let write_id = if is_ours { None } else { record.write_id.clone() };
        let before = self.last.replace((version.clone(), write_id));
        // A transfer request keeps the write id, so the request does not show that the holder is alive.
        let is_alive = before.is_some_and(|(_, before)| record.write_id.is_none() || record.write_id != before);
        is_alive && !is_ours && !replace(&mut self.reported, true)
    }

    /// Returns `true` if a duplicate was found, and may have written the last state. Pass the `is_ours` of the last call of
    /// [`saw`](Self::saw).
    #[must_use]
    pub fn goes_on(&self, is_ours: bool) -> bool {
        self.reported && self.last.is_some() && !is_ours
    }
}
