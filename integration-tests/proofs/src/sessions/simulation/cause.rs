//! The causes of the times without a leader.

/// The cause of a time without a leader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cause {
    /// The leader's process died.
    Crash,
    /// All processes died, and were started again.
    Blackout,
    /// The leader's process was asked to end.
    Stop,
    /// The leader's process was asked to end, as those before it, soon after their successors have begun.
    Roll,
    /// The leader gave up this lock alone.
    Release,
    /// The leader was asked to hand over to another process.
    Request,
    /// The leader was asked to hand over to a process that is not there.
    RequestForNobody,
    /// The leader handed over for balance.
    HandOver,
    /// An operator deleted or released the lock.
    TakenAway,
    /// An operator deleted the object of the leader's session.
    SessionDeleted,
    /// An operator put right a token that had no successor.
    Repair,
    /// The leader's session could not be renewed in time.
    Loss,
}
