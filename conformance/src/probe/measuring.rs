//! The latencies of a store: requests one after the other, as an election sends them.

use std::sync::Arc;
use std::time::Duration;

use leaderelection::implement::{ConditionalStore, Precondition};
use leaderelection::lock::TimeLimit;
use leaderelection::timings::Latencies;
use leaderelection::{StoreError, StoreErrorKind};

use super::calls::Prober;
use super::config::ProbeConfig;

/// A body of about the size of a record.
const BODY: &str = r#"{"holderIdentity":"leaderelection-probe","leaseDurationSeconds":15,"leaderTransitions":0}"#;

/// Measured latencies of a store.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Measured {
    /// The durations. A request that was not answered has the request timeout.
    pub latencies: Latencies,
    /// The number of requests that the store refused or throttled, or whose connection failed. They are no latencies.
    pub failed: usize,
    /// The objects that may still exist, because their deletion failed.
    pub leftovers: Vec<String>,
}

/// Measures `requests` requests to `store`, one after the other: updates of one object of the probe, each followed by a read.
/// On a store that [limits the rate of writes](ConditionalStore::min_write_interval), all but the first are reads.
///
/// The measuring ends at the time limit of `config`, with fewer requests. It returns `None` if no request was answered.
///
/// # Cancellation
///
/// Dropping the future may leave the object behind, in the folder of probes.
pub async fn measure(store: impl ConditionalStore, config: &ProbeConfig, requests: usize) -> Option<Measured> {
    let prober = Prober::new(Arc::new(store), config);
    let mut measuring = Measuring { prober: &prober, times: Vec::with_capacity(requests), failed: 0 };
    let limit = TimeLimit::new(config.time_limit).on_clock(Arc::clone(&config.clock));
    // What was measured until the end of the time counts.
    let _ = limit.answer(measuring.all(requests)).await;
    let Measuring { times, failed, .. } = measuring;
    prober.clean_up().await;
    let leftovers = prober.with_ledger(|ledger| ledger.objects.keys().map(|key| prober.store.describe(key)).collect());
    Latencies::of(times).map(|latencies| Measured { latencies, failed, leftovers })
}

struct Measuring<'a> {
    prober: &'a Prober,
    times: Vec<Duration>,
    failed: usize,
}

impl Measuring<'_> {
    async fn all(&mut self, requests: usize) {
        let (prober, key) = (self.prober, self.prober.new_key("latency"));
        let may_write = prober.store.min_write_interval().is_none();
        let mut version = None;
        for number in 0..requests {
            if number == 0 || number % 2 == 0 && may_write {
                let condition = version.clone().map_or(Precondition::Absent, Precondition::Matches);
                // The bodies differ, so that their versions do.
                let body = format!("{}{}", BODY, " ".repeat(number / 2 % 2)).into();
                let written = self.timed(prober.put_once(&key, body, condition)).await;
                version = written.or(version);
            } else if let Some(found) = self.timed(prober.get(&key)).await {
                version = found.map(|object| object.version);
            }
        }
    }

    /// Notes the time of a request, unless an error cut it short. A conflict is an answer like any other.
    async fn timed<T>(&mut self, request: impl Future<Output = Result<T, StoreError>>) -> Option<T> {
        let clock = &self.prober.config.clock;
        let sent = clock.now();
        let answer = request.await;
        let time = clock.now().saturating_since(sent);
        let timeout = self.prober.config.request_timeout;
        match &answer {
            Err(error) if error.kind() != StoreErrorKind::Conflict && time < timeout => self.failed += 1,
            _ => self.times.push(time.min(timeout)),
        }
        answer.ok()
    }
}
