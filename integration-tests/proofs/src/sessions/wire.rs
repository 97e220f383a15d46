//! The requests of a member and their answers, as a driver carries them between the machine and the store.

use leaderelection::election::{self, Answer, Failure, Request, Write};
use leaderelection::implement::{PageToken, Version};
use leaderelection::sessions::machine::{Effect, Input, LockId, PeerRequest, SessionId};

/// The subject of a request. A member has at most one request to a target.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Target {
    /// The object of the member's own session.
    Own(SessionId),
    /// The object of another session.
    Peer(SessionId),
    /// All sessions.
    Sessions,
    /// One lock.
    Lock(LockId),
    /// All locks.
    Locks,
}

/// An object of the store.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Key {
    Session(SessionId),
    Lock(LockId),
}

/// A request.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Ask {
    /// A read.
    Read,
    /// The page of a listing at this place.
    List(Option<PageToken>),
    /// A conditional write.
    Write(Write),
    /// A conditional deletion.
    Delete(Version),
}

impl Target {
    /// The object of a request, unless the request is a listing.
    pub(super) fn key(&self) -> Option<Key> {
        match self {
            Self::Own(session) | Self::Peer(session) => Some(Key::Session(session.clone())),
            Self::Lock(lock) => Some(Key::Lock(*lock)),
            Self::Sessions | Self::Locks => None,
        }
    }

    /// The input that the answer to a read or a write of this object is for its member.
    pub(super) fn answered(&self, answer: Answer) -> Input {
        match self {
            Self::Own(session) => Input::Own { session: session.clone(), answer },
            Self::Peer(session) => Input::Peer { session: session.clone(), answer },
            Self::Lock(lock) => Input::Lock { lock: *lock, answer },
            Self::Sessions | Self::Locks => unreachable!("{answer:?} for {self:?}"),
        }
    }

    /// The input that the answer to a deletion of this object is for its member.
    pub(super) fn deleted(&self, result: Result<(), Failure>) -> Input {
        let Self::Peer(session) = self else { unreachable!("a deletion of {self:?}") };
        Input::Deleted { session: session.clone(), result }
    }
}

impl Ask {
    /// Returns the request that an effect orders, or another effect.
    pub(super) fn ordered_by(effect: Effect) -> Result<(Target, Self), Effect> {
        let of = |request| match request {
            Request::Read => Self::Read,
            Request::Write(write) => Self::Write(write),
        };
        Ok(match effect {
            Effect::Own { session, request } => (Target::Own(session), of(request)),
            Effect::Lock { lock, effect: election::Effect::Send(request) } => (Target::Lock(lock), of(request)),
            Effect::Peer { session, request: PeerRequest::Read } => (Target::Peer(session), Self::Read),
            Effect::Peer { session, request: PeerRequest::End(write) } => (Target::Peer(session), Self::Write(write)),
            Effect::Peer { session, request: PeerRequest::Delete(version) } => {
                (Target::Peer(session), Self::Delete(version))
            }
            Effect::ListSessions { from } => (Target::Sessions, Self::List(from)),
            Effect::ListLocks { from } => (Target::Locks, Self::List(from)),
            other => return Err(other),
        })
    }

    /// Returns the answer to this request if it fails.
    pub(super) fn failed(&self, target: &Target, failure: Failure) -> Input {
        match (target, self) {
            (Target::Sessions, _) => Input::Sessions(Err(failure)),
            (Target::Locks, _) => Input::Locks(Err(failure)),
            (_, Self::Read | Self::List(_)) => target.answered(Answer::Read(Err(failure))),
            (_, Self::Write(_)) => target.answered(Answer::Written(Err(failure))),
            (_, Self::Delete(_)) => target.deleted(Err(failure)),
        }
    }

    /// Returns `true` if the request changes nothing.
    pub(super) fn is_read(&self) -> bool {
        matches!(self, Self::Read | Self::List(_))
    }

    /// Returns `true` if the request is a release.
    pub(super) fn is_release(&self) -> bool {
        matches!(self, Self::Write(write) if write.record.is_released())
    }
}
