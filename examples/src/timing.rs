//! The arguments for the election's timings that the examples share.

use std::time::Duration;

use leaderelection::{
    ConfigError, LeaderCallbacks, LeaderElectionConfig, LeaderElectionConfigBuilder, ObjectStoreBasedLock, Timings,
};

/// The timings of an election, with client-go's defaults.
#[derive(Clone, Copy, Debug, clap::Args)]
pub struct Timing {
    /// The time that other candidates wait for a silent leader.
    #[arg(long, default_value = "15s", value_name = "DURATION", value_parser = duration)]
    pub lease: Duration,
    /// The time for which one renewal keeps leadership.
    #[arg(long, default_value = "10s", value_name = "DURATION", value_parser = duration)]
    pub renew: Duration,
    /// The pause between two renewals.
    #[arg(long, default_value = "2s", value_name = "DURATION", value_parser = duration)]
    pub retry: Duration,
}

impl Timing {
    /// Returns the timings.
    ///
    /// # Errors
    ///
    /// If they do not fit each other.
    pub fn timings(&self) -> Result<Timings, ConfigError> {
        Timings::new(self.lease, self.renew, self.retry)
    }

    /// Configures an elector with these timings. The elector releases the lease when it stops.
    ///
    /// # Errors
    ///
    /// If the timings do not fit each other.
    pub fn configure(
        &self,
        lock: impl ObjectStoreBasedLock,
        callbacks: LeaderCallbacks,
    ) -> Result<LeaderElectionConfigBuilder, ConfigError> {
        Ok(LeaderElectionConfig::builder(lock, callbacks).timings(self.timings()?))
    }
}

/// Parses a duration, such as `400ms`.
///
/// # Errors
///
/// If the text is not a duration. The error contains an example.
pub fn duration(text: &str) -> Result<Duration, String> {
    leaderelection::timings::parse_duration(text)
        .map_err(|error| format!("{error}; a duration is a number and a unit, such as 15s or 400ms"))
}
