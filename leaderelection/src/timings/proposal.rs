//! Proposes timings for a goal, from the measured latencies of a store.

use std::time::Duration;

use super::{JITTER_FACTOR, LONGEST_LEASE, Latencies, Timings};
use crate::timings::config_error::ConfigError;

/// How many retry periods a takeover may take in addition to the lease (rule 10). A follower reads the last renewal up
/// to its longest pause late, and adds up to 1/20 of a retry period to avoid collisions.
const RETRY_PERIODS_OF_TAKEOVER: f64 = 1.0 + JITTER_FACTOR + 0.05;

/// The shortest lease that is proposed, in milliseconds.
const SHORTEST_LEASE: u64 = 300;

/// The most terms a year that proposed timings may be expected to lose because of slow requests.
const MAX_LOSSES_A_YEAR: f64 = 1.0;

/// The longest first pause after a failure. It doubles with each further failure, up to the retry period (rule 6).
const FIRST_PAUSE: Duration = Duration::from_millis(100);

const SECONDS_PER_YEAR: f64 = 365.25 * 24.0 * 3600.0;

/// The goal of a proposal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Goal {
    /// After a crash of the leader, another candidate leads within this time.
    Failover(Duration),
    /// The leader writes once in this time, or less often if the store requires it.
    RetryPeriod(Duration),
}

/// Limits of a store that its latencies do not show. The default is no limits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StoreLimits {
    /// The shortest time between two writes to one object
    /// ([`min_write_interval`](crate::implement::ConditionalStore::min_write_interval)).
    pub write_interval: Option<Duration>,
    /// `true` if a lease has to be a whole number of seconds, as in a Kubernetes Lease.
    pub whole_seconds: bool,
}

/// Proposed timings, and what to expect of them.
///
/// ```
/// use std::time::Duration;
/// use leaderelection::timings::{Latencies, Proposal, StoreLimits, Goal};
///
/// // 2,000 requests. The slowest took 12 ms.
/// let latencies = Latencies::of((0..2000).map(|n| Duration::from_micros(4_000 + n * 4))).ok_or("none")?;
/// let proposal = Proposal::new(Goal::Failover(Duration::from_secs(2)), &latencies, StoreLimits::default())?;
/// assert_eq!(proposal.timings.lease_duration(), Duration::from_millis(1520));
/// assert!(proposal.failover <= Duration::from_secs(2));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Proposal {
    /// The timings, for [`timings`](crate::LeaderElectionConfigBuilder::timings).
    pub timings: Timings,
    /// The longest time from a crash of the leader until another candidate leads. This assumes no follower interval, no
    /// ranks, and takeover requests that are no slower than [`slow`](Self::slow).
    pub failover: Duration,
    /// The 99.9th percentile of the latencies.
    pub slow: Duration,
    /// How many requests in a row may remain unanswered before a term is lost.
    pub survives: u32,
    /// The expected number of terms a year that are lost because more than [`survives`](Self::survives) requests in a
    /// row take longer than the request timeout. The chance of a slow request is estimated from the latencies, with a
    /// uniform prior. Slow requests are assumed to be independent of each other, so outages are not counted.
    pub losses_a_year: f64,
}

/// Why no timings are proposed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "no timings for {}: {why}; {}",
    match goal {
        Goal::Failover(failover) => format!("a failover of {failover:?}"),
        Goal::RetryPeriod(period) => format!("a write every {period:?}"),
    },
    match least {
        Some(least) => format!("the shortest failover on this store is {least:.3?}"),
        None => "no failover is long enough for this store".to_owned(),
    },
)]
pub struct NoProposal {
    goal: Goal,
    why: String,
    least: Option<Duration>,
}

impl NoProposal {
    /// The shortest failover for which there are timings, if there is one.
    #[must_use]
    pub fn least_failover(&self) -> Option<Duration> {
        self.least
    }
}

impl Proposal {
    /// Proposes timings for `goal` on a store with these latencies and limits.
    ///
    /// The ratios are client-go's: the renew deadline is 2/3 of the lease, and the retry period is 2/15. The request
    /// timeout is four times [`slow`](Self::slow), but at least 1/10 and at most 1/4 of the renew deadline.
    ///
    /// # Errors
    ///
    /// If no timings reach the failover, because of the store's latencies or limits, or because the lease would be
    /// shorter than 300 ms or longer than a day. A retry period that is too short for the store is lengthened instead.
    pub fn new(goal: Goal, latencies: &Latencies, limits: StoreLimits) -> Result<Self, NoProposal> {
        let store = MeasuredStore { latencies, limits };
        let unit = store.lease_unit();
        let wanted = match goal {
            Goal::Failover(failover) => {
                // The formula of `failover` in `proposal_for`, solved for the lease.
                let lease = failover.saturating_sub(latencies.per_mille(999) * 2).as_secs_f64()
                    / (1.0 + RETRY_PERIODS_OF_TAKEOVER * 2.0 / 15.0);
                (lease * 1000.0) as u64 / unit * unit
            }
            // In milliseconds, 15/2 of the retry period.
            Goal::RetryPeriod(period) => (period.as_secs_f64() * 7500.0).ceil() as u64,
        };
        let wanted = wanted.checked_next_multiple_of(unit).unwrap_or(u64::MAX);
        let shortest = store.shortest_lease();
        let refuse = |why| {
            let shortest = shortest.and_then(|lease| store.proposal_for(lease).ok());
            Err(NoProposal { goal, why, least: shortest.map(|proposal| proposal.failover) })
        };
        let lease = match (goal, shortest) {
            (_, None) => return refuse(store.why_too_short(LONGEST_LEASE_MS)),
            (Goal::Failover(_), Some(shortest)) if wanted < shortest => return refuse(store.why_too_short(wanted)),
            (_, Some(shortest)) => wanted.max(shortest),
        };
        if lease > LONGEST_LEASE_MS {
            return refuse("the lease would be longer than a day".to_owned());
        }
        store.proposal_for(lease).or_else(|error| refuse(error.to_string()))
    }
}

