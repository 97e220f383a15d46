//! How to compete: the arguments that every candidate takes.

use std::time::Duration;

use clap::Args;
use leaderelection::{
    LeaderCallbacks, LeaderElectionConfig, LeaderElectionConfigBuilder, ObjectStoreBasedLock, unique_identity,
};

/// The timings of an election, and who we are in it.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Election")]
pub(crate) struct Timing {
    /// Who we are; no two candidates may share a name. By default the host's name and a random id
    #[arg(long, value_name = "NAME")]
    pub(crate) identity: Option<String>,
    /// How long the others wait after the last renewal they saw before they take over
    #[arg(long, value_name = "DURATION", default_value = "15s", value_parser = duration)]
    pub(crate) lease: Duration,
    /// How long we lead on one renewal. By default two thirds of the lease
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    renew: Option<Duration>,
    /// The pause between renewals, and the least between a candidate's reads; each costs a request. By
    /// default two fifteenths of the lease
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    retry: Option<Duration>,
    /// How long one request may take. By default a quarter of --renew
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    request_timeout: Option<Duration>,
}

impl Timing {
    /// Our name: the given one, or one that nobody else has. A new one on every call.
    pub(crate) fn identity(&self) -> String {
        self.identity.clone().unwrap_or_else(unique_identity)
    }

    pub(crate) fn renew(&self) -> Duration {
        self.renew.unwrap_or(self.lease.saturating_mul(2) / 3)
    }

    pub(crate) fn retry(&self) -> Duration {
        self.retry.unwrap_or(self.lease.saturating_mul(2) / 15)
    }

    pub(crate) fn request_timeout(&self) -> Duration {
        self.request_timeout.unwrap_or(self.renew() / 4)
    }

    /// A configuration that says what the arguments say, and gives the lease back at the end.
    pub(crate) fn configure(
        &self,
        lock: impl ObjectStoreBasedLock,
        callbacks: LeaderCallbacks,
    ) -> LeaderElectionConfigBuilder {
        LeaderElectionConfig::builder(lock, callbacks)
            .lease_duration(self.lease)
            .renew_deadline(self.renew())
            .retry_period(self.retry())
            .request_timeout(self.request_timeout())
            .release_on_cancel(true)
    }
}

/// Reads a duration such as `15s`.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    humantime::parse_duration(text)
        .map_err(|error| format!("{error}; a duration is a number and a unit, such as 15s or 1m30s or 400ms"))
}
