//! The duration of requests without concurrent requests.

use std::fmt;
use std::time::Duration;

use leaderelection::clock::{Clock as _, SystemClock};
use leaderelection::implement::ConditionalStore as _;
use leaderelection::timings::Latencies;
use serde_json::{Value, json};

use crate::args::timing::request_limit;
use crate::lock::Lock;

const REQUESTS: usize = 30;

/// The durations of answered requests, and the limit that each had.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Measured {
    pub(super) latencies: Latencies,
    pub(super) request_timeout: Duration,
    /// The kind of the requests.
    pub(super) requests: &'static str,
}

impl Measured {
    /// Reads the lock repeatedly; `None` if no request succeeded.
    pub(super) async fn reads(lock: &Lock, request_timeout: Duration) -> Option<Self> {
        let limit = request_limit(request_timeout);
        let mut times = Vec::with_capacity(REQUESTS);
        for _ in 0..REQUESTS {
            let began = SystemClock.now();
            if let Ok(Ok(_)) = limit.answer(lock.store().get(lock.key())).await {
                times.push(SystemClock.now().saturating_since(began));
            }
        }
        Latencies::of(times).map(|latencies| Self { latencies, request_timeout, requests: "reads" })
    }

    pub(super) fn as_json(&self) -> Value {
        let seconds = |per_mille| self.latencies.per_mille(per_mille).as_secs_f64();
        json!({
            (self.requests): self.latencies.count(),
            "min": seconds(0),
            "p50": seconds(500),
            "p90": seconds(900),
            "p99": seconds(990),
            "p999": seconds(999),
            "max": seconds(1000),
        })
    }
}

impl fmt::Display for Measured {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [min, p50, p90, p999, max] = [0, 500, 900, 999, 1000].map(|per_mille| self.latencies.per_mille(per_mille));
        write!(f, "{} {}, min {min:.1?}, median {p50:.1?}, p90 {p90:.1?}", self.latencies.count(), self.requests)?;
        if self.latencies.count() > REQUESTS {
            write!(f, ", p99.9 {p999:.1?}")?;
        }
        write!(f, ", max {max:.1?} (request timeout: {:?})", self.request_timeout)
    }
}
