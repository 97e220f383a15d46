//! The watch for a second process with the same identity. No decision depends on this watch.

use std::mem::replace;

use crate::record::LeaderElectionRecord;
use crate::store::Version;

/// The watch over one identity.
///
/// If a lease under this identity changes without this process, another process renews it. A lease that does not
/// change may come from an earlier process of this candidate.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ClashWatch {
    identity: String,
    /// The version of the last record, if that record had this identity, and the write id, if it was another's.
    last: Option<(Version, Option<String>)>,
    reported: bool,
}

impl ClashWatch {
    /// Creates a watch over `identity`.
    #[must_use]
    pub fn new(identity: impl Into<String>) -> Self {
        Self { identity: identity.into(), last: None, reported: false }
    }

    /// Takes the current state of the object. Returns `true` if that state shows a clash of identities that was not yet
    /// reported.
    ///
    /// `is_ours` is `true` if the record has a write id of this elector, however old: such a write may land late.
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
        // Another process never writes an id of this elector, so no such id has to be remembered.
        let write_id = if is_ours { None } else { record.write_id.clone() };
        let before = self.last.replace((version.clone(), write_id));
        let is_alive = before.is_some_and(|(_, before)| record.write_id.is_none() || record.write_id != before);
        is_alive && !is_ours && !replace(&mut self.reported, true)
    }

    /// Shows the versions and ids to an explorer.
    pub fn visit(&mut self, visitor: &mut impl super::visitor::Visitor) {
        if let Some((version, write_id)) = &mut self.last {
            visitor.version(version);
            if let Some(write_id) = write_id {
                visitor.write_id(write_id);
            }
        }
    }
}
