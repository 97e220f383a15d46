//! The arguments of `run` and `serve` for their part in an election.

use std::time::Duration;

#[cfg(unix)]
use leaderelection::SessionBuilder;
use leaderelection::history::KeepHistory;
use leaderelection::{
    LeaderCallbacks, LeaderElectionConfig, LeaderElectionConfigBuilder as Builder, ObjectStoreBasedLock,
};
use leaderelection_conformance::ProbeFirst;

use super::set;
use crate::args::parts::Parts;
use crate::args::peers::PeerArgs;
use crate::args::timing::{REQUEST_TIMEOUT, Timing, duration};
use crate::exit::Failure;
use crate::lock::CandidateLock;

#[derive(Clone, Debug, clap::Args)]
pub(crate) struct RequireProbe {
    /// Probe the store first, as `leaderelect probe` does, and elect no leader if the probe fails
    #[arg(long)]
    require_probe: bool,
}

impl RequireProbe {
    fn check(&self) -> Option<ProbeFirst> {
        self.require_probe.then(ProbeFirst::new)
    }
}

#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Election")]
pub(crate) struct ElectionArgs {
    #[command(flatten)]
    pub(crate) timing: Timing,
    /// Believe the store about the age of the lease, less this time: a candidate that starts beside the record of a dead
    /// leader leads at once. Two leaders are possible if the store's own clocks disagree by more than this time less
    /// 1s. The least is 1s
    #[arg(long, value_name = "SLACK", value_parser = duration)]
    trust_store_clock: Option<Duration>,
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
    /// Say what the lock is for, such as the name of the service. A candidate with another purpose refuses to lead, so two
    /// deployments notice that they use one lock by accident. A candidate without a purpose refuses nobody
    #[arg(long, value_name = "WORD")]
    purpose: Option<String>,
    /// Keep the last terms, at most 200, in an object beside the lock, for `leaderelect history` and the dashboard: who led,
    /// when, why the term ended, and how the command ended. Each ended term costs one read and one write. Not for Leases
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u16).range(1..=i64::from(KeepHistory::MOST_TERMS)))]
    keep_history: Option<u16>,
    /// The time for which a term is kept at most
    #[arg(long, value_name = "DURATION", value_parser = duration, default_value = "90d", requires = "keep_history")]
    keep_history_for: Duration,
    #[command(flatten)]
    pub(crate) peers: PeerArgs,
}

fn rank() -> clap::builder::RangedI64ValueParser<u8> {
    clap::value_parser!(u8).range(..=i64::from(LeaderElectionConfig::WORST_RANK))
}

impl ElectionArgs {
    fn history(&self) -> Option<KeepHistory> {
        self.keep_history.map(|terms| KeepHistory::terms(terms).for_at_most(self.keep_history_for))
    }

    /// Fails if the lock has no room for what is to be kept.
    pub(crate) fn must_fit(&self, parts: &Parts, locks: &CandidateLock) -> Result<(), Failure> {
        let lease = parts.urls(locks).find(|url| url.is_lease());
        match lease.filter(|_| self.keep_history.is_some()) {
            Some(lease) => Err(Failure::usage(format!(
                "--keep-history: {lease} is a Lease of Kubernetes, beside which no history fits; leave the option out"
            ))),
            None => Ok(()),
        }
    }

    /// The configuration of an election for one lock.
    pub(crate) fn config(
        &self,
        lock: impl ObjectStoreBasedLock,
        callbacks: LeaderCallbacks,
        probe: &RequireProbe,
    ) -> Result<LeaderElectionConfig, Failure> {
        let config = LeaderElectionConfig::builder(lock, callbacks)
            .timings(self.timing.timings()?)
            .request_timeout_setting(REQUEST_TIMEOUT)
            .rank(self.rank.unwrap_or_default())
            .take_back(self.take_back);
        let config = set(config, probe.check(), Builder::store_check);
        let config = set(config, self.trust_store_clock, Builder::trust_store_clock);
        let config = set(config, self.follower_interval, Builder::follower_interval);
        let config = set(config, self.purpose.as_ref(), Builder::purpose);
        let config = set(config, self.history(), Builder::keep_history);
        Ok(self.peers.advertise(config).build()?)
    }

    /// A session for several locks, with what it has in common with a configuration.
    #[cfg(unix)]
    pub(crate) fn of_session(&self, session: SessionBuilder, probe: &RequireProbe) -> SessionBuilder {
        let session = session.request_timeout_setting(REQUEST_TIMEOUT);
        let session = set(session, probe.check(), SessionBuilder::store_check);
        let session = set(session, self.purpose.as_ref(), SessionBuilder::purpose);
        set(session, self.history(), SessionBuilder::keep_history)
    }
}
