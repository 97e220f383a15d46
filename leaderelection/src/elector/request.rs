//! One request to the lock, bounded in time.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use crate::clock::{Clock, LocalInstant};
use crate::election::{Answer, Failure, Request};
use crate::lock::{LockError, ObjectStoreBasedLock};
use crate::observation::Terms;
use crate::store::{StoreErrorKind, Version};

/// An answer, and the error behind it.
pub(super) struct Answered {
    pub(super) answer: Answer,
    pub(super) error: Option<LockError>,
}

/// The request on its way. Dropping it abandons the answer; a write may still land.
pub(super) struct Sent {
    pub(super) about: About,
    pub(super) answer: Pin<Box<dyn Future<Output = Answered> + Send>>,
}

/// What was sent, for whoever reports on it.
#[derive(Debug)]
pub(super) struct About {
    pub(super) operation: Operation,
    pub(super) sent_at: LocalInstant,
    pub(super) while_leading: bool,
    pub(super) write: Option<Write>,
}

/// What a write was to change.
#[derive(Clone, Debug)]
pub(super) struct Write {
    pub(super) id: Option<String>,
    pub(super) replaces: Option<Version>,
    pub(super) terms: Terms,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Operation {
    Get,
    Create,
    Update,
    Release,
}

impl Operation {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Get => "get",
            Self::Create => "create",
            Self::Update => "update",
            Self::Release => "release",
        }
    }
}

impl About {
    pub(super) fn new(request: &Request, sent_at: LocalInstant, while_leading: bool) -> Self {
        let (operation, record, replaces) = match request {
            Request::Read => (Operation::Get, None, None),
            Request::Create { record } => (Operation::Create, Some(record), None),
            Request::Update { record, expected } if record.is_released() => {
                (Operation::Release, Some(record), Some(expected.clone()))
            }
            Request::Update { record, expected } => (Operation::Update, Some(record), Some(expected.clone())),
        };
        let write = record.map(|record| Write { id: record.write_id.clone(), replaces, terms: Terms::from(record) });
        Self { operation, sent_at, while_leading, write }
    }
}

/// Sends `request`, and gives up waiting at `deadline`, when its outcome counts as unknown (rule 7).
pub(super) fn send(
    lock: Arc<dyn ObjectStoreBasedLock>,
    clock: Arc<dyn Clock>,
    about: About,
    request: Request,
    deadline: LocalInstant,
) -> Sent {
    let answer = Box::pin(async move {
        let is_read = matches!(request, Request::Read);
        tokio::select! {
            biased;
            answered = execute(&*lock, request) => answered,
            () = clock.sleep_until(deadline) => {
                let action = if is_read { "cannot read lock" } else { "cannot write lock" };
                let cause = "no answer within request_timeout; is the store reachable, and fast enough for it?";
                let error = LockError::new(StoreErrorKind::Ambiguous, action, lock.describe(), cause);
                let failure = Failure::from(&error);
                let answer = if is_read { Answer::Read(Err(failure)) } else { Answer::Written(Err(failure)) };
                Answered { answer, error: Some(error) }
            }
        }
    });
    Sent { about, answer }
}

async fn execute(lock: &dyn ObjectStoreBasedLock, request: Request) -> Answered {
    match request {
        Request::Read => split(lock.get().await, Answer::Read),
        Request::Create { record } => split(lock.create(&record).await, Answer::Written),
        Request::Update { record, expected } => split(lock.update(&record, &expected).await, Answer::Written),
    }
}

fn split<T>(result: Result<T, LockError>, answer: impl FnOnce(Result<T, Failure>) -> Answer) -> Answered {
    match result {
        Ok(value) => Answered { answer: answer(Ok(value)), error: None },
        Err(error) => Answered { answer: answer(Err(Failure::from(&error))), error: Some(error) },
    }
}
