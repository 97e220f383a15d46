//! The effects of a member: the orders to its driver, and the facts that it reports.

use std::sync::Arc;

use leaderelection_protocol::session;

use super::{LockId, SessionId};
use crate::clock::LocalInstant;
use crate::election::{self, Request, Term, TermEndReason};
use crate::lock::incompatible_record::IncompatibleRecord;
use crate::lock::record::LeaderElectionRecord;
use crate::store::{PageToken, Version};

/// An order to the driver, or a fact for its listeners. The driver carries out effects in the order in which they come.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Effect {
    /// Sends a request about the member's own session. At most one is in flight.
    Own {
        /// The session.
        session: SessionId,
        /// The request.
        request: Request,
    },
    /// Sends a request about another session. At most one is in flight for each session.
    Peer {
        /// The session.
        session: SessionId,
        /// The request.
        request: PeerRequest,
    },
    /// Asks for a page of the listing of all sessions. At most one is in flight.
    ListSessions {
        /// The place of the page; `None` for the first.
        from: Option<PageToken>,
    },
    /// Carries out an effect for one lock, as for a lock with its own [`Election`](election::Election). At most one
    /// request is in flight for each lock. A term's window is the window of the session.
    Lock {
        /// The lock.
        lock: LockId,
        /// The effect.
        effect: election::Effect,
    },
    /// Asks for a page of the listing of all locks. At most one is in flight.
    ListLocks {
        /// The place of the page; `None` for the first.
        from: Option<PageToken>,
    },
    /// Moves the end of the session's window, which is the window of all its terms.
    Extend(Term),
    /// The member has ended, as [`Input::Stop`](super::Input::Stop) asked.
    Ended,
    /// Reports a fact. No decision depends on the listeners.
    Fact(Fact),
}

/// A request about the object of another member's session.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum PeerRequest {
    /// Reads the record.
    Read,
    /// Ends the session, which has expired (rule S4).
    End(election::Write),
    /// Deletes the object of an ended session, if it still has this version (rule S7).
    Delete(Version),
}

impl election::Write {
    /// A write that the rules of sessions permit.
    pub(super) fn of_session(write: session::Write<LeaderElectionRecord>, purpose: election::Purpose) -> Self {
        Self { purpose, record: Arc::clone(write.record()), expected: write.expected().cloned() }
    }
}

/// A discovery or an action of a member.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Fact {
    /// The member's own session has begun.
    Opened {
        /// The session.
        session: SessionId,
        /// The window of the session.
        term: Term,
    },
    /// The member's own session is over for good.
    Closed {
        /// The session.
        session: SessionId,
        /// The reason; `None` if the session was never open.
        reason: Option<TermEndReason>,
        /// The write that has released the session, if one is known to be committed.
        released: Option<(Arc<LeaderElectionRecord>, Version)>,
    },
    /// The member's own session has released a lock.
    LockReleased {
        /// The number of locks that the session has released so far.
        count: u64,
        /// The hash of the lock's name.
        lock: u64,
    },
    /// Something happened to the object of the member's own session.
    Own(election::Fact),
    /// A read of another session's record shows a member or an address that was not known.
    PeerFound {
        /// The session.
        session: SessionId,
        /// The identity of its member.
        holder: Arc<str>,
        /// The address at which it serves messages.
        address: Option<Arc<str>>,
    },
    /// The object of another session was seen, unchanged or renewed, or a message reported a renewal.
    PeerSeen {
        /// The session.
        session: SessionId,
        /// The moment at which the last renewal was first seen or reported.
        since: LocalInstant,
        /// The lease of the session.
        lease: std::time::Duration,
    },
    /// Another session is over, or was forgotten because its object is missing or unreadable.
    PeerEnded {
        /// The session.
        session: SessionId,
    },
    /// Another process renews a session under this member's identity.
    DuplicateIdentity {
        /// The other session.
        session: SessionId,
    },
    /// A lock cannot be led through a session, and is left alone.
    Refused {
        /// The lock.
        lock: LockId,
        /// The reason.
        refusal: Refusal,
    },
}

/// Why a member leaves a lock alone.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Refusal {
    /// An elector without a session holds the lock with a lease of its own.
    PlainLease {
        /// The holder.
        holder: String,
    },
    /// Candidates of another kind use the lock.
    IncompatibleRecord(IncompatibleRecord),
    /// The object is not a record that this version can read.
    Unreadable,
    /// The lock's token is the largest that readers accept, so no term can follow.
    TokensExhausted,
}

impl std::fmt::Display for Refusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::PlainLease { holder } => write!(
                f,
                "{holder:?} holds the lock with a lease of its own: let every process compete through a session, and release \
                 the lease, or choose another prefix"
            ),
            Self::IncompatibleRecord(incompatible) => incompatible.fmt(f),
            Self::Unreadable => f.write_str("the object is not a record (see the error of its read): choose another name, or remove it if nobody needs it"),
            Self::TokensExhausted => f.write_str("the fencing token of the lock is at its maximum: choose another name"),
        }
    }
}
