//! One request to the lock, bounded in time.

use std::pin::Pin;
use std::sync::Arc;

#[cfg(feature = "metrics")]
use chrono::{DateTime, Utc};

use crate::clock::LocalInstant;
use crate::config::LeaderElectionConfig;
#[cfg(feature = "metrics")]
use crate::election::Purpose;
use crate::election::{Answer, Failure, Operation, Request, Write};
use crate::lock::action::{CREATE, READ, UPDATE};
use crate::lock::bounded::TimeLimit;
use crate::lock::incompatible_record::IncompatibleRecord;
use crate::lock::record::LeaderElectionRecord;
use crate::lock::{LockError, ObjectStoreBasedLock};
use crate::store::{StoreErrorKind, Version};

/// A request in flight. If it is dropped, its answer is lost, but its write may still be committed.
pub(crate) struct Sent {
    pub(crate) asked: Asked,
    pub(crate) answer: Pin<Box<dyn Future<Output = Result<Answer, LockError>> + Send>>,
}

/// The facts about a request that the reports of its answer need.
#[derive(Clone, Debug)]
#[cfg_attr(not(feature = "metrics"), allow(dead_code, reason = "only metrics need the time"))]
pub(crate) struct Asked {
    pub(crate) operation: Operation,
    pub(crate) sent_at: LocalInstant,
    /// The write; `None` for a request that writes no record.
    pub(crate) write: Option<Write>,
}

impl Asked {
    pub(crate) fn of(request: &Request, sent_at: LocalInstant) -> Self {
        let write = if let Request::Write(write) = request { Some(write.clone()) } else { None };
        Self { operation: request.operation(), sent_at, write }
    }

    /// Returns the wall time of a write; `None` for a read or a transfer request. The time is that in the record,
    /// because reading the clock again would cost more.
    #[cfg(feature = "metrics")]
    pub(crate) fn renew_time(&self) -> Option<DateTime<Utc>> {
        // The record of a transfer request keeps the time of the leader's last renewal.
        self.write.as_ref().filter(|write| write.purpose != Purpose::Ask)?.record.renew_time
    }

    /// Returns the object as the answer shows it, or `Some(None)` if the answer shows that there is no object. Returns `None` if the answer
    /// is an error, which shows nothing.
    pub(crate) fn shown<'a>(&'a self, answer: &'a Answer) -> Option<Option<(&'a LeaderElectionRecord, &'a Version)>> {
        match answer {
            Answer::Read(Ok(found)) => Some(found.as_ref().map(|found| (&found.record, &found.version))),
            Answer::Written(Ok(version)) => Some(Some((&*self.write.as_ref()?.record, version))),
            Answer::Read(Err(_)) | Answer::Written(Err(_)) => None,
        }
    }

    /// Splits the answer of a lock into a value for the state machine and an error for the reports.
    pub(crate) fn answered(&self, result: Result<Answer, LockError>) -> (Answer, Option<LockError>) {
        match result {
            Ok(answer) => (answer, None),
            Err(error) => {
                let failure = Failure::from(&error);
                // The machine gets only the kind of a failure, because it decides nothing by the text.
                let answer = match self.operation {
                    Operation::Get => Answer::Read(Err(failure)),
                    _ => Answer::Written(Err(failure)),
                };
                (answer, Some(error))
            }
        }
    }
}

/// The outcome of a request, for metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Answered {
    Ok,
    Missing,
    Failed(StoreErrorKind),
}

impl Answered {
    pub(crate) fn of(answer: &Answer) -> Self {
        match answer {
            Answer::Read(Ok(None)) => Self::Missing,
            Answer::Read(Ok(Some(_))) | Answer::Written(Ok(_)) => Self::Ok,
            Answer::Read(Err(failure)) | Answer::Written(Err(failure)) => Self::Failed(failure.kind),
        }
    }
}

/// Sends a request of an elector. The answer is an error if it shows a record of an incompatible configuration.
pub(crate) fn send(config: Arc<LeaderElectionConfig>, request: Request, sent_at: LocalInstant) -> Sent {
    let asked = Asked::of(&request, sent_at);
    let answer = Box::pin(async move {
        // Dereferenced, because the lock impl of `Arc` would box each call a second time.
        let (lock, limit, service) = (&*config.lock, &config.basics.limit, config.rules.service.as_deref());
        let answer = answer(lock, limit, request, sent_at).await?;
        let Answer::Read(Ok(Some(found))) = &answer else { return Ok(answer) };
        let incompatible = IncompatibleRecord::of(&found.record, service);
        incompatible.map_or(Ok(answer), |incompatible| Err(incompatible.refusal(lock.describe())))
    });
    Sent { asked, answer }
}

/// Sends `request` once, and waits for its answer until the time limit, after which its outcome counts as unknown (rule 7).
///
/// There is no second attempt: if the first one had succeeded, a second one would get a conflict. The time limit counts from `sent_at`, as
/// the window does.
pub(crate) async fn answer(
    lock: &(impl ObjectStoreBasedLock + ?Sized),
    limit: &TimeLimit,
    request: Request,
    sent_at: LocalInstant,
) -> Result<Answer, LockError> {
    let Request::Write(Write { record, expected, .. }) = request else {
        return Ok(Answer::Read(Ok(limit.ask(sent_at, READ, lock, lock.get()).await?)));
    };
    let version = match expected {
        None => limit.ask(sent_at, CREATE, lock, lock.create(&record)).await?,
        Some(expected) => limit.ask(sent_at, UPDATE, lock, lock.update(&record, &expected)).await?,
    };
    Ok(Answer::Written(Ok(version)))
}
