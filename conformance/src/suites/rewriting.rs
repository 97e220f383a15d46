//! Readers of an object that writers replace all the time must see no mixed, stale or lost write.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use leaderelection::StoreErrorKind;
use leaderelection::implement::Precondition::{Absent, Matches};
use leaderelection::implement::{Version, VersionedObject};
use tokio::task;

use crate::contract::{Breach, HONEST_ERRORS, LINEARIZABLE_READ, LINEARIZABLE_WRITE, ONE_RESPONSE, WRITTEN};
use crate::probe::{Finding, Prober};
use crate::race::at_once;

const WRITERS: usize = 8;
const READERS: usize = 8;

impl Prober {
    pub(super) async fn rewriting(&self) -> Finding<()> {
        let key = self.new_key("rewriting");
        let first = body(0, 0, 0);
        let version = self.write(&key, first.clone(), &Absent).await?.version;
        let history = Arc::new(History::default());
        with(&history.written, |written| written.insert(first, Some(version)));

        let tasks = at_once((0..WRITERS + READERS).map(|task| {
            let (prober, key, history) = (self.clone(), key.clone(), history.clone());
            async move {
                if task >= WRITERS {
                    return history.read(&prober, &key).await;
                }
                let answer = history.write(&prober, &key, task).await;
                history.writers_done.fetch_add(1, Ordering::SeqCst);
                answer
            }
        }));
        tasks.await.into_iter().collect::<Finding<()>>()?;
        Ok(history.judge()?)
    }
}

/// The answers to the tasks about one object. Every body contains its place in the sequence of writes.
#[derive(Debug, Default)]
struct History {
    /// Every body that may have been written, with the acknowledged version, if there is one.
    written: Mutex<BTreeMap<Bytes, Option<Version>>>,
    /// The objects that were read, each with the newest place that was acknowledged before the read began.
    seen: Mutex<Vec<(usize, VersionedObject)>>,
    acknowledged: AtomicUsize,
    writers_done: AtomicUsize,
}

impl History {
    async fn write(&self, prober: &Prober, key: &str, writer: usize) -> Finding<()> {
        for round in 0..prober.config.rounds {
            let Some(found) = self.observe(prober, key).await? else { continue };
            let place = place(&found.body)? + 1;
            let body = body(place, writer, round);
            // The body is noted before it is sent, because a reader may see it before the writer gets its
            // answer.
            with(&self.written, |written| written.insert(body.clone(), None));
            match prober.put_once(key, body.clone(), Matches(found.version)).await {
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

    async fn read(&self, prober: &Prober, key: &str) -> Finding<()> {
        while self.writers_done.load(Ordering::SeqCst) < WRITERS {
            self.observe(prober, key).await?;
            task::yield_now().await;
        }
        Ok(())
    }

    /// Reads and remembers the answer; `None` if the store rejects the read for now.
    async fn observe(&self, prober: &Prober, key: &str) -> Finding<Option<VersionedObject>> {
        let acknowledged = self.acknowledged.load(Ordering::SeqCst);
        match prober.call(key, prober.store.get(key)).await {
            Ok(Some(found)) => {
                with(&self.seen, |seen| seen.push((acknowledged, found.clone())));
                Ok(Some(found))
            }
            Ok(None) => Err(Breach::new("while it was rewritten, there was no object", LINEARIZABLE_READ).into()),
            Err(error) => match error.kind() {
                StoreErrorKind::Rejected | StoreErrorKind::Ambiguous => Ok(None),
                _ => Err(error.into()),
            },
        }
    }

    fn judge(&self) -> Result<(), Breach> {
        let written = with(&self.written, std::mem::take);
        for (acknowledged, found) in with(&self.seen, std::mem::take) {
            let place = place(&found.body)?;
            match written.get(&found.body) {
                None => return Err(Breach::new(format!("write number {place} was read and refused"), HONEST_ERRORS)),
                Some(Some(told)) if *told != found.version => {
                    let what = format!("write number {place} has version {told} and was read with {}", found.version);
                    return Err(Breach::new(what, ONE_RESPONSE));
                }
                Some(_) => {}
            }
            let what = format!("write number {place} was read after {acknowledged} had been acknowledged");
            Breach::unless(place >= acknowledged, what, LINEARIZABLE_READ)?;
        }
        // This check comes after the reads, because a mixed read makes its reader use a place a second time.
        let mut winners = BTreeMap::new();
        for body in written.iter().filter(|(_, version)| version.is_some()).map(|(body, _)| body) {
            let place = place(body)?;
            let what = format!("two writers were told that they wrote number {place} in a line of updates");
            Breach::unless(winners.insert(place, body).is_none(), what, LINEARIZABLE_WRITE)?;
        }
        Ok(())
    }
}

fn place(body: &Bytes) -> Result<usize, Breach> {
    let place = std::str::from_utf8(body).ok().and_then(|text| text.split_once(' ')?.0.parse().ok());
    place.ok_or_else(|| Breach::new("while it was rewritten, it held what nobody wrote", WRITTEN))
}

/// Creates a unique body. The lengths differ widely, so that parts of two bodies cannot look like one.
fn body(place: usize, writer: usize, round: usize) -> Bytes {
    let padding = ".".repeat(place * 1_009 % 8_192);
    format!("{place} writer {writer} round {round} {padding}").into()
}

fn with<T, R>(mutex: &Mutex<T>, act: impl FnOnce(&mut T) -> R) -> R {
    act(&mut mutex.lock().unwrap_or_else(PoisonError::into_inner))
}
