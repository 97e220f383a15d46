//! A view of the lock from outside, by repeated reads.

use std::sync::Arc;
use std::time::{Duration, Instant};

use leaderelection::clock::{Clock as _, LocalInstant, SystemClock};
use leaderelection::handle::Observation;
use leaderelection::{LeaderElectionRecord, LockError, ObjectLock};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::task::JoinSet;

use crate::place::Site;

/// A record that no earlier read has shown.
#[derive(Clone, Debug)]
pub struct Sighting {
    pub record: LeaderElectionRecord,
    /// The moment at which the record was first seen. The record was written before that moment.
    pub seen_at: Instant,
    /// The start of the last read that did not show the record. The record was written after that moment.
    pub written_after: Instant,
}

#[derive(Debug)]
pub struct Observer {
    sightings: UnboundedReceiver<Result<Sighting, LockError>>,
    /// The reading task, which ends when the observer is dropped.
    _task: JoinSet<()>,
}

impl Observer {
    /// Reads the lock every `period`.
    pub fn start(site: &Site, period: Duration) -> Self {
        let lock = ObjectLock::new(Arc::clone(&site.store), &site.lock_key, "observer");
        let (sender, sightings) = unbounded_channel();
        let mut task = JoinSet::new();
        task.spawn(async move {
            let mut observer = leaderelection::handle::observe(lock, period);
            let mut last_asked = SystemClock.now();
            loop {
                let sighting = match observer.next().await {
                    Ok(seen) => {
                        let written_after = std::mem::replace(&mut last_asked, seen.asked_at);
                        Sighting::new(seen, written_after).map(Ok)
                    }
                    Err(error) => Some(Err(error)),
                };
                if sighting.is_some_and(|sighting| sender.send(sighting).is_err()) {
                    return;
                }
            }
        });
        Self { sightings, _task: task }
    }

    /// Returns the next change of the lock, or a failed read. Cancellation safe.
    pub async fn next(&mut self) -> Option<Result<Sighting, LockError>> {
        self.sightings.recv().await
    }
}

impl Sighting {
    /// Returns the change, or `None` if an earlier read has shown the record.
    fn new(seen: Observation, written_after: LocalInstant) -> Option<Self> {
        let (seen_at, written_after) = (instant(seen.answered_at), instant(written_after));
        let found = seen.found.clone().filter(|_| seen.is_news())?;
        Some(Self { record: found.record, seen_at, written_after })
    }
}

/// Returns the moment by the clock that the rest of the program uses.
fn instant(moment: LocalInstant) -> Instant {
    let now = Instant::now();
    now.checked_sub(SystemClock.now().saturating_since(moment)).unwrap_or(now)
}
