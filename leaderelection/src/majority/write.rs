//! The requests of a write, and of what it leaves to the background.

use std::collections::BTreeSet;
use std::sync::Arc;

use futures_util::StreamExt;
use futures_util::future::ready;
use futures_util::stream::FuturesUnordered;
use tokio_util::task::AbortOnDropHandle;

use super::plan::{Plan, Put};
use super::{Answer, Majority, Rest, locked};
use crate::lock::action::UPDATE;
use crate::lock::record::LeaderElectionRecord;
use crate::lock::{LockError, ObjectStoreBasedLock};
use crate::store::{StoreErrorKind, Version};

impl Majority {
    /// Writes a record into as many parts as a leader needs, and leaves the rest to the background (M10).
    pub(super) async fn write(
        &self,
        record: &LeaderElectionRecord,
        expected: Option<&Version>,
    ) -> Result<Version, LockError> {
        let Rest { writes: before, .. } = std::mem::take(&mut *locked(&self.rest));
        let before = before.filter(|_| record.is_released());
        let mut plan = self.view().plan(record, expected)?;
        let written: Vec<usize> = plan.written().collect();
        let planned: BTreeSet<usize> = plan.puts().iter().map(Put::part).chain(written).collect();
        let (mut answers, mut errors, mut has_landed) = (FuturesUnordered::new(), Vec::new(), None);
        while has_landed.is_none() {
            while let Some(put) = plan.send() {
                self.view().silent_writes.insert(put.part());
                answers.push(self.put(put));
            }
            let Some((part, answer)) = answers.next().await else { break };
            self.view().silent_writes.remove(&part);
            if answer.as_ref().is_err_and(|error| error.retry_after().is_some()) {
                plan.leaves_alone(part);
            }
            has_landed = plan.answered(part, answer.as_ref().cloned().map_err(|error| error.kind()));
            errors.extend(answer.err());
            // A part that the last renewal reaches late is released then, and may be the one that is missing.
            has_landed = has_landed.filter(|landed| *landed || before.is_none() || answers.is_empty());
        }
        if let Some(before) = before.filter(|_| plan.is_begun()) {
            // A task that panicked has told so itself.
            before.await.ok();
            self.release_late(&mut plan, &planned).await;
        }
        let version = self.view().wrote(&plan);
        if let Some(version) = version {
            self.go_on(plan, answers);
            return Ok(version);
        }
        drop(answers);
        let error = self.failed(errors, &plan);
        // The parts that a write has taken are given back after the rest has failed for good, in the opposite order (M7).
        let puts = self.view().gives_back(&plan, error.kind());
        for put in puts {
            let lock = self.parts[put.part()].describe();
            if let (_, Err(error)) = self.put(put).await {
                let error = error.in_full();
                tracing::debug!(lock, error, "could not give back a part of a write");
            }
        }
        Err(error)
    }

    /// Releases the parts that the last write of the term has reached since its release was planned: nobody else does, and
    /// the next holder would wait for their lease if another part is away (M6).
    async fn release_late(&self, plan: &mut Plan, planned: &BTreeSet<usize>) {
        let puts = self.view().late_puts(plan, planned);
        let mut answers: FuturesUnordered<_> = puts.into_iter().map(|put| self.put(put)).collect();
        while let Some((part, answer)) = answers.next().await {
            if let Ok(version) = answer {
                plan.answered(part, Ok(version));
            }
        }
    }

    fn put(&self, put: Put) -> Answer<Version> {
        let lock = Arc::clone(&self.parts[put.part()]);
        Box::pin(async move {
            let answer = match put.expected() {
                None => lock.create(put.record()).await,
                Some(version) => lock.update(put.record(), version).await,
            };
            (put.part(), answer)
        })
    }

    /// Takes the other answers in the background, until the next call (M10).
    fn go_on(&self, mut plan: Plan, mut answers: FuturesUnordered<Answer<Version>>) {
        answers.extend(plan.rest().map(|put| self.put(put)));
        let reads: FuturesUnordered<_> = plan.reads().iter().map(|part| self.read(*part)).collect();
        let record = Arc::clone(plan.record());
        let view = Arc::clone(&self.view);
        let (are_written, are_read) = (!answers.is_empty(), !reads.is_empty());
        let late = Arc::clone(&view);
        let written = Arc::clone(&record);
        let writes = answers.for_each(move |(part, answer)| {
            let mut view = locked(&late);
            // The part is slower than the others, and not silent.
            view.silent_writes.remove(&part);
            answer.into_iter().for_each(|version| view.wrote_late(&written, part, version));
            ready(())
        });
        let reads = reads.for_each(move |(part, answer)| {
            let mut view = locked(&view);
            let higher = answer.ok().and_then(|found| view.read_late(&record, part, found.as_ref()));
            if let Some(token) = higher {
                tracing::warn!(
                    lock = view.names[part],
                    token,
                    leader_token = record.leader_transitions,
                    "a part of the lock has a token above the leader's, so it counts for nothing until another term \
                     begins: until then, the leader needs all the others that it can do without otherwise; step \
                     down to take it back"
                );
            }
            ready(())
        });
        let mut rest = locked(&self.rest);
        rest.writes = are_written.then(|| AbortOnDropHandle::new(tokio::spawn(writes)));
        rest.reads = are_read.then(|| AbortOnDropHandle::new(tokio::spawn(reads)));
    }

    /// Returns the error of a write that has failed in too many parts.
    fn failed(&self, mut errors: Vec<LockError>, plan: &Plan) -> LockError {
        let (kind, number) = plan.failure();
        let Some(number) = number else {
            let problem = "too few of its parts have answered the last look";
            return LockError::new(kind, UPDATE, self.describe(), problem);
        };
        let error = errors.swap_remove(number);
        if kind != StoreErrorKind::Ambiguous || !plan.is_open() {
            return error;
        }
        let retry_after = error.retry_after();
        LockError::new(kind, UPDATE, self.describe(), error).with_retry_after(retry_after)
    }
}
