//! Writes histories in the background: no election or term waits for a write.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use leaderelection_protocol::policy::Jitter;
use leaderelection_protocol::policy::back_off::BackOff;
use tokio::sync::Semaphore;
use tokio_util::task::TaskTracker;
use tracing::Instrument as _;

use super::object::{add, parse};
use super::{EndedTerm, Retention, key_of};
use crate::clock::Clock;
use crate::lock::bounded::{Bounded, TimeLimit};
use crate::store::{ConditionalStore, Precondition, StoreError, StoreErrorKind};

/// The most histories that are written at the same time. A session may lose thousands of locks at once.
const AT_A_TIME: usize = 4;

/// The number of attempts to write one term.
const ATTEMPTS: u32 = 13;

/// The store and the key of a lock.
pub(crate) type Place = (Arc<dyn ConditionalStore>, String);

/// The writer of the histories of one elector, or of all locks of one session.
#[derive(Debug)]
pub(crate) struct HistoryWriter {
    keep: Retention,
    limit: TimeLimit,
    /// The longest pause between two attempts.
    pause: Duration,
    clock: Arc<dyn Clock>,
    permits: Semaphore,
    writes: TaskTracker,
}

impl HistoryWriter {
    pub(crate) fn new(keep: Retention, limit: TimeLimit, pause: Duration, clock: Arc<dyn Clock>) -> Arc<Self> {
        let (permits, writes) = (Semaphore::new(AT_A_TIME), TaskTracker::new());
        Arc::new(Self { keep, limit, pause, clock, permits, writes })
    }

    /// Adds a term to the history of a lock, in the background. A lock of several parts has a history beside each part.
    pub(crate) fn add(self: &Arc<Self>, places: Vec<Place>, term: &EndedTerm) {
        // If an election is dropped outside of a runtime, nothing can run in the background.
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        for place in places {
            let (writer, term) = (Arc::clone(self), term.clone());
            let write = async move { writer.write(place, &term).await };
            self.writes.spawn_on(write.in_current_span(), &runtime);
        }
    }

    /// Waits until everything is written, but at most four request timeouts, like a release: an outage must not keep a
    /// process from exiting.
    pub(crate) async fn written(&self) {
        self.writes.close();
        let limit = self.limit.clone().of_duration(self.limit.duration() * 4);
        if limit.answer(self.writes.wait()).await.is_err() {
            tracing::warn!(
                terms = self.writes.len(),
                "the history of the lock was not written in time, so it lacks terms"
            );
        }
        self.writes.reopen();
    }

    async fn write(&self, (store, key): Place, term: &EndedTerm) {
        let (store, key) = (Bounded::new(store, self.limit.clone()), key_of(&key));
        // This cannot fail, because the semaphore is never closed.
        let _permit = self.permits.acquire().await;
        let mut pauses = BackOff::default();
        for attempt in 1..=ATTEMPTS {
            let error = match self.attempt(&store, &key, term).await {
                Ok(()) => return,
                Err(error) => error,
            };
            let is_permanent = matches!(error.kind(), StoreErrorKind::Fatal | StoreErrorKind::Unreadable);
            if is_permanent || attempt == ATTEMPTS {
                let (history, token) = (store.describe(&key), term.fencing_token);
                tracing::warn!(history, token = u64::from(token), %error, "cannot write a term into the history; the election continues");
                return;
            }
            // A conflict means that another process wrote the history first. The next attempt needs no pause.
            if error.kind() != StoreErrorKind::Conflict {
                let pause = pauses.next(self.pause, Jitter::WHOLE);
                (*self.clock).sleep_until(self.clock.now() + pause).await;
            }
        }
    }

    async fn attempt(&self, store: &impl ConditionalStore, key: &str, term: &EndedTerm) -> Result<(), StoreError> {
        let (terms, precondition) = match store.get(key).await? {
            None => (Some(Vec::new()), Precondition::Absent),
            Some(found) => (parse(&found.body), Precondition::Matches(found.version)),
        };
        let Some(terms) = terms else {
            let problem =
                format!("{}: the object is not a history, and was not overwritten; move it away", store.describe(key));
            return Err(StoreError::new(StoreErrorKind::Unreadable, problem));
        };
        match add(terms, term, &self.keep, self.clock.wall_time()) {
            None => Ok(()),
            Some(body) => store.put(key, Bytes::from(body), &precondition).await.map(drop),
        }
    }
}
