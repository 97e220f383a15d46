//! The inputs of a member.

use std::sync::Arc;
use std::time::Duration;

use super::listing::Page;
use super::{LockId, SessionId};
use crate::election::{Answer, Command, EntropySource, Failure, PeerMessage, WorkEnd};
use crate::lock::job::JobId;

/// An event that a member has to know.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Input {
    /// The member opens its first session as soon as it may.
    Begin,
    /// Time has passed.
    Tick,
    /// All electors end: their work first, and then the session.
    Stop,
    /// The session's window was over before the driver could carry out an [`Extend`](super::Effect::Extend).
    Expired,
    /// The answer to a request about the member's own session.
    Own {
        /// The session of the request.
        session: SessionId,
        /// The answer.
        answer: Answer,
    },
    /// The answer to a request about another session.
    Peer {
        /// The session.
        session: SessionId,
        /// The answer.
        answer: Answer,
    },
    /// The answer to a deletion of an ended session's object.
    Deleted {
        /// The session.
        session: SessionId,
        /// The failure, if the object was not deleted.
        result: Result<(), Failure>,
    },
    /// The answer to a request for a page of the listing of all sessions.
    Sessions(Result<Page<SessionId>, Failure>),
    /// The answer to a request about a lock.
    Lock {
        /// The lock.
        lock: LockId,
        /// The answer.
        answer: Answer,
    },
    /// The answer to a request for a page of the listing of all locks. Locks without an elector are left out.
    Locks(Result<Page<LockId>, Failure>),
    /// A message came from another session, or from a process that claims to have that session (rule S10).
    Message {
        /// The session.
        session: SessionId,
        /// The message.
        message: PeerMessage,
    },
    /// An elector competes for one term of its lock.
    Compete {
        /// The lock.
        lock: LockId,
        /// The time for which the elector does not take the lock, so that others go first.
        stand_back: Duration,
        /// `true` if the term ends when its work is complete.
        ends_with_work: bool,
        /// The job that the work does, if that job has to succeed only once (rule 18).
        job: Option<JobId>,
        /// `true` if the candidacy ends as soon as it would have to wait for anything but answers.
        one_attempt: bool,
    },
    /// An order to one elector.
    Command {
        /// The lock.
        lock: LockId,
        /// The order.
        command: Command,
    },
    /// The work of a term has ended.
    WorkEnded {
        /// The lock.
        lock: LockId,
        /// The way in which the work ended.
        end: WorkEnd,
    },
}

/// A source of the randomness, the wall time and the names that a step may need.
pub trait SessionEntropy: EntropySource {
    /// Draws the ID of a new session. No process has ever used this ID before.
    fn session(&mut self) -> Arc<str>;
}
