//! The flags for the election's timing that the examples share.

use std::time::Duration;

use leaderelection::{LeaderCallbacks, LeaderElectionConfig, LeaderElectionConfigBuilder, ObjectStoreBasedLock};

/// The timings of an election; client-go's unless told otherwise.
#[derive(Clone, Copy, Debug, clap::Args)]
pub struct Timing {
    /// How long the others leave a lease alone that is not renewed.
    #[arg(long, default_value = "15s", value_name = "DURATION", value_parser = humantime::parse_duration)]
    pub lease: Duration,
    /// How long a leader leads on one renewal.
    #[arg(long, default_value = "10s", value_name = "DURATION", value_parser = humantime::parse_duration)]
    pub renew: Duration,
    /// The pause between renewals, and between a candidate's looks.
    #[arg(long, default_value = "2s", value_name = "DURATION", value_parser = humantime::parse_duration)]
    pub retry: Duration,
}

impl Timing {
    /// A configuration with these timings that releases the lease when it stops.
    pub fn configure(
        &self,
        lock: impl ObjectStoreBasedLock,
        callbacks: LeaderCallbacks,
    ) -> LeaderElectionConfigBuilder {
        LeaderElectionConfig::builder(lock, callbacks)
            .lease_duration(self.lease)
            .renew_deadline(self.renew)
            .retry_period(self.retry)
            .release_on_cancel(true)
    }
}
