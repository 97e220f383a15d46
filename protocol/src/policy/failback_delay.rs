//! Hold-down timer with exponential growth: how long a candidate follows a leader of worse rank before it asks for the lease (rule 24).

use std::time::Duration;

use super::Visitor;
use crate::LocalInstant;

/// A leader resets the count of requests after it has led for this many times the longest fail-back delay.
const FORGETS_AFTER: u32 = 2;

/// The durations that decide when a candidate asks for the lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FailbackTimes {
    /// The candidate's lease duration.
    pub lease_duration: Duration,
    /// How often the delay may double.
    pub doublings: u8,
}

impl FailbackTimes {
    /// The fail-back delay after this number of requests.
    #[must_use]
    pub fn after(&self, requests: u8) -> Duration {
        self.lease_duration.saturating_mul(1 << requests.min(self.doublings))
    }

    /// How long a leader leads before it resets the record's count of requests.
    #[must_use]
    pub fn forgets_after(&self) -> Duration {
        self.after(u8::MAX).saturating_mul(FORGETS_AFTER)
    }
}

/// How long a candidate has followed, minus the cost of failed reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FailbackDelay {
    /// The delay counts from this moment.
    Since(LocalInstant),
    /// This much of the delay is over. The rest counts from the next answered read.
    Paused(Duration),
}

impl Default for FailbackDelay {
    fn default() -> Self {
        Self::Paused(Duration::ZERO)
    }
}

impl FailbackDelay {
    /// Takes an answered read. Time before `may_write_at` does not count, because until then others go first.
    pub fn read(&mut self, may_write_at: LocalInstant) {
        if let Self::Paused(advance) = *self {
            *self = Self::Since(may_write_at - advance);
        }
    }

    /// Takes a failed read, which costs one lease of the `whole` delay, and the time until the next answered read. If
    /// each failure restarted the delay, a candidate with one failed read in a hundred would never ask.
    pub fn failed(&mut self, now: LocalInstant, whole: Duration, lease: Duration) {
        let since = match *self {
            Self::Since(since) => now.saturating_since(since).min(whole),
            Self::Paused(advance) => advance,
        };
        *self = Self::Paused(since.saturating_sub(lease));
    }

    /// The moment at which the fail-back delay is over; `None` before the next answered read.
    #[must_use]
    pub fn ends_at(&self, whole: Duration) -> Option<LocalInstant> {
        if let Self::Since(since) = *self { Some(since + whole) } else { None }
    }

    /// Shows the moment to a model checker.
    pub fn visit(&mut self, visitor: &mut impl Visitor) {
        if let Self::Since(since) = self {
            visitor.moment(since);
        }
    }
}
