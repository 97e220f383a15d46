//! Watches for a second process that uses our identity. No decision rests on it.

use std::mem::replace;

use crate::record::LeaderElectionRecord;
use crate::store::Version;

/// The watch over one identity.
///
/// A lease under our identity that changes without us is alive: another process renews it. A lease that does not
/// change may be what we left behind before we were restarted.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ClashWatch {
    identity: String,
    /// The last record seen, if it bore our identity: its version, and the id of its write.
    last: Option<(Version, Option<String>)>,
    reported: bool,
}

impl ClashWatch {
    /// A watch over `identity`.
    #[must_use]
    pub fn new(identity: impl Into<String>) -> Self {
        Self { identity: identity.into(), last: None, reported: false }
    }

    /// Takes what the object is now, and returns whether it shows a clash of identities that was not reported yet.
    ///
    /// `is_ours` tells whether this elector made a write, however long ago: such a write may land late.
    pub fn saw(
        &mut self,
        found: Option<(&LeaderElectionRecord, &Version)>,
        is_ours: impl FnOnce(&str) -> bool,
    ) -> bool {
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
        let before = self.last.replace((version.clone(), record.write_id.clone()));
        let is_alive = before.is_some_and(|(_, before)| record.write_id.is_none() || record.write_id != before);
        let clashes = is_alive && !record.write_id.as_deref().is_some_and(is_ours);
        clashes && !replace(&mut self.reported, true)
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
