//! Jittered polling, as in client-go: how often a candidate polls the store, and the random part of each pause.

use std::time::Duration;

/// client-go's jitter factor: a candidate waits one retry period plus up to this many more.
pub const JITTER_FACTOR: f64 = 1.2;

/// Takeovers are spread over `retry_period / SPREAD`.
const SPREAD: u32 = 20;

/// The durations that decide how often a candidate polls.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Pace {
    /// How long others wait after they saw the record change, before they take over.
    pub lease_duration: Duration,
    /// The pause between renewals, and the shortest pause between a candidate's reads.
    pub retry_period: Duration,
    /// The shortest pause between a candidate's reads while the leader renews its lease (rule 20).
    pub follower_interval: Duration,
}

impl Pace {
    /// client-go's pause between a candidate's attempts: one retry period plus up to 1.2 more.
    #[must_use]
    pub fn poll_pause(&self, jitter: Jitter) -> Duration {
        self.retry_period + self.poll_jitter(jitter)
    }

    /// The random part of the pause between two polls.
    #[must_use]
    pub fn poll_jitter(&self, jitter: Jitter) -> Duration {
        jitter.of(self.retry_period.mul_f64(JITTER_FACTOR))
    }

    /// The longest random delay of a takeover. Delays keep candidates that saw the same change from colliding.
    #[must_use]
    pub fn longest_spread(&self) -> Duration {
        self.retry_period / SPREAD
    }

    /// How long a candidate lets better ranks go first once a lease is free (rule 23).
    #[must_use]
    pub fn rank_wait(&self, rank: u8) -> Duration {
        self.retry_period.saturating_mul(rank.into())
    }

    /// How long a leader may send no message before it counts as silent (rule 16). `lease` and `retry_period` are the
    /// leader's.
    #[must_use]
    pub fn patience(lease: Duration, retry_period: Duration) -> Duration {
        lease.min(retry_period.saturating_mul(2))
    }
}

/// A random fraction of a pause.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Jitter(u32);

impl Jitter {
    /// Nearly the whole pause, for pauses that need not differ.
    pub const WHOLE: Self = Self(u32::MAX);

    /// Creates the fraction `numerator / 2^32`, from 0 to just under 1.
    #[must_use]
    pub const fn new(numerator: u32) -> Self {
        Self(numerator)
    }

    /// Returns this fraction of `duration`.
    #[must_use]
    pub fn of(self, duration: Duration) -> Duration {
        let nanos = (duration.as_nanos() * u128::from(self.0)) >> 32;
        Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }
}
