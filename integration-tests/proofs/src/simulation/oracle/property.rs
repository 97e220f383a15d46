//! The promises that the oracles check: that of one lock, and that of sessions.

/// A promise of the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Property {
    /// No two leadership windows overlap in true time.
    Exclusion,
    /// The token of every term is larger than all earlier tokens, and no two terms share one.
    Tokens,
    /// A term that has ended never comes back.
    NoRevival,
    /// A window ends one renew deadline after the sending of a write that was committed, or earlier.
    WindowOfACommittedWrite,
    /// A leader whose renewals were committed, and could be seen to be committed in time, keeps its term. One that the store
    /// has asked to wait gives its term up only after another try.
    NoSpuriousLoss,
    /// A write replaces its own term's record, or one that is released or expired. A renewal or a release does not
    /// recreate a deleted object. No valid session is ended or deleted by another process.
    NoErasure,
    /// `on_stop_leading` is called exactly once per `on_start_leading`, after the work has ended.
    StopOncePerStart,
    /// `on_new_leader` is called with the observed holders, in order, and never with an empty holder. The
    /// oracle cannot check that slow calls wait for each other: time stands still while a thread blocks.
    NewLeaderInOrder,
    /// The leader's future begins while its term is valid.
    WorkBeginsInWindow,
    /// The leader's future does not run after its lease has expired.
    WorkWithinLease,
    /// The leader's work learns in time that its window has closed.
    ToldInTime,
    /// The lease, or the session, is released after the work has ended.
    ReleaseAfterWork,
    /// A process has one work of a lock at a time: no term begins beside work of an earlier term, given up or not.
    OneWork,
    /// Leadership is over when `step_down` returns, and before any request about the end is sent.
    EndsAtOnce,
    /// A process tells that it leads no more before it tells that another leads.
    StopBeforeNextLeader,
    /// A process names itself as the leader only while it leads.
    NamesItselfOnlyInTerm,
    /// A process that is cancelled ends, and begins no other term.
    EndsWhenCancelled,
    /// The preferred candidate goes first, for one lease duration of every other candidate.
    PreferredFirst,
    /// After the end of all faults, every lock has a leader within the bound that the configuration implies.
    LeaderInTime,
    /// While nothing else goes wrong, a lock of a session is led again within the longest time of what has taken its leader.
    GapInTime,
    /// With balance, a member that joins has its share in time: the locks of which it is the first in order.
    ShareInTime,
    /// With balance, a member that joins moves only locks of which another member is the first in order, and a member that
    /// leaves moves only its own locks.
    MovesNoMore,
    /// A duplicate identity is reported only for a write that another process made under the same identity, or that an
    /// earlier process of this candidate made.
    NoFalseDuplicate,
    /// No request is sent before the time that the store's last `Retry-After` named, one lease later at most, but for one of a
    /// leader whose window is about to close.
    KeepsRetryAfter,
    /// Output of work that was complete in time is delivered, and no other output.
    DeliversOutput,
    /// An operator's intervention changes the lock only while the lock shows the term that the operator has seen.
    InterventionInItsTerm,
    /// No intervention is reported as failed that took effect, or as done that did not.
    InterventionToldTrue,
    /// Once the lock says that a job is done, no term begins for the job, and no work that begins does the job again. The
    /// lock says so by the release of a term whose work has succeeded, and by nothing else; every write keeps what
    /// the lock says of the last jobs. A success is marked, unless the lease was lost or the process was in trouble. A process
    /// says so only if the lock does, and the result of `run_once` is that of its work.
    OncePerJob,
    /// A candidate reads within 2.2 retry periods, or once in its follower interval while the leader renews. A candidate that
    /// gets messages from a leader reads the store all the same: within that time after the last message, and once in the
    /// background interval.
    ReadsInTime,
    /// A term whose work has failed is not renewed, and its process lets others go first for the cool-down.
    FailedWorkEndsTerm,
    /// The highest number of a sequenced lock is never removed.
    HighestStays,
    /// A read of a sequenced lock shows what was the lock's newest write at some moment of the call, and a write that is
    /// acknowledged was the newest one.
    OneHistory,
    /// A candidate that has never led takes a lock of several parts with its next request, if enough of them showed a release
    /// for everybody since before its read. No part that is slower than the others makes it wait.
    TakesWhatIsReleased,
    /// A candidate of rank n leaves a free lease to others for n retry periods.
    BetterRanksFirst,
    /// A candidate asks for the lease only if its rank is better than the leader's, and if it has competed without a failed
    /// read for a lease duration, doubled for each earlier request. The lock counts the requests until a leader has led for
    /// long.
    AsksAfterFailbackDelay,
    /// While nothing goes wrong, a leader of a worse rank hands over to a candidate that asks.
    TakenBackInTime,
    /// Only code that a test lets panic panics.
    NoPanic,
}
