//! The settings of a candidate that should lead before or after others.

use super::{LeaderElectionConfig, LeaderElectionConfigBuilder};

impl LeaderElectionConfig {
    /// The worst [rank](LeaderElectionConfigBuilder::rank) of a candidate.
    pub const WORST_RANK: u8 = 99;
}

impl LeaderElectionConfigBuilder {
    /// Sets the rank of this candidate. The default is 0, the best; 99 is the worst.
    ///
    /// A candidate of rank `n` waits `n` retry periods longer than others before it takes a free or expired lease, so that
    /// the machine or the zone that should lead does. Candidates see the end of a term at different moments, up to 2.2 retry
    /// periods apart. So the better of two candidates goes first for certain if their ranks differ by three or more and they
    /// have one retry period R. With a [`follower_interval`](Self::follower_interval) of F, the ranks have to differ by
    /// more than F / R + 1.25. If only candidates of worse ranks are left, each term without a leader lasts that much longer.
    ///
    /// A candidate that a leader or an operator has named as the next leader waits for no rank. Sessions have no ranks.
    pub fn rank(mut self, rank: u8) -> Self {
        self.common.rules.rank = rank;
        self
    }

    /// Decides whether this candidate asks a leader of a worse [rank](Self::rank) to hand over. The default is `false`.
    ///
    /// The candidate asks once it has followed for one lease duration; each failed read adds another one. Each request doubles this time
    /// for the next one, up to 64 lease durations. Once a leader has led for 128, it is one again. The lock counts the requests, so a
    /// candidate that keeps restarting does not make leadership flap. A candidate for a job does not ask.
    ///
    /// A transfer to a candidate of a worse rank lasts only until such a request. To keep the lease there, stop this candidate.
    pub fn failback(mut self, failback: bool) -> Self {
        self.common.rules.failback = failback;
        self
    }

    /// Sets the number of times that the time before a request for the lease doubles at most, for tests. The default is 6.
    #[cfg(feature = "test-util")]
    pub fn failback_doublings(mut self, failback_doublings: u8) -> Self {
        self.common.rules.failback_doublings = failback_doublings;
        self
    }
}
