//! Watches the lock from outside, by reading it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use leaderelection::{
    ConditionalStore, LeaderElectionRecord, LockError, ObjectLock, ObjectStoreBasedLock as _, Version,
};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio_util::task::AbortOnDropHandle;

use crate::place::Site;

/// A record that was not there before.
#[derive(Clone, Debug)]
pub struct Sighting {
    pub record: LeaderElectionRecord,
    /// When it was seen for the first time: it was written before.
    pub seen_at: Instant,
    /// When the last read began that did not show it: it was written after.
    pub written_after: Instant,
}

#[derive(Debug)]
pub struct Observer {
    sightings: UnboundedReceiver<Result<Sighting, LockError>>,
    _task: AbortOnDropHandle<()>,
}

impl Observer {
    /// Reads the lock every `period`.
    pub fn start(site: &Site, period: Duration) -> Self {
        let lock = ObjectLock::new(Arc::clone(&site.store), &site.lock_key, "observer");
        let (sender, sightings) = unbounded_channel();
        let task = AbortOnDropHandle::new(tokio::spawn(async move {
            let mut watch = Watch { lock, last: None, written_after: Instant::now() };
            while watch.look().await.is_none_or(|sighting| sender.send(sighting).is_ok()) {
                tokio::time::sleep(period).await;
            }
        }));
        Self { sightings, _task: task }
    }

    /// The next change of the lock, or a failure to read it. Cancellation safe.
    pub async fn next(&mut self) -> Option<Result<Sighting, LockError>> {
        self.sightings.recv().await
    }
}

struct Watch {
    lock: ObjectLock<Arc<dyn ConditionalStore>>,
    last: Option<Version>,
    written_after: Instant,
}

impl Watch {
    async fn look(&mut self) -> Option<Result<Sighting, LockError>> {
        let began = Instant::now();
        let found = match self.lock.get().await {
            Ok(found) => found,
            Err(error) => return Some(Err(error)),
        };
        let seen_at = Instant::now();
        let written_after = std::mem::replace(&mut self.written_after, began);
        let found = found.filter(|found| self.last.as_ref() != Some(&found.version))?;
        self.last = Some(found.version);
        Some(Ok(Sighting { record: found.record, seen_at, written_after }))
    }
}
