//! The settings of a member.

use std::time::Duration;

use crate::election;

/// The largest weight of a member.
pub const MAX_WEIGHT: u32 = 64;

/// The settings of one member.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct SessionConfig {
    /// The settings of the member's own session: its identity, lease, deadline and retry period.
    pub election: election::ElectionConfig,
    /// The share of the locks that this member takes, compared with the weights of other members: from 1 to
    /// [`MAX_WEIGHT`].
    pub weight: u32,
    /// `true` if leaders hand over locks to the member that is first in rank (rule S9).
    pub balance: bool,
    /// How many locks are handed over per retry period, at most; `None` for 1/32 of the locks, from 8 to 128.
    pub max_handoffs: Option<usize>,
    /// The longest pause between two scans, and between two searches for new sessions.
    pub scan_interval: Duration,
    /// The number of reads that cost as much as one listing.
    pub reads_per_listing: usize,
    /// How many requests about locks and other sessions may be in flight; `None` for 1/32 of the locks, from 16 to 128.
    pub max_in_flight: Option<usize>,
    /// The time after which the object of an ended session is deleted; `None` if the object is kept.
    pub delete_after: Option<Duration>,
}

impl SessionConfig {
    /// The settings of a member whose own session follows `election`. The session is always released at its end.
    #[must_use]
    pub fn new(mut election: election::ElectionConfig) -> Self {
        // All work has ended by then. Without the release, thousands of locks would have to wait until the lease expires.
        election.release_on_cancel = true;
        let delete_after = Some(election.lease_duration * 10);
        Self {
            election,
            weight: 1,
            balance: false,
            max_handoffs: None,
            scan_interval: Duration::from_secs(30),
            // Amazon's list price of a listing, divided by that of a read.
            reads_per_listing: 13,
            max_in_flight: None,
            delete_after,
        }
    }

    pub(super) fn max_handoffs(&self, locks: usize) -> usize {
        self.max_handoffs.unwrap_or((locks / 32).clamp(8, 128))
    }

    pub(super) fn max_in_flight(&self, locks: usize) -> usize {
        self.max_in_flight.unwrap_or((locks / 32).clamp(16, 128))
    }
}
