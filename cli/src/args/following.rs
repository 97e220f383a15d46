//! `--rank`, `--take-back` and `--follower-interval`, arguments of `run` and `serve`: the conduct of a candidate that does not
//! lead.

use std::time::Duration;

use leaderelection::{LeaderElectionConfig, LeaderElectionConfigBuilder};

use crate::args::timing::duration;

#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Election")]
pub(crate) struct Following {
    /// Wait this many retry periods longer than others for a free lease, from 0, the best and the default, to 99, so that
    /// another candidate leads if there is one. Ranks that differ by 3 or more decide for certain
    #[arg(long, value_name = "N", value_parser = rank())]
    rank: Option<u8>,
    /// Ask a leader of a worse rank to hand over, after one lease without a failure. Each request doubles this time for the
    /// next one, up to 64 leases, until a leader has led for 128
    #[arg(long)]
    take_back: bool,
    /// The shortest pause between reads while another candidate renews the lease. The default is --retry. A longer pause
    /// costs less, and delays a takeover by as much
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    follower_interval: Option<Duration>,
}

fn rank() -> clap::builder::RangedI64ValueParser<u8> {
    clap::value_parser!(u8).range(..=i64::from(LeaderElectionConfig::WORST_RANK))
}

impl Following {
    pub(crate) fn apply(&self, config: LeaderElectionConfigBuilder) -> LeaderElectionConfigBuilder {
        let config = config.rank(self.rank.unwrap_or_default()).take_back(self.take_back);
        match self.follower_interval {
            Some(interval) => config.follower_interval(interval),
            None => config,
        }
    }
}
