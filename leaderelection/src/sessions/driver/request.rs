//! One request of a session.

use std::sync::Arc;

use futures_util::future::BoxFuture;

use super::fleet::Fleet;
use crate::clock::LocalInstant;
use crate::election::{Answer, Failure, Operation, Request};
use crate::elector::request::{self, Answered, Asked};
use crate::lock::LockError;
use crate::sessions::keys::{LOCKS, SESSIONS};
use crate::sessions::machine::{Input, Page, PeerRequest};
use crate::store::PageToken;

/// The answer to one request.
pub(super) struct Done {
    pub(super) reply: Reply,
    /// The request, for the reports.
    pub(super) asked: Asked,
    /// The outcome, for the metrics.
    pub(super) outcome: Answered,
    pub(super) error: Option<LockError>,
}

/// The answer, in the form in which the state machine gets it.
#[expect(clippy::large_enum_variant, reason = "nearly all replies are inputs, and a reply is moved once")]
pub(super) enum Reply {
    Input(Input),
    /// A page of locks. The machine knows locks by numbers, so the driver first replaces the names.
    Locks(Result<Page<Arc<str>>, Failure>),
}

pub(super) type Pending = BoxFuture<'static, Done>;

/// Reads or writes the record at `key`. `input` makes the machine's input from the answer.
pub(super) fn about_record(
    fleet: &Fleet,
    key: String,
    request: Request,
    sent_at: LocalInstant,
    input: impl FnOnce(Answer) -> Input + Send + 'static,
) -> Pending {
    let ((lock, limit), asked) = (fleet.lock_at(key), Asked::of(&request, sent_at));
    Box::pin(async move {
        let (answer, error) = asked.answered(request::answer(&lock, &limit, request, sent_at).await);
        let outcome = Answered::of(&answer);
        Done { reply: Reply::Input(input(answer)), asked, outcome, error }
    })
}

/// Sends a request about another session.
pub(super) fn about_peer(fleet: Fleet, session: Arc<str>, request: PeerRequest, sent_at: LocalInstant) -> Pending {
    let key = fleet.session_key(&session);
    let request = match request {
        PeerRequest::Read => Request::Read,
        PeerRequest::End(write) => Request::Write(write),
        PeerRequest::Delete(version) => {
            let call = async move { fleet.delete(&key, &version).await };
            let reply = |result| Reply::Input(Input::Deleted { session, result });
            return without_record(Operation::Release, sent_at, call, reply);
        }
    };
    about_record(&fleet, key, request, sent_at, |answer| Input::Peer { session, answer })
}

pub(super) fn list_sessions(fleet: Fleet, from: Option<PageToken>, sent_at: LocalInstant) -> Pending {
    let call = async move { fleet.list(SESSIONS, from).await };
    without_record(Operation::Get, sent_at, call, |page| Reply::Input(Input::Sessions(page)))
}

pub(super) fn list_locks(fleet: Fleet, from: Option<PageToken>, sent_at: LocalInstant) -> Pending {
    without_record(Operation::Get, sent_at, async move { fleet.list(LOCKS, from).await }, Reply::Locks)
}

/// Sends a request that neither reads nor writes a record.
fn without_record<T>(
    operation: Operation,
    sent_at: LocalInstant,
    call: impl Future<Output = Result<T, LockError>> + Send + 'static,
    reply: impl FnOnce(Result<T, Failure>) -> Reply + Send + 'static,
) -> Pending {
    Box::pin(async move {
        let (outcome, result, error) = match call.await {
            Ok(value) => (Answered::Ok, Ok(value), None),
            Err(error) => (Answered::Failed(error.kind()), Err(Failure::from(&error)), Some(error)),
        };
        Done { reply: reply(result), asked: Asked { operation, sent_at, write: None }, outcome, error }
    })
}
