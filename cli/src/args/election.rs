//! The arguments of `run` and `serve` for their part in an election.

use std::time::Duration;

#[cfg(unix)]
use leaderelection::SessionBuilder;
use leaderelection::history::Retention;
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
    /// Lead only if a probe of the store passes
    ///
    /// Runs the checks of `leaderelect probe` before the first election, and refuses to lead if they fail.
    #[arg(long, hide_short_help = true)]
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
    /// Trust the store's clock within this slack
    ///
    /// The store's clock gives the lease's age, and the slack (at least 1s) is subtracted from it. If the lease has ended even by
    /// this reduced age, a candidate takes it over at its first read. If the clocks of the store's servers differ from each other by
    /// more than the slack minus 1s, two leaders are possible.
    #[arg(long, value_name = "SLACK", value_parser = duration, hide_short_help = true)]
    trust_store_clock: Option<Duration>,
    /// Set the rank, 0 (first) to 99
    ///
    /// A candidate of rank N waits N retry periods before it takes a free lease. The default is 0. A candidate
    /// reliably wins against one whose number is higher by 3 or more. With --follower-interval, the
    /// difference must be larger.
    #[arg(long, value_name = "N", value_parser = rank())]
    rank: Option<u8>,
    /// Ask a leader of a worse rank to hand over
    ///
    /// The candidate asks after it has followed without a read error for one lease duration. Each request doubles this delay for
    /// the next one, up to 64 lease durations. Once a leader has led for 128 lease durations, the delay
    /// is one lease duration again.
    #[arg(long, hide_short_help = true)]
    failback: bool,
    /// Poll this often while another one leads
    ///
    /// The default is --retry-period. A longer interval costs less and delays a takeover by as much.
    #[arg(long, value_name = "DURATION", value_parser = duration, hide_short_help = true)]
    follower_interval: Option<Duration>,
    /// Name the service that owns this lock
    ///
    /// A candidate refuses to lead if the lock belongs to another service, so two deployments notice that they share a lock by
    /// accident. A candidate without a service accepts any. Unset by default.
    #[arg(long, value_name = "NAME", hide_short_help = true)]
    service: Option<String>,
    /// Record this many past terms
    ///
    /// Keeps the last terms, at most 200, in an object beside the lock, for `leaderelect history` and the dashboard: who led,
    /// when, why the term ended, and how the command ended. Each term costs one read and one write. Not available for
    /// Kubernetes Leases.
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u16).range(1..=i64::from(Retention::MOST_TERMS)))]
    keep_history: Option<u16>,
    /// Forget terms that are older than this
    #[arg(long, value_name = "DURATION", value_parser = duration, default_value = "90d", requires = "keep_history")]
    #[arg(hide_short_help = true)]
    keep_history_for: Duration,
    #[command(flatten)]
    pub(crate) peers: PeerArgs,
}

fn rank() -> clap::builder::RangedI64ValueParser<u8> {
    clap::value_parser!(u8).range(..=i64::from(LeaderElectionConfig::WORST_RANK))
}

impl ElectionArgs {
    fn history(&self) -> Option<Retention> {
        self.keep_history.map(|terms| Retention::terms(terms).for_at_most(self.keep_history_for))
    }

    /// Fails if the lock has no room for what is to be kept.
    pub(crate) fn must_fit(&self, parts: &Parts, locks: &CandidateLock) -> Result<(), Failure> {
        let lease = parts.urls(locks).find(|url| url.is_lease());
        match lease.filter(|_| self.keep_history.is_some()) {
            Some(lease) => Err(Failure::usage(format!(
                "--keep-history: not supported by {lease}, a Kubernetes Lease; remove the option"
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
            .failback(self.failback);
        let config = set(config, probe.check(), Builder::store_check);
        let config = set(config, self.trust_store_clock, Builder::trust_store_clock);
        let config = set(config, self.follower_interval, Builder::follower_interval);
        let config = set(config, self.service.as_ref(), Builder::service);
        let config = set(config, self.history(), Builder::keep_history);
        Ok(self.peers.advertise(config).build()?)
    }

    /// A session for several locks, with what it has in common with a configuration.
    #[cfg(unix)]
    pub(crate) fn of_session(&self, session: SessionBuilder, probe: &RequireProbe) -> SessionBuilder {
        let session = session.request_timeout_setting(REQUEST_TIMEOUT);
        let session = set(session, probe.check(), SessionBuilder::store_check);
        let session = set(session, self.service.as_ref(), SessionBuilder::service);
        set(session, self.history(), SessionBuilder::keep_history)
    }
}
