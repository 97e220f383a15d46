//! The requests of a write, and what their answers mean together.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use tokio_util::task::AbortOnDropHandle;

use super::plan::{Plan, Put};
use super::{Majority, locked};
use crate::lock::action::UPDATE;
use crate::lock::record::LeaderElectionRecord;
use crate::lock::{LockError, ObjectStoreBasedLock};
use crate::store::{StoreErrorKind, Version};

type Answers = FuturesUnordered<BoxFuture<'static, (usize, Result<Version, LockError>)>>;

impl Majority {
    /// Writes a record into as many parts as a leader needs, and leaves the rest to the background (M2, M3, M6 and M10).
    pub(super) async fn write(
        &self,
        record: &LeaderElectionRecord,
        expected: Option<&Version>,
    ) -> Result<Version, LockError> {
        locked(&self.rest).take();
        let Plan { mut puts, reads, in_turn } = self
            .view()
            .plan(record, expected)
            .map_err(|(kind, problem)| LockError::new(kind, UPDATE, self.describe(), problem))?;
        if in_turn && self.quorum < self.parts.len() {
            let silent = locked(&self.silent).writes.clone();
            puts.make_contiguous().sort_by_key(|put| silent.contains(&put.part));
        }
        let (mut answers, mut written, mut errors) = (Answers::new(), BTreeMap::new(), Vec::new());
        loop {
            while (!in_turn || answers.is_empty())
                && let Some(put) = puts.pop_front()
            {
                locked(&self.silent).writes.insert(put.part);
                answers.push(self.put(put));
            }
            let Some((part, answer)) = answers.next().await else { break };
            locked(&self.silent).writes.remove(&part);
            match answer {
                Ok(version) => {
                    written.insert(part, version);
                }
                Err(error) => {
                    // Whoever has taken a part before is the first to take the others.
                    if in_turn && error.kind() == StoreErrorKind::Conflict {
                        puts.clear();
                    }
                    errors.push(error);
                }
            }
            // A part that is not released costs a lease where all are needed.
            let goes_on = record.is_released() && !answers.is_empty();
            if written.len() >= self.quorum && !goes_on {
                let version = self.view().wrote(record, &written);
                self.go_on(record, (answers, puts), reads);
                return Ok(version);
            }
            if written.len() + answers.len() + puts.len() < self.quorum {
                break;
            }
        }
        let is_open = !written.is_empty() || !answers.is_empty();
        drop(answers);
        let error = self.failed(errors, is_open);
        self.give_back(record, &written, error.kind()).await;
        Err(error)
    }

    fn put(&self, put: Put) -> BoxFuture<'static, (usize, Result<Version, LockError>)> {
        let lock = Arc::clone(&self.parts[put.part]);
        Box::pin(async move {
            let answer = match &put.expected {
                None => lock.create(&put.record).await,
                Some(version) => lock.update(&put.record, version).await,
            };
            (put.part, answer)
        })
    }

    /// Takes the other answers in the background, until the next call (M10).
    fn go_on(&self, record: &LeaderElectionRecord, (mut answers, puts): (Answers, VecDeque<Put>), reads: Vec<usize>) {
        answers.extend(puts.into_iter().map(|put| self.put(put)));
        let read = |part: usize| {
            let lock = Arc::clone(&self.parts[part]);
            async move { (part, lock.get().await) }
        };
        let mut reads: FuturesUnordered<_> = reads.into_iter().map(read).collect();
        if answers.is_empty() && reads.is_empty() {
            return;
        }
        let (view, record) = (Arc::clone(&self.view), record.clone());
        let rest = tokio::spawn(async move {
            let writes = async {
                while let Some((part, answer)) = answers.next().await {
                    if let Ok(version) = answer {
                        locked(&view).wrote_late(&record, part, version);
                    }
                }
            };
            let reads = async {
                while let Some((part, answer)) = reads.next().await {
                    if let Ok(found) = answer {
                        locked(&view).read_late(&record, part, found.as_ref());
                    }
                }
            };
            tokio::join!(writes, reads);
        });
        *locked(&self.rest) = Some(AbortOnDropHandle::new(rest));
    }

    /// Releases what a write has taken after the rest has failed for good, in the opposite order (M7).
    async fn give_back(&self, record: &LeaderElectionRecord, written: &BTreeMap<usize, Version>, kind: StoreErrorKind) {
        if written.is_empty() {
            return;
        }
        let Some(returned) = self.view().gives_back(record, kind) else { return };
        for (part, version) in written.iter().rev() {
            let lock = &self.parts[*part];
            if let Err(error) = lock.update(&returned, version).await {
                let (lock, error) = (lock.describe(), error.in_full());
                tracing::debug!(lock, error, "could not give back a part of a write");
            }
        }
    }

    /// Returns the error of a write that has failed in too many parts. `is_open` tells that it has landed in others, or may.
    fn failed(&self, errors: Vec<LockError>, is_open: bool) -> LockError {
        let weight = |error: &LockError| match error.kind() {
            StoreErrorKind::Fatal => 0,
            StoreErrorKind::Rejected => 1,
            StoreErrorKind::Conflict if !is_open => 2,
            StoreErrorKind::Ambiguous | StoreErrorKind::Unreadable => 3,
            StoreErrorKind::Conflict => 4,
        };
        let Some(error) = errors.into_iter().rev().max_by_key(weight) else {
            let problem = "too few of its parts have answered the last look";
            return LockError::new(StoreErrorKind::Conflict, UPDATE, self.describe(), problem);
        };
        match error.kind() {
            StoreErrorKind::Conflict | StoreErrorKind::Fatal => error,
            _ if !is_open => error,
            _ => {
                let retry_after = error.retry_after();
                LockError::new(StoreErrorKind::Ambiguous, UPDATE, self.describe(), error).with_retry_after(retry_after)
            }
        }
    }
}
