//! One request of a session.

use std::sync::Arc;

use futures_util::future::BoxFuture;

use super::place::Place;
use crate::clock::LocalInstant;
use crate::election::{Answer, Failure, Operation, Request};
use crate::elector::request::{Answered, Asked};
use crate::lock::LockError;
use crate::sessions::machine::{Input, Page, PeerRequest};
use crate::store::PageToken;

/// The answer to one request.
pub(super) struct Done {
    pub(super) reply: Reply,
    pub(super) asked: Asked,
    pub(super) answered: Answered,
    pub(super) error: Option<LockError>,
}

/// The answer, as the state machine wants it, or nearly so.
#[expect(clippy::large_enum_variant, reason = "nearly all replies are inputs, and a reply is moved once")]
pub(super) enum Reply {
    Input(Input),
    /// The names of the locks, which the driver knows by their numbers.
    Locks(Result<Page<Arc<str>>, Failure>),
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
    let asked = Asked::of(&request, sent_at);
    Box::pin(async move {
        let (answer, error) = match request {
            Request::Look => split(place.look(&key).await, Answer::Read),
            Request::Write(write) => split(place.write(&key, write).await, Answer::Written),
        };
        let answered = Answered::of(&answer);
        Done { reply: Reply::Input(input(answer)), asked, answered, error }
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
            let reply = Reply::Input(Input::Deleted { session, result });
            Done { reply, asked: Asked::without_record(Operation::Release, sent_at), answered, error }
        }),
    }
}

pub(super) fn list_sessions(place: Place, from: Option<PageToken>, sent_at: LocalInstant) -> Pending {
    Box::pin(async move {
        let answer = place.sessions(from).await;
        listed(answer, sent_at, |result| Reply::Input(Input::Sessions(result)))
    })
}

pub(super) fn list_locks(place: Place, from: Option<PageToken>, sent_at: LocalInstant) -> Pending {
    Box::pin(async move { listed(place.locks(from).await, sent_at, Reply::Locks) })
}

fn listed(
    answer: Result<Page<Arc<str>>, LockError>,
    sent_at: LocalInstant,
    reply: impl FnOnce(Result<Page<Arc<str>>, Failure>) -> Reply,
) -> Done {
    let (result, error) = split(answer, |result| result);
    let answered = answered(&result);
    Done { reply: reply(result), asked: Asked::without_record(Operation::Get, sent_at), answered, error }
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
