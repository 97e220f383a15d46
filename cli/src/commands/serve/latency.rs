//! The latency of the requests to the lock.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use leaderelection::causes::with_causes;
use leaderelection::clock::LocalInstant;
use leaderelection::{StoreError, StoreErrorKind};

use crate::cause::Cause;
use crate::lock::observed::{Moment, Observer, Request};

/// The time for which requests are remembered.
const REMEMBERED: Duration = Duration::from_secs(5 * 60);

/// The number of requests that are remembered, for short retry periods.
const MOST: usize = 300;

/// The last requests to a lock.
#[derive(Clone, Debug, Default)]
pub(super) struct Latencies(Arc<Mutex<VecDeque<Sample>>>, Arc<Mutex<Option<Failure>>>);

/// The error of the last request.
#[derive(Clone, Debug)]
pub(super) struct Failure {
    pub(super) text: String,
    /// The time at which the first of the requests failed that have failed in a row.
    pub(super) since: LocalInstant,
}

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

    /// The error of the last request, if it failed.
    pub(super) fn failure(&self) -> Option<Failure> {
        self.1.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn add(&self, sample: Sample) {
        let mut samples = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if samples.len() == MOST {
            samples.pop_front();
        }
        samples.push_back(sample);
    }
}

/// Measures the reads and the writes of one object. A probe of the store has other objects.
#[derive(Debug)]
pub(super) struct Timed {
    pub(super) key: String,
    pub(super) latencies: Latencies,
}

impl Observer for Timed {
    fn see(&self, request: &Request<'_>, moment: Moment<'_>) {
        let (succeeded, is_write) = (matches!(moment, Moment::Answered(Ok(()))), request.kind == "put");
        let is_measured = request.key == self.key && (is_write || request.kind == "get");
        if is_measured && let Moment::Answered(answer) = moment {
            let failure = answer.err().filter(|error| error.kind() != StoreErrorKind::Conflict);
            let mut last = self.latencies.1.lock().unwrap_or_else(PoisonError::into_inner);
            let since = last.as_ref().map_or(request.sent_at, |last| last.since);
            let text = |error| format!("{}: {}", Cause::of(StoreError::kind(error)), with_causes(error));
            *last = failure.map(|error| Failure { text: text(error), since });
        }
        if is_measured && !matches!(moment, Moment::Sent) {
            self.latencies.add(Sample { sent_at: request.sent_at, took: request.took(), is_write, succeeded });
        }
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
