//! The duration of a request without concurrent requests.

use std::fmt;
use std::time::Duration;

use leaderelection::ConditionalStore as _;
use leaderelection::clock::{Clock as _, SystemClock};
use serde_json::{Value, json};

use crate::args::timing::request_limit;
use crate::lock::Lock;

const REQUESTS: usize = 30;

/// The durations of successful requests, sorted, and the limit that each had.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Latencies {
    times: Vec<Duration>,
    request_timeout: Duration,
}

impl Latencies {
    /// Reads the lock repeatedly; `None` if no request succeeded.
    pub(super) async fn measure(lock: &Lock, request_timeout: Duration) -> Option<Self> {
        let limit = request_limit(request_timeout);
        let mut times = Vec::with_capacity(REQUESTS);
        for _ in 0..REQUESTS {
            let began = SystemClock.now();
            if let Ok(Ok(_)) = limit.answer(lock.store().get(lock.key())).await {
                times.push(SystemClock.now().saturating_since(began));
            }
        }
        Self::of(times, request_timeout)
    }

    fn of(mut times: Vec<Duration>, request_timeout: Duration) -> Option<Self> {
        times.sort_unstable();
        (!times.is_empty()).then_some(Self { times, request_timeout })
    }

    /// Returns the duration that `percent` per cent of the requests did not exceed.
    fn percentile(&self, percent: usize) -> Duration {
        let rank = (self.times.len() * percent).div_ceil(100).clamp(1, self.times.len());
        self.times[rank - 1]
    }

    pub(super) fn as_json(&self) -> Value {
        let [min, p50, p90, max] = [0, 50, 90, 100].map(|percent| self.percentile(percent).as_secs_f64());
        json!({ "reads": self.times.len(), "min": min, "p50": p50, "p90": p90, "max": max })
    }
}

impl fmt::Display for Latencies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [min, p50, p90, max] = [0, 50, 90, 100].map(|percent| self.percentile(percent));
        write!(f, "{} reads, min {min:.1?}, median {p50:.1?}, p90 {p90:.1?}, max {max:.1?}", self.times.len())?;
        write!(f, "; with --request-timeout {}", humantime::format_duration(self.request_timeout))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_of_the_nearest_rank() {
        let latencies = Latencies::of((1..=10).rev().map(Duration::from_millis).collect(), Duration::MAX).unwrap();
        let found = [0, 50, 90, 91, 100].map(|percent| latencies.percentile(percent).as_millis());
        assert_eq!(found, [1, 5, 9, 10, 10]);
        assert_eq!(Latencies::of(Vec::new(), Duration::MAX), None);
    }
}
