//! The steps of a history.

/// One step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Advances all clocks, each by its rate.
    Tick,
    /// Carries out a put whose sender no longer waits for the answer.
    ArriveLate(usize),
    /// A hostile writer replaces the record of its part.
    Forge(usize, Forgery),
    /// Lets something happen to a candidate.
    Node(usize, Deed),
}

/// A record that a hostile writer has seen or can make.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Forgery {
    /// The record with the highest token, with its write id and without its holder.
    Emptied,
    /// That record.
    Copied,
    /// The record of somebody with a higher token and no lease to speak of.
    Higher,
    /// None.
    Missing,
}

/// The fate of a put.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It is carried out, if its condition holds, and answered.
    Answered,
    /// It is carried out, and the answer is lost.
    Doubted,
    /// It is lost.
    Lost,
    /// It may be carried out at any later moment.
    Late,
}

/// One step of a candidate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deed {
    /// A part answers a poll, which begins with the first answer.
    See(usize),
    /// The policy ends a poll.
    EndPoll,
    /// All these parts answer a poll at once, and it ends: a set of bits.
    Poll(usize),
    /// The policy uses a permit to acquire.
    Acquire,
    /// The policy uses a permit to renew.
    Renew,
    /// The policy uses a permit to release.
    Release,
    /// The policy uses a permit to ask the holder to hand over.
    Ask,
    /// The policy sends the put of a plan to this part.
    Put(usize, Fate),
    /// The policy sends a release to a part that counts now.
    ReleaseToo(usize),
    /// The policy takes a write for committed, if enough parts have it.
    Finish,
    /// The policy takes a write for failed, and may roll back what it has taken.
    Fail(bool),
    /// A put that a call has left to the background is carried out and answered.
    BackgroundPut(usize),
    /// A read of that kind.
    BackgroundRead(usize),
    /// The policy ends the term.
    EndTerm,
    /// The policy stops competing.
    Withdraw,
    /// The policy gives the lease up.
    GiveUp,
    /// The process crashes, and starts again.
    Crash,
}
