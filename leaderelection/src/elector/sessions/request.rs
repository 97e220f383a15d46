//! One request of a session.

use std::sync::Arc;

use futures_util::future::BoxFuture;

use super::place::Place;
use crate::clock::LocalInstant;
use crate::election::{Answer, Failure, Operation, Request};
use crate::elector::request::Answered;
use crate::lock::LockError;
use crate::session::{Input, LockId, PeerRequest};
use crate::store::Version;

/// The answer to one request.
pub(super) struct Done {
    pub(super) input: Input,
    pub(super) operation: Operation,
    pub(super) answered: Answered,
    pub(super) sent_at: LocalInstant,
    pub(super) error: Option<LockError>,
}

pub(super) type Pending = BoxFuture<'static, Done>;

/// Sends a request about the object at `key`. `input` makes the machine's input of the answer.
pub(super) fn about_record(
    place: Place,
    key: String,
    request: Request,
    sent_at: LocalInstant,
    input: impl FnOnce(Answer) -> Input + Send + 'static,
) -> Pending {
    let operation = request.operation();
    Box::pin(async move {
        let (answer, error) = match request {
            Request::Look => split(place.look(&key).await, Answer::Read),
            Request::Write(write) => split(place.write(&key, write).await, Answer::Written),
        };
        let answered = Answered::of(&answer);
        Done { input: input(answer), operation, answered, sent_at, error }
    })
}

/// Sends a request about another session.
pub(super) fn about_peer(place: Place, session: Arc<str>, request: PeerRequest, sent_at: LocalInstant) -> Pending {
    let key = place.session(&session);
    let input = {
        let session = Arc::clone(&session);
        |answer| Input::Peer { session, answer }
    };
    match request {
        PeerRequest::Look => about_record(place, key, Request::Look, sent_at, input),
        PeerRequest::End(write) => about_record(place, key, Request::Write(write), sent_at, input),
        PeerRequest::Delete(version) => Box::pin(async move {
            let (result, error) = split(place.delete(&key, &version).await, |result| result);
            let answered = answered(&result);
            Done { input: Input::Deleted { session, result }, operation: Operation::Release, answered, sent_at, error }
        }),
    }
}

pub(super) fn list_sessions(place: Place, sent_at: LocalInstant) -> Pending {
    Box::pin(async move {
        let (result, error) = split(place.sessions().await, |result| result);
        let answered = answered(&result);
        Done { input: Input::Sessions(result), operation: Operation::Get, answered, sent_at, error }
    })
}

/// Lists the locks. `ids` finds the locks of the names that have an elector.
pub(super) fn list_locks(
    place: Place,
    sent_at: LocalInstant,
    ids: impl FnOnce(Vec<(String, Option<Version>)>) -> Vec<(LockId, Option<Version>)> + Send + 'static,
) -> Pending {
    Box::pin(async move {
        let (result, error) = split(place.locks().await.map(ids), |result| result);
        let answered = answered(&result);
        Done { input: Input::Locks(result), operation: Operation::Get, answered, sent_at, error }
    })
}

/// Splits a result into the part for the state machine and the part for people.
fn split<T, A>(result: Result<T, LockError>, answer: impl FnOnce(Result<T, Failure>) -> A) -> (A, Option<LockError>) {
    match result {
        Ok(value) => (answer(Ok(value)), None),
        Err(error) => (answer(Err(Failure::from(&error))), Some(error)),
    }
}

fn answered<T>(result: &Result<T, Failure>) -> Answered {
    match result {
        Ok(_) => Answered::Ok,
        Err(failure) => Answered::Failed(failure.kind),
    }
}
