//! Timings that follow from a goal and from the measured latencies of a store.

use std::time::Duration;

use super::{JITTER_FACTOR, LONGEST_LEASE, Latencies, Timings};
use crate::timings::config_error::ConfigError;

/// The part of a retry period that a takeover may take beside the lease: the pause of the follower that has seen the last
/// renewal last, and the spread of the takeovers (rules 6 and 10).
const RETRIES_A_TAKEOVER: f64 = 1.0 + JITTER_FACTOR + 0.05;

/// The shortest lease that is proposed, in milliseconds.
const LEAST_LEASE: u64 = 300;

/// The largest expected number of terms a year that proposed timings lose without a fault of the store.
const MOST_LOSSES: f64 = 1.0;

/// The longest first pause after a failure, which doubles up to the retry period (rule 6).
const FIRST_PAUSE: Duration = Duration::from_millis(100);

const YEAR: f64 = 365.25 * 24.0 * 3600.0;

/// The aim of a proposal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Goal {
    /// Another candidate leads at most this long after a leader has crashed.
    Failover(Duration),
    /// The leader writes once in this time, if the store can carry it, or else less often.
    RetryPeriod(Duration),
}

/// The limits of a store that no latency shows. The default has none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StoreLimits {
    /// The shortest time between two writes to one object
    /// ([`min_write_interval`](crate::implement::ConditionalStore::min_write_interval)).
    pub write_interval: Option<Duration>,
    /// A lease is a whole number of seconds, as in a Kubernetes Lease.
    pub whole_seconds: bool,
}

/// Timings, and the numbers behind them.
///
/// ```
/// use std::time::Duration;
/// use leaderelection::timings::{Latencies, Proposal, StoreLimits, Goal};
///
/// // 2,000 requests, of which the slowest took 12 ms.
/// let latencies = Latencies::of((0..2000).map(|n| Duration::from_micros(4_000 + n * 4))).ok_or("none")?;
/// let proposal = Proposal::new(Goal::Failover(Duration::from_secs(2)), &latencies, StoreLimits::default())?;
/// assert_eq!(proposal.timings.lease_duration(), Duration::from_millis(1520));
/// assert!(proposal.failover <= Duration::from_secs(2));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Proposal {
    /// The timings: for [`timings`](crate::LeaderElectionConfigBuilder::timings).
    pub timings: Timings,
    /// The longest time from a crash of the leader until another candidate leads, without a follower interval, without ranks,
    /// and if the requests of the takeover are no slower than [`slow`](Self::slow).
    pub failover: Duration,
    /// The 99.9th percentile of the latencies.
    pub slow: Duration,
    /// The number of requests in a row that may remain unanswered without the loss of a term.
    pub survives: u32,
    /// The expected number of terms a year that are lost because more requests in a row than that take longer than the request
    /// timeout. The chance of each is taken from the latencies, with a uniform prior, and independent of the others: outages
    /// are not counted.
    pub losses_a_year: f64,
}

/// The reason for which no timings are proposed.
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
    /// Their shape is that of client-go: a renew deadline of two thirds of the lease, and a retry period of two fifteenths. The
    /// request timeout is four times the 99.9th percentile, and between a tenth and a quarter of the renew deadline.
    ///
    /// # Errors
    ///
    /// If the store cannot carry a failover: because of its latencies or limits, or because the lease would be shorter than 300
    /// ms or longer than a day. A retry period that the store cannot carry is lengthened.
    pub fn new(goal: Goal, latencies: &Latencies, limits: StoreLimits) -> Result<Self, NoProposal> {
        let candidates = Candidates { latencies, limits };
        let unit = candidates.unit();
        let wanted = match goal {
            Goal::Failover(failover) => {
                let lease = failover.saturating_sub(latencies.per_mille(999) * 2).as_secs_f64()
                    / (1.0 + RETRIES_A_TAKEOVER * 2.0 / 15.0);
                (lease * 1000.0) as u64 / unit * unit
            }
            Goal::RetryPeriod(period) => (period.as_secs_f64() * 7500.0).ceil() as u64,
        };
        let wanted = wanted.next_multiple_of(unit);
        let least = candidates.least();
        let refuse = |why| {
            let least = least.and_then(|lease| candidates.of(lease).ok()).map(|least| least.failover);
            Err(NoProposal { goal, why, least })
        };
        let lease = match (goal, least) {
            (_, None) => return refuse(candidates.why_not(MOST_LEASE)),
            (Goal::Failover(_), Some(least)) if wanted < least => return refuse(candidates.why_not(wanted)),
            (_, Some(least)) => wanted.max(least),
        };
        if lease > MOST_LEASE {
            return refuse("the lease would be longer than a day".to_owned());
        }
        candidates.of(lease).or_else(|error| refuse(error.to_string()))
    }
}

