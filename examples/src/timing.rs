//! The flags for the election's timing that the examples share.

use std::time::Duration;

use leaderelection::{LeaderCallbacks, LeaderElectionConfig, LeaderElectionConfigBuilder, ObjectStoreBasedLock};

/// The timings of an election; client-go's unless told otherwise.
#[derive(Clone, Copy, Debug, clap::Args)]
pub struct Timing {
    /// How long the others leave a silent leader its lease.
    #[arg(long, default_value = "15s", value_name = "DURATION", value_parser = duration)]
    pub lease: Duration,
    /// How long a leader leads on one renewal.
    #[arg(long, default_value = "10s", value_name = "DURATION", value_parser = duration)]
    pub renew: Duration,
    /// The pause between two renewals.
    #[arg(long, default_value = "2s", value_name = "DURATION", value_parser = duration)]
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

/// Reads a duration, such as `400ms`.
///
/// # Errors
///
/// If it is none. Shows a right one.
pub fn duration(text: &str) -> Result<Duration, String> {
    humantime::parse_duration(text)
        .map_err(|error| format!("{error}; a duration is a number and a unit, such as 15s or 400ms"))
}
