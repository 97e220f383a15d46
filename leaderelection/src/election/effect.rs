//! The effects of the state machine: the orders to its driver, and the facts that it reports.

use std::sync::Arc;

use leaderelection_protocol::lease::{self, Kind};
use leaderelection_protocol::policy::peer_feed::IgnoredReason;

use crate::clock::LocalInstant;
use crate::lock::record::LeaderElectionRecord;
use crate::store::Version;
use crate::term::{BeginReason, RunOutcome, TermEndReason};

/// An order to the driver. The driver carries out effects in the order in which they come.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Effect {
    /// Sends this request. At most one request is in flight.
    Send(Request),
    /// Starts the work of a new term. The work may begin only while the term's window is open.
    Start {
        /// The term.
        term: Term,
        /// Why the lease could be acquired.
        reason: BeginReason,
    },
    /// Moves the end of the leader's window. If the old window is already closed, the driver instead hands in the
    /// command that closed it, or else [`Input::Expired`](super::Input::Expired).
    Extend(Term),
    /// Ends leadership now, and cancels the work. This effect always comes before the
    /// [`Fact::LeaderChanged`] that names the next leader, and before any request that releases the lease.
    Stop {
        /// The ended term's token.
        fencing_token: u64,
        /// The reason for the end.
        reason: TermEndReason,
        /// The moment by which the work must have stopped (rule 8). If it has not, [`DropWork`](Self::DropWork)
        /// follows.
        drop_by: LocalInstant,
    },
    /// Drops the work, which has not stopped in time.
    DropWork,
    /// Abandons work that cannot be dropped and outlives its lease.
    Abandon,
    /// Returns to the caller. Nothing more happens before the next [`Input::Begin`](super::Input::Begin).
    Finished(RunOutcome),
    /// Reports a fact to all listeners. No decision depends on the listeners.
    Fact(Fact),
}

/// Something that the machine has found out or done.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Fact {
    /// A write of this candidate has acquired the lease. The term begins with [`Effect::Start`]: now, or after a
    /// renewal if the answer came too late.
    Acquired {
        /// The new term's token.
        fencing_token: u64,
    },
    /// The object names another leader than before.
    LeaderChanged {
        /// The new leader; `None` if the object names none.
        leader: Option<String>,
    },
    /// The outcome of a write is unknown.
    Doubted,
    /// The outcome of a write in doubt is now known.
    Resolved {
        /// `true` if the write was committed.
        committed: bool,
    },
    /// The lease was released.
    Released,
    /// The lease could not be released in time, and expires by itself.
    ReleaseGivenUp,
    /// The token in the lock is the largest that readers accept, so no term can follow.
    TokensExhausted,
    /// The record was too large for a takeover, so the next record lacks some unknown fields.
    LeftOut {
        /// The names of the fields.
        fields: Vec<String>,
    },
    /// The object was deleted. Tokens may start again from 1, so they no longer protect resources.
    Vanished,
    /// A peer's message about a write counts (rule 15).
    WriteReported,
    /// A peer's message about the end of the term counts (rule 17).
    EndReported,
    /// A peer's message does not count.
    MessageIgnored(IgnoredReason),
    /// This candidate has asked the leader, whose rank is worse, for the lease (rule 24).
    FailbackRequested,
    /// A read has contradicted the peer. Its messages are ignored until a read shows another write.
    Contradicted,
}

/// A request to the lock.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Request {
    /// Reads the record.
    Read,
    /// Writes the record.
    Write(Write),
}

impl Request {
    /// The kind of the request.
    #[must_use]
    pub fn operation(&self) -> Operation {
        match self {
            Self::Read => Operation::Get,
            Self::Write(Write { purpose: Purpose::Release, .. }) => Operation::Release,
            Self::Write(Write { expected: None, .. }) => Operation::Create,
            Self::Write(_) => Operation::Update,
        }
    }
}

/// A kind of request, named as in logs, metrics and errors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Operation {
    /// A read of the record.
    Get,
    /// A write of the first record.
    Create,
    /// A write that replaces a record.
    Update,
    /// A write that releases the lease.
    Release,
}

impl Operation {
    /// Returns the name: `get`, `create`, `update` or `release`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Get => "get",
            Self::Create => "create",
            Self::Update => "update",
            Self::Release => "release",
        }
    }
}

/// A write of the record.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Write {
    /// The purpose of the write.
    pub purpose: Purpose,
    /// The record to write.
    pub record: Arc<LeaderElectionRecord>,
    /// The version to replace; `None` if the write creates the object.
    pub expected: Option<Version>,
}

impl From<lease::Write<LeaderElectionRecord>> for Write {
    fn from(write: lease::Write<LeaderElectionRecord>) -> Self {
        let purpose = match write.kind() {
            Kind::Acquire => Purpose::Acquire,
            Kind::Renew => Purpose::Renew,
            Kind::Release => Purpose::Release,
            Kind::Request => Purpose::Ask,
        };
        Self { purpose, record: Arc::clone(write.record()), expected: write.expected().cloned() }
    }
}

/// The purpose of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Purpose {
    /// The write begins a term (rule 3).
    Acquire,
    /// The write prolongs a term (rule 5).
    Renew,
    /// The write releases the lease (rule 9).
    Release,
    /// The write asks the leader to hand over to this candidate (rule 24). The record stays the leader's.
    Ask,
}

/// A valid term of this candidate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Term {
    /// The token, larger than that of every earlier term.
    pub fencing_token: u64,
    /// The moment at which the last write that is known to be committed was sent.
    pub sent_at: LocalInstant,
    /// The moment at which leadership ends unless it is renewed.
    pub valid_until: LocalInstant,
}

impl From<lease::Term> for Term {
    fn from(term: lease::Term) -> Self {
        Self { fencing_token: term.token(), sent_at: term.sent_at(), valid_until: term.valid_until() }
    }
}
