//! The times that count from the sending of a write (rules 4 and 22).

use std::time::Duration;

use super::rules::Rules;

/// The times that count from the sending of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Limits {
    /// The time for which others leave the lease alone.
    pub(super) lease: Duration,
    /// The time for which the write gives leadership.
    pub(super) deadline: Duration,
}

impl Limits {
    /// The shorter of the times of both. The result keeps a margin if both do.
    pub(super) fn min(self, other: Self) -> Self {
        Self { lease: self.lease.min(other.lease), deadline: self.deadline.min(other.deadline) }
    }

    /// The end of a lease that is kept clear of the leader's work (rule 8).
    pub(super) fn stop_margin(self) -> Duration {
        self.lease.saturating_sub(self.deadline) / 8
    }
}

impl From<&Rules> for Limits {
    fn from(rules: &Rules) -> Self {
        Self { lease: rules.lease_duration, deadline: rules.renew_deadline }
    }
}
