//! The requests of a member and their answers, as a driver carries them between the machine and the store.

use leaderelection::Version;
use leaderelection::election::{self, Answer, Failure, Request, Write};
use leaderelection::sessions::machine::{Effect, Input, LockId, Page, PeerRequest, SessionId};
use leaderelection::store::PageToken;

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

/// The answer to a request.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Reply {
    /// The answer to a read or a write.
    Object(Answer),
    /// The answer to a deletion.
    Deleted(Result<(), Failure>),
    /// The sessions, with their versions if the listing tells them.
    Sessions(Result<Page<SessionId>, Failure>),
    /// The locks, with their versions if the listing tells them.
    Locks(Result<Page<LockId>, Failure>),
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
}

impl Ask {
    /// Returns the request that an effect orders, or another effect.
    pub(super) fn ordered_by(effect: Effect) -> Result<(Target, Self), Effect> {
        let of = |request| match request {
            Request::Look => Self::Read,
            Request::Write(write) => Self::Write(write),
        };
        Ok(match effect {
            Effect::Own { session, request } => (Target::Own(session), of(request)),
            Effect::Lock { lock, effect: election::Effect::Send(request) } => (Target::Lock(lock), of(request)),
            Effect::Peer { session, request: PeerRequest::Look } => (Target::Peer(session), Self::Read),
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
    pub(super) fn failed(&self, target: &Target, failure: Failure) -> Reply {
        match (target, self) {
            (Target::Sessions, _) => Reply::Sessions(Err(failure)),
            (Target::Locks, _) => Reply::Locks(Err(failure)),
            (_, Self::Read | Self::List(_)) => Reply::Object(Answer::Read(Err(failure))),
            (_, Self::Write(_)) => Reply::Object(Answer::Written(Err(failure))),
            (_, Self::Delete(_)) => Reply::Deleted(Err(failure)),
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

/// Returns the input that an answer is for its member.
pub(super) fn input(target: Target, reply: Reply) -> Input {
    match (target, reply) {
        (Target::Own(session), Reply::Object(answer)) => Input::Own { session, answer },
        (Target::Peer(session), Reply::Object(answer)) => Input::Peer { session, answer },
        (Target::Peer(session), Reply::Deleted(result)) => Input::Deleted { session, result },
        (Target::Lock(lock), Reply::Object(answer)) => Input::Lock { lock, answer },
        (Target::Sessions, Reply::Sessions(listing)) => Input::Sessions(listing),
        (Target::Locks, Reply::Locks(listing)) => Input::Locks(listing),
        (target, reply) => unreachable!("{reply:?} for {target:?}"),
    }
}
