//! The arguments of every candidate: its timings and its identity.

use std::time::Duration;

use clap::Args;
use leaderelection::lock::TimeLimit;
use leaderelection::{ConfigError, Timings, unique_identity};

/// The timings of an election, and the identity of this candidate.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Election")]
pub(crate) struct Timing {
    /// The identity; no two candidates may have the same. The default is the host's name and a random id
    #[arg(long, value_name = "NAME")]
    pub(crate) identity: Option<String>,
    /// The time that other candidates wait after the last renewal they saw before they take over
    #[arg(long, value_name = "DURATION", default_value = "15s", value_parser = duration)]
    pub(crate) lease: Duration,
    /// The time for which one renewal keeps leadership. The default is two thirds of the lease
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    renew: Option<Duration>,
    /// The pause between renewals, and the shortest pause between a candidate's reads; each costs a request.
    /// The default is two fifteenths of the lease
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    retry: Option<Duration>,
    /// The longest time for one request. The default is a quarter of --renew
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    request_timeout: Option<Duration>,
}

impl Timing {
    /// The given identity, or a unique one. Every call returns another unique identity.
    pub(crate) fn identity(&self) -> String {
        self.identity.clone().unwrap_or_else(unique_identity)
    }

    /// Returns the durations in the arguments. The defaults of the others follow from the lease.
    pub(crate) fn timings(&self) -> Result<Timings, ConfigError> {
        let renew = self.renew.unwrap_or(self.lease.saturating_mul(2) / 3);
        let retry = self.retry.unwrap_or(self.lease.saturating_mul(2) / 15);
        let timings = Timings::new(self.lease, renew, retry)?;
        self.request_timeout.map_or(Ok(timings), |timeout| timings.with_request_timeout(timeout))
    }
}

/// The name of the request timeout in errors.
pub(crate) const REQUEST_TIMEOUT: &str = "--request-timeout";

/// The limit that `--request-timeout` sets.
pub(crate) fn request_limit(request_timeout: Duration) -> TimeLimit {
    TimeLimit::new(request_timeout).of_setting(REQUEST_TIMEOUT)
}

/// The shortest pause between two looks at a lock. Each look is a request.
const SHORTEST_PAUSE: Duration = Duration::from_millis(10);

/// Parses the pause between two looks at a lock.
pub(crate) fn pause(text: &str) -> Result<Duration, String> {
    let least = humantime::format_duration(SHORTEST_PAUSE);
    match duration(text)? {
        pause if pause < SHORTEST_PAUSE => Err(format!("the pause must be at least {least}: each look is a request")),
        pause => Ok(pause),
    }
}

/// Parses a duration such as `15s`.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    leaderelection::timings::parse_duration(text)
        .map_err(|error| format!("{error}; a duration is a number and a unit, such as 15s or 1m30s or 400ms"))
}
