//! One request to the lock, bounded in time.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use crate::clock::{Clock, LocalInstant};
use crate::election::{Answer, Failure, Request};
use crate::lock::{LockError, ObjectStoreBasedLock};
use crate::store::StoreErrorKind;

/// An answer, and the error behind it.
pub(super) struct Answered {
    pub(super) answer: Answer,
    pub(super) error: Option<LockError>,
}

/// The request on its way. Dropping it abandons the answer; a write may still land.
pub(super) type Sent = Pin<Box<dyn Future<Output = Answered> + Send>>;

/// Sends `request`, and gives up waiting at `deadline`, when its outcome counts as unknown (rule 7).
pub(super) fn send(
    lock: Arc<dyn ObjectStoreBasedLock>,
    clock: Arc<dyn Clock>,
    request: Request,
    deadline: LocalInstant,
) -> Sent {
    Box::pin(async move {
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
    })
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
