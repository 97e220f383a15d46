//! The inputs of the state machine.

use std::sync::Arc;
use std::time::Duration;

use leaderelection_protocol::policy::Jitter;

use super::rules::ElectionConfig;
use crate::lock::job::JobId;
use crate::lock::record::WriteMeta;
use crate::lock::{LockError, VersionedRecord};
use crate::store::{StoreErrorKind, Version};
use crate::term::{FencingToken, TermEndReason, WorkEnd};

/// An event for the state machine.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Input {
    /// The candidate starts to compete for one term.
    ///
    /// A term that a dropped driver has left open is over, and no answer can revive it. Its lease expires, or this
    /// candidate acquires the lease as a new term.
    Begin {
        /// How long the candidate reads but writes nothing, so that others go first.
        stand_back: Duration,
        /// `true` if the term ends when its work is complete.
        ends_with_work: bool,
        /// The job that the work does, if the job has to succeed only once (rule 18).
        job: Option<JobId>,
    },
    /// Time has passed.
    Tick,
    /// The answer to the request in flight. An answer to anything else is ignored.
    Answer(Answer),
    /// An order from outside.
    Command(Command),
    /// The work of the term has ended.
    WorkEnded(WorkEnd),
    /// The settings have changed. The identity stays (rule 22).
    Reconfigure(Arc<ElectionConfig>),
    /// A message came from the leader, or from a process that claims to be the leader (rules 15 to 17).
    Message(PeerMessage),
    /// The leader's window was over before the driver could carry out an [`Extend`](super::Effect::Extend).
    ///
    /// Code of this process may have seen that the window was closed, so the term must not continue.
    Expired,
}

/// An order from outside.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Command {
    /// Ends the term, if there is one, and the candidacy. The candidate does not compete again.
    Stop,
    /// Ends the term and releases the lease.
    StepDown,
    /// Ends the term and releases the lease, with this candidate named as the next leader (rule 14).
    TransferTo(String),
}

impl From<&Command> for TermEndReason {
    fn from(command: &Command) -> Self {
        match command {
            Command::Stop => Self::Cancelled,
            Command::StepDown => Self::SteppedDown,
            Command::TransferTo(to) => Self::Transferred { to: to.clone() },
        }
    }
}

/// A hint from a peer. At most one candidate leads even if the hint is false.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum PeerMessage {
    /// A write of a term is committed.
    Committed {
        /// The holder of the term.
        holder: String,
        /// The token of the term.
        fencing_token: FencingToken,
        /// The id of the write.
        write_id: String,
        /// The number of the write. A later write of the term has a larger number.
        number: u64,
    },
    /// A term is over.
    Ended {
        /// The holder of the term.
        holder: String,
        /// The token of the term.
        fencing_token: FencingToken,
    },
    /// A session has released locks, one by one (rule S10).
    Released {
        /// The number of locks that the session has released so far.
        count: u64,
        /// The hashes of the names of the last released locks, newest first.
        locks: Vec<u64>,
    },
    /// The peer is silent, refuses to answer, or cannot be reached.
    Nothing,
}

/// The answer to a request.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Answer {
    /// The answer to a read; `Ok(None)` if there is no object.
    Read(Result<Option<VersionedRecord>, Failure>),
    /// The answer to a write.
    Written(Result<Version, Failure>),
}

impl Answer {
    /// Returns the failure, if the request failed.
    #[must_use]
    pub fn failure(&self) -> Option<Failure> {
        match self {
            Self::Read(Err(failure)) | Self::Written(Err(failure)) => Some(*failure),
            Self::Read(Ok(_)) | Self::Written(Ok(_)) => None,
        }
    }
}

/// The failure of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Failure {
    /// What is known about the request's effect.
    pub kind: StoreErrorKind,
    /// How long the store asked clients to send nothing, if it did.
    pub retry_after: Option<Duration>,
}

impl From<&LockError> for Failure {
    fn from(error: &LockError) -> Self {
        Self { kind: error.kind(), retry_after: error.retry_after() }
    }
}

/// The source of randomness and wall time for a step.
pub trait EntropySource {
    /// Draws a fraction, evenly spread from 0 to just under 1.
    fn jitter(&mut self) -> Jitter;

    /// Draws the stamp of a new write. No writer has ever used its id before.
    fn stamp(&mut self) -> WriteMeta;
}