const LONGEST_LEASE_MS: u64 = LONGEST_LEASE.as_secs() * 1000;

/// The store for which timings are proposed. A lease, in milliseconds, determines all timings.
struct MeasuredStore<'a> {
    latencies: &'a Latencies,
    limits: StoreLimits,
}

impl MeasuredStore<'_> {
    /// Every lease is a multiple of this number of milliseconds.
    fn lease_unit(&self) -> u64 {
        if self.limits.whole_seconds { 1000 } else { 1 }
    }

    fn proposal_for(&self, lease: u64) -> Result<Proposal, ConfigError> {
        let slow = self.latencies.per_mille(999);
        let [deadline, retry] = [lease * 2 / 3, lease * 2 / 15];
        let timeout = u64::try_from(slow.as_millis()).unwrap_or(u64::MAX).saturating_add(1).saturating_mul(4);
        let timeout = timeout.clamp(deadline.div_ceil(10), deadline / 4);
        let [lease, deadline, retry, timeout] = [lease, deadline, retry, timeout].map(Duration::from_millis);
        let timings = Timings::new(lease, deadline, retry)?.with_request_timeout(timeout)?;
        let survives = survives(&timings, slow);
        Ok(Proposal {
            timings,
            failover: lease + retry.mul_f64(RETRY_PERIODS_OF_TAKEOVER) + slow * 2,
            slow,
            survives,
            losses_a_year: SECONDS_PER_YEAR / retry.as_secs_f64() * self.chance_of_slow_requests(timeout, survives + 1),
        })
    }

    /// The expected chance that all of `in_a_row` requests take longer than `limit`: a moment of a beta distribution.
    fn chance_of_slow_requests(&self, limit: Duration, in_a_row: u32) -> f64 {
        let (slow, all) = (self.latencies.longer_than(limit) as f64, self.latencies.count() as f64);
        (0..in_a_row).map(f64::from).map(|earlier| (slow + 1.0 + earlier) / (all + 2.0 + earlier)).product()
    }

    /// Returns `true` if the lease is not too short for the store.
    fn supports(&self, lease: u64) -> bool {
        lease >= SHORTEST_LEASE.max(self.lease_unit())
            && self.proposal_for(lease).is_ok_and(|proposal| {
                proposal.timings.retry_period() >= self.limits.write_interval.unwrap_or_default()
                    && proposal.losses_a_year <= MAX_LOSSES_A_YEAR
            })
    }

    /// Returns the shortest supported lease, by a binary search. A store that supports a lease supports longer ones.
    fn shortest_lease(&self) -> Option<u64> {
        let unit = self.lease_unit();
        // All leases below `short` are too short, and `long` is supported; both count in units.
        let (mut short, mut long) = (0, LONGEST_LEASE_MS / unit);
        if !self.supports(long * unit) {
            return None;
        }
        while short < long {
            let middle = u64::midpoint(short, long);
            if self.supports(middle * unit) { long = middle } else { short = middle + 1 }
        }
        Some(long * unit)
    }

    /// Says why the store does not support a lease.
    fn why_too_short(&self, lease: u64) -> String {
        if self.limits.whole_seconds && lease < 1000 {
            return "its lease would be shorter than a second, and the lock holds whole seconds".to_owned();
        }
        if lease < SHORTEST_LEASE {
            return format!(
                "its lease would be shorter than {SHORTEST_LEASE}ms, so short pauses of a process or a machine would end terms"
            );
        }
        let proposal = match self.proposal_for(lease) {
            Ok(proposal) => proposal,
            Err(error) => return error.to_string(),
        };
        let retry = proposal.timings.retry_period();
        if let Some(interval) = self.limits.write_interval.filter(|&interval| retry < interval) {
            return format!(
                "the leader would write every {retry:?}, and the store takes one write to an object in {interval:?}"
            );
        }
        format!(
            "of {} requests one of a thousand took {:.1?} or more, so with a request timeout of {:?}, a term would survive \
             {} unanswered requests in a row, and {:.1} terms a year would be lost",
            self.latencies.count(),
            proposal.slow,
            proposal.timings.request_timeout(),
            proposal.survives,
            proposal.losses_a_year,
        )
    }
}

/// Returns how many requests in a row may remain unanswered. After them, a read and a write that each take `slow` must
/// still renew the lease before the renew deadline. All pauses are assumed to have their full length.
fn survives(timings: &Timings, slow: Duration) -> u32 {
    // The read after an unanswered write skips the first pause. The write after a successful read waits for one. So
    // each unanswered request costs one pause, and the first of them has the second length.
    let (mut used, mut pause, mut unanswered) = (timings.retry_period() + slow * 2, FIRST_PAUSE * 2, 0);
    loop {
        used += timings.request_timeout() + pause.min(timings.retry_period());
        if used > timings.renew_deadline() {
            return unanswered;
        }
        pause *= 2;
        unanswered += 1;
    }
}
