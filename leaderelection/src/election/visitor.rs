//! A view of everything in an election, for explorers.

use crate::clock::LocalInstant;
use crate::record::LeaderElectionRecord;
use crate::store::Version;

/// A view of every name and every instant in an [`Election`](super::Election), in a fixed order. The visitor may
/// replace each.
///
/// The protocol compares names for equality only, and instants only with *now* and each other. An
/// explorer can therefore rename ids in their order of appearance, and move all instants so that *now*
/// stays where it is, and finds itself in one of finitely many states.
pub trait Visitor {
    /// Sees an instant before which something is not done. How long ago it has passed makes no difference.
    fn timer(&mut self, _timer: &mut LocalInstant) {}
    /// Sees an instant before which nothing is sent, although no promise depends on the instant. By default, such an
    /// instant is a timer.
    fn pause(&mut self, pause: &mut LocalInstant) {
        self.timer(pause);
    }
    /// Sees an instant at which something happened.
    fn moment(&mut self, _moment: &mut LocalInstant) {}
    /// Sees the version of an object.
    fn version(&mut self, _version: &mut Version) {}
    /// Sees the id of a write.
    fn write_id(&mut self, _write_id: &mut String) {}
    /// Sees the number of a write that was heard of. It is compared only with the numbers of writes that are heard of
    /// later.
    fn number(&mut self, _number: &mut u64) {}
    /// Tells whether to go on remembering an unanswered write. One that can neither land nor have landed may
    /// be forgotten: nothing will ever ask for it.
    fn may_land(&mut self, _write_id: &str) -> bool {
        true
    }
}

pub(super) fn visit_record(record: &mut LeaderElectionRecord, visitor: &mut impl Visitor) {
    if let Some(write_id) = &mut record.write_id {
        visitor.write_id(write_id);
    }
}
