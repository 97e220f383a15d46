//! One request to the lock, bounded in time.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use chrono::{DateTime, Utc};

use crate::clock::LocalInstant;
use crate::config::LeaderElectionConfig;
use crate::election::{Answer, Failure, Operation, Purpose, Request, Write};
use crate::lock::LockError;
use crate::lock::action::{CREATE, READ, UPDATE};
use crate::store::{StoreErrorKind, Version};

/// A request on its way. Dropping the request abandons the answer, and a write may still land.
pub(super) struct Sent {
    pub(super) asked: Asked,
    /// The version that a write replaces; `None` for a read or a create.
    pub(super) replaces: Option<Version>,
    pub(super) answer: Pin<Box<dyn Future<Output = Result<Answer, LockError>> + Send>>,
}

impl Sent {
    /// Splits the answer of a lock into the part for the state machine and the part for people.
    pub(super) fn answered(&self, result: Result<Answer, LockError>) -> (Answer, Option<LockError>) {
        match result {
            Ok(answer) => (answer, None),
            Err(error) => {
                let failure = Failure::from(&error);
                let answer = match self.asked.operation {
                    Operation::Get => Answer::Read(Err(failure)),
                    _ => Answer::Written(Err(failure)),
                };
                (answer, Some(error))
            }
        }
    }
}

/// The facts about a request that the reports of its answer need.
#[derive(Clone, Copy, Debug)]
#[cfg_attr(not(feature = "metrics"), allow(dead_code, reason = "only metrics need the times"))]
pub(super) struct Asked {
    pub(super) operation: Operation,
    pub(super) sent_at: LocalInstant,
    /// The wall time of a write, as in its record. A second look at the clock would cost more.
    pub(super) renew_time: Option<DateTime<Utc>>,
}

impl Asked {
    pub(super) fn of(request: &Request, sent_at: LocalInstant) -> Self {
        let renew_time = match request {
            Request::Look => None,
            // The time in a request to hand over is that of the leader's last renewal.
            Request::Write(Write { purpose: Purpose::Ask, .. }) => None,
            Request::Write(write) => write.record.renew_time,
        };
        Self { operation: request.operation(), sent_at, renew_time }
    }

    /// A request that writes no record.
    #[cfg(feature = "sessions")]
    pub(super) fn without_record(operation: Operation, sent_at: LocalInstant) -> Self {
        Self { operation, sent_at, renew_time: None }
    }
}

/// The kind of an answer, as named in metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Answered {
    Ok,
    Missing,
    Failed(StoreErrorKind),
}

impl Answered {
    pub(super) fn of(answer: &Answer) -> Self {
        match answer {
            Answer::Read(Ok(None)) => Self::Missing,
            Answer::Read(Ok(Some(_))) | Answer::Written(Ok(_)) => Self::Ok,
            Answer::Read(Err(failure)) | Answer::Written(Err(failure)) => Self::Failed(failure.kind),
        }
    }
}

/// Sends `request`, and waits for its answer until its outcome counts as unknown (rule 7).
pub(super) fn send(config: Arc<LeaderElectionConfig>, request: Request, sent_at: LocalInstant) -> Sent {
    let asked = Asked::of(&request, sent_at);
    let replaces = match &request {
        Request::Look => None,
        Request::Write(write) => write.expected.clone(),
    };
    let answer = Box::pin(async move {
        // Through the `Arc`, each call would be boxed once more.
        let (lock, limit) = (&*config.lock, &config.limit);
        match request {
            Request::Look => {
                let found = limit.ask(sent_at, READ, lock, lock.get()).await?;
                Ok(Answer::Read(Ok(found)))
            }
            Request::Write(Write { record, expected, .. }) => {
                let version = match expected {
                    None => limit.ask(sent_at, CREATE, lock, lock.create(&record)).await?,
                    Some(expected) => limit.ask(sent_at, UPDATE, lock, lock.update(&record, &expected)).await?,
                };
                Ok(Answer::Written(Ok(version)))
            }
        }
    });
    Sent { asked, replaces, answer }
}
