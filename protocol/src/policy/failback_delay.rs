//! Hold-down timer with exponential growth: how long a candidate follows a leader of worse rank before it asks for the lease (rule 24).

use std::time::Duration;

use super::Visitor;
use crate::LocalInstant;

/// After leading for this many of the longest fail-back delays, a leader forgets the requests.
const FORGETS_AFTER: u32 = 2;

/// The times of a candidate that asks for the lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FailbackTimes {
    /// The candidate's lease duration.
    pub lease_duration: Duration,
    /// How often the delay may double.
    pub doublings: u8,
}

impl FailbackTimes {
    /// How long a candidate follows before it asks, after this number of requests.
    #[must_use]
    pub fn after(&self, requests: u8) -> Duration {
        self.lease_duration.saturating_mul(1 << requests.min(self.doublings))
    }

    /// How long a leader leads before it forgets the requests that the record counts.
    #[must_use]
    pub fn forgets_after(&self) -> Duration {
        self.after(u8::MAX).saturating_mul(FORGETS_AFTER)
    }
}

/// How long a candidate has followed, less what its failures have cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FailbackDelay {
    /// The time counts from this moment.
    Since(LocalInstant),
    /// The time counts from the next answered read, to which this much is added.
    Paused(Duration),
}

impl Default for FailbackDelay {
    fn default() -> Self {
        Self::Paused(Duration::ZERO)
    }
}

impl FailbackDelay {
    /// Takes a read that was answered. The time during which the candidate writes nothing, because others go first, does not count.
    pub fn read(&mut self, may_write_at: LocalInstant) {
        if let Self::Paused(advance) = *self {
            *self = Self::Since(may_write_at - advance);
        }
    }

    /// Takes a read that has failed. It costs one lease of the `whole` delay, and the time up to the next read that is answered. If it
    /// cost all of the time, and one in a hundred reads failed, the candidate would never ask.
    pub fn failed(&mut self, now: LocalInstant, whole: Duration, lease: Duration) {
        let since = match *self {
            Self::Since(since) => now.saturating_since(since).min(whole),
            Self::Paused(advance) => advance,
        };
        *self = Self::Paused(since.saturating_sub(lease));
    }

    /// The moment at which the fail-back delay is over; `None` before the next read that is answered.
    #[must_use]
    pub fn ends_at(&self, whole: Duration) -> Option<LocalInstant> {
        if let Self::Since(since) = *self { Some(since + whole) } else { None }
    }

    /// Shows the moment to an explorer.
    pub fn visit(&mut self, visitor: &mut impl Visitor) {
        if let Self::Since(since) = self {
            visitor.moment(since);
        }
    }
}
