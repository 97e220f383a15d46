//! State canonicalization: shows every instant in a candidate to a model checker. No policy is here.

use crate::LocalInstant;

/// Sees every instant in a candidate, and may replace it.
///
/// The protocol compares instants only with *now* and each other. So a model checker can keep *now* fixed, move all instants into the past
/// as time passes, and round those that are too old to matter. The protocol compares ids only for equality, so a model checker can hash the
/// order in which they appear. This leaves finitely many states.
pub trait Visitor {
    /// Sees an instant before which something is not done. Once the instant has passed, its age makes no difference.
    fn timer(&mut self, _timer: &mut LocalInstant) {}
    /// Sees an instant before which nothing is sent, and on which no promise depends. By default, it is treated as a timer.
    fn pause(&mut self, pause: &mut LocalInstant) {
        self.timer(pause);
    }
    /// Sees an instant at which something happened.
    fn moment(&mut self, _moment: &mut LocalInstant) {}
    /// Sees the number of a write that a message has reported. It is compared only with the numbers of later messages.
    fn number(&mut self, _number: &mut u64) {}
    /// Returns `true` to keep an unanswered write. A write that was not committed, and no longer can be, may be forgotten: no read will
    /// ever show it.
    fn may_commit(&mut self, _write_id: &str) -> bool {
        true
    }
}
