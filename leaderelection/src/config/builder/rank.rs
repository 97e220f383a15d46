//! The settings that prefer some candidates to others.

use super::{LeaderElectionConfig, LeaderElectionConfigBuilder};

impl LeaderElectionConfig {
    /// The worst [rank](LeaderElectionConfigBuilder::rank) of a candidate.
    pub const WORST_RANK: u8 = 99;
}

impl LeaderElectionConfigBuilder {
    /// Sets the rank of this candidate. The default is 0, the best; 99 is the worst.
    ///
    /// A candidate of rank `n` waits `n` retry periods longer before it takes a free or expired lease, so that a
    /// preferred machine or zone leads. Candidates see the end of a term up to 2.2 retry periods apart. So the better
    /// of two candidates always goes first if their ranks differ by three or more and their retry periods are equal.
    /// With a [`follower_interval`](Self::follower_interval) of F and a retry period of R, the ranks have to differ by
    /// more than F / R + 1.25. If only candidates of rank `n` are left, a failover takes `n` retry periods longer.
    ///
    /// The rank does not delay a candidate that was named as the next leader (rule 14). Sessions have no ranks.
    pub fn rank(mut self, rank: u8) -> Self {
        self.common.rules.rank = rank;
        self
    }

    /// Decides whether this candidate asks a leader of a worse [rank](Self::rank) to hand over. The default is `false`.
    ///
    /// The candidate asks once it has followed for the fail-back delay. The delay is one lease duration, and each
    /// failed read adds another one. Each request doubles the delay of the next request, up to 64 lease durations. A
    /// leader that has led for 128 lease durations resets the delay to one. The record counts the requests, so a
    /// candidate that keeps restarting does not make leadership flap. A candidate for a job does not ask.
    ///
    /// A transfer to a candidate of a worse rank lasts only until this candidate asks for the lease.
    pub fn failback(mut self, failback: bool) -> Self {
        self.common.rules.failback = failback;
        self
    }

    /// Sets how often the fail-back delay may double, for tests. The default is 6.
    #[cfg(feature = "test-util")]
    pub fn failback_doublings(mut self, failback_doublings: u8) -> Self {
        self.common.rules.failback_doublings = failback_doublings;
        self
    }
}
