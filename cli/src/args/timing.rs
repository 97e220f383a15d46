//! The arguments of every candidate: its timings and its identity.

use std::time::Duration;

use clap::Args;
use leaderelection::lock::TimeLimit;
use leaderelection::{ConfigError, Timings, unique_identity};

/// The timings of an election, and the identity of this candidate.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Election")]
pub(crate) struct Timing {
    /// Set the unique name of this candidate
    ///
    /// No two candidates may have the same identity. The default is the host name and a random ID.
    #[arg(long, value_name = "NAME")]
    pub(crate) identity: Option<String>,
    /// Let others lead after this
    ///
    /// Other candidates take over if they have seen no renewal of this leader for this long.
    #[arg(long, value_name = "DURATION", default_value = "15s", value_parser = duration)]
    pub(crate) lease_duration: Duration,
    /// Stop leading if no renewal succeeds in time
    ///
    /// A leader stops if its last successful renewal is older than this. The default is two thirds of --lease-duration.
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    renew_deadline: Option<Duration>,
    /// Renew, and poll, this often
    ///
    /// A leader renews once per retry period. A follower reads the lock every 1 to 2.2 retry periods. Each costs one request.
    /// The default is two fifteenths of --lease-duration.
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    retry_period: Option<Duration>,
    /// Limit the time of a request
    ///
    /// The default is a quarter of --renew-deadline.
    #[arg(long, value_name = "DURATION", value_parser = duration, hide_short_help = true)]
    request_timeout: Option<Duration>,
}

impl Timing {
    /// The given identity, or a unique one. Every call returns another unique identity.
    pub(crate) fn identity(&self) -> String {
        self.identity.clone().unwrap_or_else(unique_identity)
    }

    /// Returns the durations in the arguments. The defaults of the others follow from the lease.
    pub(crate) fn timings(&self) -> Result<Timings, ConfigError> {
        let lease = self.lease_duration;
        let renew = self.renew_deadline.unwrap_or(lease.saturating_mul(2) / 3);
        let retry = self.retry_period.unwrap_or(lease.saturating_mul(2) / 15);
        let timings = Timings::new(lease, renew, retry)?;
        self.request_timeout.map_or(Ok(timings), |timeout| timings.with_request_timeout(timeout))
    }
}

/// The name of the request timeout in errors.
pub(crate) const REQUEST_TIMEOUT: &str = "--request-timeout";

/// The limit that `--request-timeout` sets.
pub(crate) fn request_limit(request_timeout: Duration) -> TimeLimit {
    TimeLimit::new(request_timeout).of_setting(REQUEST_TIMEOUT)
}

/// The shortest poll interval. Each poll costs a request.
const SHORTEST_PAUSE: Duration = Duration::from_millis(10);

/// Parses a poll interval.
pub(crate) fn pause(text: &str) -> Result<Duration, String> {
    let least = humantime::format_duration(SHORTEST_PAUSE);
    match duration(text)? {
        pause if pause < SHORTEST_PAUSE => {
            Err(format!("too short: each poll costs a request, so the minimum is {least}"))
        }
        pause => Ok(pause),
    }
}

/// Parses a duration such as `15s`.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    leaderelection::timings::parse_duration(text)
        .map_err(|_| "expected a number and a unit, such as 15s, 1m30s or 400ms".to_owned())
}
