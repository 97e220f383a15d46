//! `--trust-store-clock`, an argument of `run` and `serve`.

use std::time::Duration;

use leaderelection::LeaderElectionConfigBuilder;

use crate::args::timing::duration;

#[derive(Clone, Debug, clap::Args)]
pub(crate) struct StoreClock {
    /// Believe the store about the age of the lease, less this time: a candidate that starts beside the record of a dead
    /// leader leads at once. Two leaders are possible if the store's own clocks disagree by more than this time less
    /// 1s. The least is 1s
    #[arg(long, value_name = "SLACK", value_parser = duration, help_heading = "Election")]
    trust_store_clock: Option<Duration>,
}

impl StoreClock {
    /// Trusts the store's clock, if the arguments contain the option.
    pub(crate) fn apply(&self, config: LeaderElectionConfigBuilder) -> LeaderElectionConfigBuilder {
        match self.trust_store_clock {
            Some(slack) => config.trust_store_clock(slack),
            None => config,
        }
    }
}
