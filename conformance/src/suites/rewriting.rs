//! Readers of an object that writers replace all the time must see no mixed, stale or lost write.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use leaderelection::{ConditionalStore, Precondition, StoreErrorKind, Version, VersionedObject};
use tokio::task;

use super::calls::Suite;
use super::clause::{HONEST_ERRORS, LINEARIZABLE_READ, LINEARIZABLE_WRITE, ONE_RESPONSE, WRITTEN, broken, demand};
use super::effort::Effort;
use super::race::race;
use crate::race::Answer;

const WRITERS: usize = 8;
const READERS: usize = 8;

impl<S: ConditionalStore> Suite<S> {
    pub(super) async fn rewriting(&self, effort: Effort) {
        let key = self.key("rewriting");
        let first = body(0, 0, 0);
        let version = self.put(&key, first.clone(), &Precondition::Absent).await;
        let history = Arc::new(History { object: self.store.describe(&key), ..History::default() });
        with(&history.written, |written| written.insert(first, Some(version)));

        let answers = race(WRITERS + READERS, |task| {
            let (store, key, history) = (self.store.clone(), key.clone(), history.clone());
            async move {
                if task >= WRITERS {
                    return history.read(&*store, &key).await;
                }
                let answer = history.write(&*store, &key, task, effort.rounds).await;
                history.writers_done.fetch_add(1, Ordering::SeqCst);
                answer
            }
        })
        .await;
        if let Some(refusal) = answers.into_iter().find_map(Result::err) {
            broken(&history.object, format!("a call failed while it was rewritten: {refusal:?}"), HONEST_ERRORS);
        }
        history.judge();
    }
}

/// The answers to the tasks about one object. Every body contains its place in the sequence of writes.
#[derive(Debug, Default)]
struct History {
    object: String,
    /// Every body that may have been written, with the acknowledged version, if there is one.
    written: Mutex<BTreeMap<Bytes, Option<Version>>>,
    /// The objects that were read, each with the newest place that was acknowledged before the read began.
    seen: Mutex<Vec<(usize, VersionedObject)>>,
    acknowledged: AtomicUsize,
    writers_done: AtomicUsize,
}

impl History {
    async fn write(&self, store: &impl ConditionalStore, key: &str, writer: usize, rounds: usize) -> Answer<()> {
        for round in 0..rounds {
            let Some(found) = self.observe(store, key).await? else { continue };
            let place = self.place(&found.body) + 1;
            let body = body(place, writer, round);
            // The body is noted before it is sent, because a reader may see it before the writer gets its
            // answer.
            with(&self.written, |written| written.insert(body.clone(), None));
            match store.put(key, body.clone(), &Precondition::Matches(found.version)).await {
                Ok(version) => {
                    with(&self.written, |written| written.insert(body, Some(version)));
                    self.acknowledged.fetch_max(place, Ordering::SeqCst);
                }
                Err(error) => match error.kind() {
                    StoreErrorKind::Ambiguous => {}
                    StoreErrorKind::Conflict | StoreErrorKind::Rejected => {
                        with(&self.written, |written| written.remove(&body));
                    }
                    _ => return Err(error.into()),
                },
            }
            task::yield_now().await;
        }
        Ok(())
    }

    async fn read(&self, store: &impl ConditionalStore, key: &str) -> Answer<()> {
        while self.writers_done.load(Ordering::SeqCst) < WRITERS {
            self.observe(store, key).await?;
            task::yield_now().await;
        }
        Ok(())
    }

    /// Reads and remembers the answer; `None` if the store rejects the read for now.
    async fn observe(&self, store: &impl ConditionalStore, key: &str) -> Answer<Option<VersionedObject>> {
        let acknowledged = self.acknowledged.load(Ordering::SeqCst);
        match store.get(key).await {
            Ok(Some(found)) => {
                with(&self.seen, |seen| seen.push((acknowledged, found.clone())));
                Ok(Some(found))
            }
            Ok(None) => broken(&self.object, "while it was rewritten, there was no object", LINEARIZABLE_READ),
            Err(error) => match error.kind() {
                StoreErrorKind::Rejected | StoreErrorKind::Ambiguous => Ok(None),
                _ => Err(error.into()),
            },
        }
    }

    fn judge(&self) {
        let written = with(&self.written, std::mem::take);
        for (acknowledged, found) in with(&self.seen, std::mem::take) {
            let place = self.place(&found.body);
            match written.get(&found.body) {
                None => broken(&self.object, format!("write number {place} was read and refused"), HONEST_ERRORS),
                Some(Some(told)) if *told != found.version => {
                    let what = format!("write number {place} has version {told} and was read with {}", found.version);
                    broken(&self.object, what, ONE_RESPONSE);
                }
                Some(_) => {}
            }
            let what = || format!("write number {place} was read after {acknowledged} had been acknowledged");
            demand(place >= acknowledged, &self.object, what(), LINEARIZABLE_READ);
        }
        // This check comes after the reads, because a mixed read makes its reader use a place a second time.
        let mut winners = BTreeMap::new();
        for body in written.iter().filter(|(_, version)| version.is_some()).map(|(body, _)| body) {
            let place = self.place(body);
            let what = || format!("two writers were told that they wrote number {place} in a line of updates");
            demand(winners.insert(place, body).is_none(), &self.object, what(), LINEARIZABLE_WRITE);
        }
    }

    fn place(&self, body: &Bytes) -> usize {
        let place = std::str::from_utf8(body).ok().and_then(|text| text.split_once(' ')?.0.parse().ok());
        place.unwrap_or_else(|| broken(&self.object, "while it was rewritten, it held what nobody wrote", WRITTEN))
    }
}

/// Creates a unique body. The lengths differ widely, so that parts of two bodies cannot look like one.
fn body(place: usize, writer: usize, round: usize) -> Bytes {
    let padding = ".".repeat(place * 1_009 % 8_192);
    format!("{place} writer {writer} round {round} {padding}").into()
}

fn with<T, R>(mutex: &Mutex<T>, act: impl FnOnce(&mut T) -> R) -> R {
    act(&mut mutex.lock().unwrap_or_else(PoisonError::into_inner))
}
