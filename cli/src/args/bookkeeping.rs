//! `--purpose` and `--keep-history`, arguments of `run` and `serve`: what a candidate writes down beside its lease.

use std::time::Duration;

use leaderelection::LeaderElectionConfigBuilder;
#[cfg(unix)]
use leaderelection::SessionBuilder;
use leaderelection::history::KeepHistory;

use crate::args::parts::Parts;
use crate::args::timing::duration;
use crate::exit::Failure;
use crate::lock::CandidateLock;

#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Election")]
pub(crate) struct Bookkeeping {
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
}

impl Bookkeeping {
    fn history(&self) -> Option<KeepHistory> {
        self.keep_history.map(|terms| KeepHistory::terms(terms).for_at_most(self.keep_history_for))
    }

    /// Fails if the lock has no room for what is to be kept.
    pub(crate) fn must_fit(&self, parts: &Parts, locks: &CandidateLock) -> Result<(), Failure> {
        let lease = parts.urls(locks).map(ToString::to_string).find(|url| url.starts_with("lease:"));
        match lease.filter(|_| self.keep_history.is_some()) {
            Some(lease) => Err(Failure::usage(format!(
                "--keep-history: {lease} is a Lease of Kubernetes, beside which no history fits; leave the option out"
            ))),
            None => Ok(()),
        }
    }

    pub(crate) fn apply(&self, mut config: LeaderElectionConfigBuilder) -> LeaderElectionConfigBuilder {
        if let Some(purpose) = &self.purpose {
            config = config.purpose(purpose);
        }
        if let Some(keep) = self.history() {
            config = config.keep_history(keep);
        }
        config
    }

    /// Does the same for a session.
    #[cfg(unix)]
    pub(crate) fn apply_to_session(&self, mut session: SessionBuilder) -> SessionBuilder {
        if let Some(purpose) = &self.purpose {
            session = session.purpose(purpose);
        }
        if let Some(keep) = self.history() {
            session = session.keep_history(keep);
        }
        session
    }
}