/// The longest lease, in milliseconds.
const MOST_LEASE: u64 = LONGEST_LEASE.as_secs() * 1000;

/// All timings of one shape on one store. Each is named by its lease in milliseconds.
struct Candidates<'a> {
    latencies: &'a Latencies,
    limits: StoreLimits,
}

impl Candidates<'_> {
    /// The milliseconds of which a lease is a multiple.
    fn unit(&self) -> u64 {
        if self.limits.whole_seconds { 1000 } else { 1 }
    }

    fn of(&self, lease: u64) -> Result<Proposal, ConfigError> {
        let slow = self.latencies.per_mille(999);
        let [deadline, retry] = [lease * 2 / 3, lease * 2 / 15];
        let patience = u64::try_from(slow.as_millis()).unwrap_or(u64::MAX).saturating_add(1).saturating_mul(4);
        let patience = patience.clamp(deadline.div_ceil(10), deadline / 4);
        let [lease, deadline, retry, patience] = [lease, deadline, retry, patience].map(Duration::from_millis);
        let timings = Timings::new(lease, deadline, retry)?.with_request_timeout(patience)?;
        let survives = survives(&timings, slow);
        Ok(Proposal {
            timings,
            failover: lease + retry.mul_f64(RETRIES_A_TAKEOVER) + slow * 2,
            slow,
            survives,
            losses_a_year: YEAR / retry.as_secs_f64() * self.chance_of_slow_requests(patience, survives + 1),
        })
    }

    /// Returns the expected chance that so many requests in a row take longer than `limit`: the moment of a beta distribution.
    fn chance_of_slow_requests(&self, limit: Duration, in_a_row: u32) -> f64 {
        let (slow, all) = (self.latencies.longer_than(limit) as f64, self.latencies.count() as f64);
        (0..in_a_row).map(f64::from).map(|earlier| (slow + 1.0 + earlier) / (all + 2.0 + earlier)).product()
    }

    fn carries(&self, lease: u64) -> bool {
        lease >= LEAST_LEASE.max(self.unit())
            && self.of(lease).is_ok_and(|proposal| {
                proposal.timings.retry_period() >= self.limits.write_interval.unwrap_or_default()
                    && proposal.losses_a_year <= MOST_LOSSES
            })
    }

    /// Returns the shortest lease that the store carries.
    fn least(&self) -> Option<u64> {
        let unit = self.unit();
        // The multiples of the unit below `short` are too short, and `long` is long enough: a store that carries a lease carries
        // longer ones.
        let (mut short, mut long) = (0, MOST_LEASE / unit);
        if !self.carries(long * unit) {
            return None;
        }
        while short < long {
            let middle = u64::midpoint(short, long);
            if self.carries(middle * unit) { long = middle } else { short = middle + 1 }
        }
        Some(long * unit)
    }

    /// Says why the store does not carry a lease.
    fn why_not(&self, lease: u64) -> String {
        if self.limits.whole_seconds && lease < 1000 {
            return "its lease would be shorter than a second, and the lock holds whole seconds".to_owned();
        }
        if lease < LEAST_LEASE {
            return format!(
                "its lease would be shorter than {LEAST_LEASE}ms, and pauses of processes and machines decide about such leases"
            );
        }
        let proposal = match self.of(lease) {
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
            "of {} requests one of a thousand took {:.1?} or more, so that with a request timeout of {:?} a term would survive \
             {} unanswered requests in a row, and {:.1} terms a year would be lost",
            self.latencies.count(),
            proposal.slow,
            proposal.timings.request_timeout(),
            proposal.survives,
            proposal.losses_a_year,
        )
    }
}

/// Returns the number of requests in a row that may remain unanswered after a renewal, so that a read and a write of this
/// duration still renew the lease before the renew deadline, whatever the jitter of the pauses. The read that follows an
/// unanswered write waits for no pause, and the write that follows the last read waits for one.
fn survives(timings: &Timings, slow: Duration) -> u32 {
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
