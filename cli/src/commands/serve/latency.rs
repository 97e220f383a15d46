//! The latency of the requests to the lock.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use leaderelection::clock::{Clock as _, LocalInstant, SystemClock};
use leaderelection::store::{ListedObject, ListedPage, PageToken};
use leaderelection::{ConditionalStore, Precondition, StoreError, Version, VersionedObject, async_trait};

/// The time for which requests are remembered.
const REMEMBERED: Duration = Duration::from_secs(5 * 60);

/// The number of requests that are remembered, for short retry periods.
const MOST: usize = 300;

/// The last requests to a lock.
#[derive(Clone, Debug, Default)]
pub(super) struct Latencies(Arc<Mutex<VecDeque<Sample>>>);

/// One request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sample {
    pub(super) sent_at: LocalInstant,
    pub(super) took: Duration,
    pub(super) is_write: bool,
    pub(super) succeeded: bool,
}

impl Latencies {
    /// The writes of the last minutes; or the reads, if there was no write. Oldest first.
    pub(super) fn last(&self, now: LocalInstant) -> Vec<Sample> {
        let samples = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let recent = samples.iter().filter(|sample| now.saturating_since(sample.sent_at) < REMEMBERED);
        let (writes, reads): (Vec<_>, Vec<_>) = recent.copied().partition(|sample| sample.is_write);
        if writes.is_empty() { reads } else { writes }
    }

    fn add(&self, sample: Sample) {
        let mut samples = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if samples.len() == MOST {
            samples.pop_front();
        }
        samples.push_back(sample);
    }
}

/// A store that measures the requests to one object. A probe of the store has other objects.
#[derive(Debug)]
pub(super) struct Timed {
    store: Arc<dyn ConditionalStore>,
    key: String,
    latencies: Latencies,
}

/// A request under way. The request may be dropped before its answer, because its time is over.
struct Pending<'a> {
    latencies: &'a Latencies,
    sample: Sample,
    is_measured: bool,
}

impl Drop for Pending<'_> {
    fn drop(&mut self) {
        if self.is_measured {
            let took = SystemClock.now().saturating_since(self.sample.sent_at);
            self.latencies.add(Sample { took, ..self.sample });
        }
    }
}

impl Timed {
    pub(super) fn new(store: Arc<dyn ConditionalStore>, key: &str, latencies: Latencies) -> Self {
        Self { store, key: key.to_owned(), latencies }
    }

    async fn measure<T>(
        &self,
        key: &str,
        is_write: bool,
        call: impl Future<Output = Result<T, StoreError>>,
    ) -> Result<T, StoreError> {
        let sample = Sample { sent_at: SystemClock.now(), took: Duration::ZERO, is_write, succeeded: false };
        let mut pending = Pending { latencies: &self.latencies, sample, is_measured: key == self.key };
        let answer = call.await;
        pending.sample.succeeded = answer.is_ok();
        answer
    }
}

#[async_trait]
impl ConditionalStore for Timed {
    async fn get(&self, key: &str) -> Result<Option<VersionedObject>, StoreError> {
        self.measure(key, false, self.store.get(key)).await
    }

    async fn put(&self, key: &str, body: Bytes, precondition: &Precondition) -> Result<Version, StoreError> {
        self.measure(key, true, self.store.put(key, body, precondition)).await
    }

    async fn delete(&self, key: &str, expected: &Version) -> Result<(), StoreError> {
        self.store.delete(key, expected).await
    }

    async fn discard(&self, key: &str) -> Result<(), StoreError> {
        self.store.discard(key).await
    }

    async fn list(&self, prefix: &str) -> Result<Vec<ListedObject>, StoreError> {
        self.store.list(prefix).await
    }

    async fn list_page(
        &self,
        prefix: &str,
        token: Option<&PageToken>,
        at_most: Option<u16>,
    ) -> Result<ListedPage, StoreError> {
        self.store.list_page(prefix, token, at_most).await
    }

    fn describe(&self, key: &str) -> String {
        self.store.describe(key)
    }

    fn has_unique_versions(&self) -> bool {
        self.store.has_unique_versions()
    }

    fn min_write_interval(&self) -> Option<Duration> {
        self.store.min_write_interval()
    }
}

/// The latencies as a drawing, with a summary.
#[derive(Clone, Debug)]
pub(super) struct Chart {
    pub(super) is_of_writes: bool,
    pub(super) median: Duration,
    pub(super) longest: Duration,
    pub(super) failed: usize,
    pub(super) bars: Vec<Bar>,
}

/// One request in the drawing, which is 1000 wide and 100 high.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Bar {
    pub(super) x: u64,
    pub(super) height: u64,
    pub(super) succeeded: bool,
}

impl Bar {
    pub(super) fn y(self) -> u64 {
        100 - self.height
    }
}

impl Chart {
    /// Draws samples, oldest first; `None` without any.
    pub(super) fn of(samples: &[Sample], now: LocalInstant) -> Option<Self> {
        let mut took: Vec<_> = samples.iter().map(|sample| sample.took).collect();
        took.sort_unstable();
        let (median, longest) = (*took.get(took.len() / 2)?, *took.last()?);
        let permille = |part: Duration, whole: Duration| {
            u64::try_from(part.as_nanos() * 1000 / whole.as_nanos().max(1)).unwrap_or(1000).min(1000)
        };
        let bar = |sample: &Sample| Bar {
            x: (1000 - permille(now.saturating_since(sample.sent_at), REMEMBERED)).min(996),
            height: (permille(sample.took, longest) / 10).max(2),
            succeeded: sample.succeeded,
        };
        Some(Self {
            is_of_writes: samples.last().is_some_and(|sample| sample.is_write),
            median,
            longest,
            failed: samples.iter().filter(|sample| !sample.succeeded).count(),
            bars: samples.iter().map(bar).collect(),
        })
    }
}

#[cfg(test)]
mod tests;
