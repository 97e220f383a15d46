//! Sends the requests of a write, including those that it leaves to the background.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use tokio::time::timeout;
use tokio_util::task::AbortOnDropHandle;

use super::plan::{Plan, Put};
use super::view::View;
use super::{Answer, Background, Majority, Writes, locked};
use crate::lock::action::UPDATE;
use crate::lock::record::LeaderElectionRecord;
use crate::lock::{LockError, ObjectStoreBasedLock, VersionedRecord};
use crate::store::{StoreErrorKind, Version};

/// The longest time to wait for the answer of a part in the background.
const LONGEST_WAIT: Duration = Duration::from_secs(60);

/// Parts that have not answered in the background. When this is dropped, even by a panic, they may get new requests.
struct Unanswered {
    view: Arc<Mutex<View>>,
    parts: BTreeSet<usize>,
}

impl Drop for Unanswered {
    fn drop(&mut self) {
        let mut view = locked(&self.view);
        std::mem::take(&mut self.parts).into_iter().for_each(|part| view.has_ended(part));
    }
}

impl Majority {
    /// Writes a record into as many parts as a leader needs, and leaves the rest to the background (M10).
    pub(super) async fn write(
        &self,
        record: &LeaderElectionRecord,
        expected: Option<&Version>,
    ) -> Result<Version, LockError> {
        let mut plan = self.view().plan(record, expected)?;
        let mut earlier = self.begin(&plan);
        let written: Vec<usize> = plan.written().collect();
        let mut planned: BTreeSet<usize> = plan.puts().iter().map(Put::part).chain(written).collect();
        let (mut answers, mut errors, mut is_committed) = (FuturesUnordered::new(), Vec::new(), None);
        while is_committed.is_none() {
            while let Some(put) = plan.send() {
                self.view().silent_writes.insert(put.part());
                answers.push(self.put(put));
            }
            let Some((part, answer)) = answers.next().await else { break };
            self.view().silent_writes.remove(&part);
            if answer.as_ref().is_err_and(|error| error.retry_after().is_some()) {
                plan.do_not_repeat(part);
            }
            is_committed = plan.answered(part, answer.as_ref().cloned().map_err(|error| error.kind()));
            errors.extend(answer.err());
            // A release that has failed in too many parts still waits for the other answers. A part that the last
            // renewal reaches late is released below, and may be the one that is missing.
            is_committed = is_committed.filter(|committed| *committed || earlier.is_empty() || answers.is_empty());
        }
        while plan.is_begun() {
            let Some(writes) = earlier.pop(plan.is_committed()) else { break };
            // If the task has panicked, the panic was already reported.
            writes.await.ok();
            self.release_late(&mut plan, &mut planned).await;
        }
        let version = self.view().wrote(&plan);
        if let Some(version) = version {
            self.continue_in_background(plan, answers);
            return Ok(version);
        }
        drop(answers);
        let error = self.failed(errors, &plan);
        // If the write has failed for good, the parts that it has taken are rolled back, in the opposite order (M7).
        let puts = self.view().rolls_back(plan, error.kind());
        for put in puts {
            let lock = self.parts[put.part()].describe();
            if let (_, Err(error)) = self.put(put).await {
                let error = error.in_full();
                tracing::debug!(lock, error, "could not roll back a part of a write");
            }
        }
        Err(error)
    }

    /// Cancels what earlier calls have left to the background, except what a renewal continues. For a release, returns
    /// the writes that it has to wait for.
    fn begin(&self, plan: &Plan) -> Writes {
        if plan.is_renewal() {
            locked(&self.background).renew();
            return Writes::default();
        }
        let Background { writes, .. } = std::mem::take(&mut *locked(&self.background));
        self.view().all_have_ended();
        if plan.record().is_released() { writes } else { Writes::default() }
    }

    /// Releases the parts that writes of the term have reached since its release was planned (M6). Nobody else releases
    /// them. If they stayed held while another part is unavailable, the next holder would wait for their lease.
    async fn release_late(&self, plan: &mut Plan, planned: &mut BTreeSet<usize>) {
        let puts = self.view().late_puts(plan, planned);
        planned.extend(puts.iter().map(Put::part));
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

    /// Takes the other answers in the background (M10), until the next poll or the end of the term. The next renewal does not end this:
    /// otherwise, a part whose answers take longer than the time between renewals would never count.
    fn continue_in_background(&self, mut plan: Plan, mut answers: FuturesUnordered<Answer<Version>>) {
        let mut writing: BTreeSet<usize> = plan.open().collect();
        let puts: Vec<Put> = plan.unsent().collect();
        writing.extend(puts.iter().map(Put::part));
        let reads = self.view().leave(&plan, &writing);
        if !writing.is_empty() {
            answers.extend(puts.into_iter().map(|put| self.put(put)));
            let record = Arc::clone(plan.record());
            let writes = self.in_background(&plan, writing, answers, move |view, part, answer| {
                // The part is slower than the others, but not silent.
                view.silent_writes.remove(&part);
                if let Ok(version) = answer {
                    let written = VersionedRecord::new(LeaderElectionRecord::clone(&record), version);
                    view.observe_part(&record, part, Some(&written));
                }
            });
            locked(&self.background).writes.last = Some(writes);
        }
        if !reads.is_empty() {
            let answers = reads.iter().map(|part| self.read(*part)).collect();
            let record = Arc::clone(plan.record());
            let reads = self.in_background(&plan, reads.into_iter().collect(), answers, move |view, part, answer| {
                let higher = answer.ok().and_then(|found| view.observe_part(&record, part, found.as_ref()));
                if let Some(token) = higher {
                    tracing::warn!(
                        lock = view.names[part],
                        token,
                        leader_token = record.leader_transitions,
                        "a part of the lock has a token above the leader's, so it does not count in this term, which \
                         tolerates one fewer failed part; step down to use this part again"
                    );
                }
            });
            locked(&self.background).reads.push(reads);
        }
    }

    /// Waits in the background for the answers of these parts. After a quarter of a lease, but at most a minute, a part without an answer
    /// may get a new request. (The default request timeout is shorter.) Safety does not depend on this clock.
    fn in_background<T: Send + 'static>(
        &self,
        plan: &Plan,
        parts: BTreeSet<usize>,
        mut answers: FuturesUnordered<Answer<T>>,
        mut take: impl FnMut(&mut View, usize, Result<T, LockError>) + Send + 'static,
    ) -> AbortOnDropHandle<()> {
        let limit = (plan.record().lease_duration / 4).min(LONGEST_WAIT);
        let mut unanswered = Unanswered { view: Arc::clone(&self.view), parts };
        AbortOnDropHandle::new(tokio::spawn(async move {
            let answered = timeout(limit, async {
                while let Some((part, answer)) = answers.next().await {
                    let mut view = locked(&unanswered.view);
                    unanswered.parts.remove(&part);
                    view.has_ended(part);
                    take(&mut view, part, answer);
                }
            });
            answered.await.ok();
        }))
    }

    /// Returns the error of a write that has failed in too many parts.
    fn failed(&self, mut errors: Vec<LockError>, plan: &Plan) -> LockError {
        let (kind, index) = plan.failure();
        let Some(index) = index else {
            let problem = "too few of its parts answered the last poll";
            return LockError::new(kind, UPDATE, self.describe(), problem);
        };
        let error = errors.swap_remove(index);
        if kind != StoreErrorKind::Ambiguous || !plan.may_be_in_a_part() {
            return error;
        }
        let retry_after = error.retry_after();
        LockError::new(kind, UPDATE, self.describe(), error).with_retry_after(retry_after)
    }
}
