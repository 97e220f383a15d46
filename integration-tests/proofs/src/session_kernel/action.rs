//! The steps of a history.

use crate::kernel::Id;

/// One step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Advances all clocks, each by its rate.
    Tick,
    /// Delivers a write whose sender no longer waits for the answer.
    ArriveLate(usize),
    /// Delivers the creation of a session once more.
    DeliverAgain(Id),
    /// Deletes the object of a lock, as an operator can.
    DeleteLock(u32),
    /// Deletes the object of a session, as an operator can.
    DeleteSession(Id),
    /// Replaces the object of a session by something that is no record.
    Spoil(Id),
    /// Puts the record back.
    Repair(Id),
    /// A plain elector releases a lock.
    PlainRelease(u32),
    /// Lets something happen to a process.
    Node(usize, Deed),
}

/// One step of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deed {
    /// Reads an object.
    Read(Target),
    /// Reads an object, and is shown what was there so many writes ago.
    ReadStale(Target, usize),
    /// Reads an object, and gets an error.
    ReadInVain(Target),
    /// Uses the permit to create the local session.
    Create,
    /// Uses the permit to renew the local session.
    Renew,
    /// Uses the permit to release the local session.
    ReleaseSession,
    /// Ends the local session.
    EndSession,
    /// Leaves the local session as it is, and prepares the next one.
    NextSession,
    /// Uses the permit to end another session.
    End(Id),
    /// Uses the permit to delete the object of another session.
    Delete(Id),
    /// A listing of sessions shows one.
    List(Id),
    /// Somebody names a write of another session.
    Hint(Id, Id),
    /// Uses the permit to take a lock.
    Take(u32),
    /// Uses the permit to release a lock.
    Release(u32),
    /// Begins a term.
    Start(u32),
    /// Ends a term.
    EndTerm(u32),
    /// The work of a term has ended.
    WorkEnds(u32),
    /// A listing of locks shows one.
    ListLock(u32),
    /// Reads a lock, and gets the answer at any later moment.
    ReadSlowly(u32),
    /// A listing of locks begins, and finds what there is of one.
    AskForLock(u32),
    /// That listing is answered.
    ListedLock(u32),
    /// Forgets a lock, which is seen anew then.
    Forget(u32),
    /// A request reaches the store.
    Arrive(Target),
    /// A read reaches the store, and shows what was there so many writes ago.
    ArriveStale(Target, usize),
    /// An answer reaches the process.
    Answer(Target),
    /// The process gets an error. A write may still arrive later.
    Lost(Target),
    /// The process crashes, and starts again.
    Crash,
}

/// An object that requests are about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Target {
    /// The process's own session.
    Own(Id),
    /// Another session.
    Other(Id),
    /// A lock.
    Lock(u32),
}
