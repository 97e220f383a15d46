//! How long a request takes when it is the only one.

use std::fmt;
use std::time::Duration;

use leaderelection::ConditionalStore as _;
use leaderelection::clock::{Clock as _, SystemClock};
use serde_json::{Value, json};

use crate::lock::Lock;

const REQUESTS: usize = 30;

/// The times of good answers, sorted.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Latencies(Vec<Duration>);

impl Latencies {
    /// Reads the lock again and again; `None` if that was never answered.
    pub(super) async fn measure(lock: &Lock, patience: Duration) -> Option<Self> {
        let mut times = Vec::with_capacity(REQUESTS);
        for _ in 0..REQUESTS {
            let began = SystemClock.now();
            if let Ok(Ok(_)) = tokio::time::timeout(patience, lock.store().get(lock.key())).await {
                times.push(SystemClock.now().saturating_since(began));
            }
        }
        Self::of(times)
    }

    fn of(mut times: Vec<Duration>) -> Option<Self> {
        times.sort_unstable();
        (!times.is_empty()).then_some(Self(times))
    }

    /// The time that this many in a hundred did not exceed.
    fn percentile(&self, percent: usize) -> Duration {
        let rank = (self.0.len() * percent).div_ceil(100).clamp(1, self.0.len());
        self.0[rank - 1]
    }

    pub(super) fn as_json(&self) -> Value {
        let [min, p50, p90, max] = [0, 50, 90, 100].map(|percent| self.percentile(percent).as_secs_f64());
        json!({ "reads": self.0.len(), "min": min, "p50": p50, "p90": p90, "max": max })
    }
}

impl fmt::Display for Latencies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [min, p50, p90, max] = [0, 50, 90, 100].map(|percent| self.percentile(percent));
        write!(f, "{} reads, min {min:.1?}, median {p50:.1?}, p90 {p90:.1?}, max {max:.1?}", self.0.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_of_the_nearest_rank() {
        let latencies = Latencies::of((1..=10).rev().map(Duration::from_millis).collect()).unwrap();
        let found = [0, 50, 90, 91, 100].map(|percent| latencies.percentile(percent).as_millis());
        assert_eq!(found, [1, 5, 9, 10, 10]);
        assert_eq!(Latencies::of(Vec::new()), None);
    }
}
