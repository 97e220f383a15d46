//! State canonicalization for model checkers: a view of every instant in a candidate. No policy is here.

use crate::LocalInstant;

/// A view of every instant in a candidate. The visitor may replace each.
///
/// The protocol compares instants only with *now* and each other. An explorer can therefore move all instants so that *now*
/// stays where it is. The protocol compares ids for equality only, so an explorer can hash their order of appearance instead
/// of them. It then finds itself in one of finitely many states.
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
    /// Sees the number of a write that a message has reported. It is compared only with the numbers of writes that are
    /// reported later.
    fn number(&mut self, _number: &mut u64) {}
    /// Tells whether to keep an unanswered write. One that can neither be committed nor has been committed may be
    /// forgotten: nothing will ever ask for it.
    fn may_commit(&mut self, _write_id: &str) -> bool {
        true
    }
}
