//! Measured durations of requests.

use std::time::Duration;

/// The durations of some requests to a store, sorted.
///
/// ```
/// use std::time::Duration;
/// use leaderelection::timings::Latencies;
///
/// let latencies = Latencies::of((1..=1000).map(Duration::from_millis)).ok_or("no request was answered")?;
/// assert_eq!(latencies.per_mille(500), Duration::from_millis(500));
/// assert_eq!(latencies.per_mille(999), Duration::from_millis(999));
/// # Ok::<(), &str>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Latencies(Vec<Duration>);

impl Latencies {
    /// Sorts the durations; `None` if there are none. An unanswered request counts with the time until it was given up.
    #[must_use]
    pub fn of(times: impl IntoIterator<Item = Duration>) -> Option<Self> {
        let mut times: Vec<Duration> = times.into_iter().collect();
        times.sort_unstable();
        (!times.is_empty()).then_some(Self(times))
    }

    /// Returns the number of requests, at least 1.
    #[must_use]
    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// Returns the duration that `per_mille` of 1000 requests did not exceed (a percentile by nearest rank). 0 returns
    /// the shortest duration, and 1000 or more the longest.
    #[must_use]
    pub fn per_mille(&self, per_mille: usize) -> Duration {
        let rank = self.0.len().saturating_mul(per_mille).div_ceil(1000).clamp(1, self.0.len());
        self.0[rank - 1]
    }

    /// Returns the number of requests that took longer than `limit`.
    pub(super) fn longer_than(&self, limit: Duration) -> usize {
        self.0.len() - self.0.partition_point(|&time| time <= limit)
    }
}
