//! The durations of an election, and proposals for them.

pub(crate) mod config_error;
#[cfg(feature = "clap")]
mod flags;
pub(crate) mod human;
mod latencies;
mod proposal;

use std::time::Duration;

use serde::{Deserialize, Serialize};

pub use leaderelection_protocol::policy::JITTER_FACTOR;

pub use crate::timings::config_error::ConfigError;
pub use crate::timings::latencies::Latencies;
pub use crate::timings::proposal::{Goal, NoProposal, Proposal, StoreLimits};
pub use crate::util::duration::{DurationError, parse_duration};

/// The longest lease that a lock accepts by default.
pub(crate) const LONGEST_LEASE: Duration = Duration::from_secs(24 * 60 * 60);

/// The smallest accepted difference between lease duration and renew deadline. Work that does not stop is dropped in
/// the last eighth of that difference (rule 8), so the eighth must last some time, here 1 ms.
const LEAST_MARGIN: Duration = Duration::from_millis(8);

/// The durations of an election, checked against each other.
///
/// The default is client-go's: 15 s, 10 s and 2 s.
///
/// ```
/// use std::time::Duration;
/// use leaderelection::Timings;
///
/// let timings = Timings::new(Duration::from_secs(30), Duration::from_secs(20), Duration::from_secs(4))?;
/// assert_eq!(timings.request_timeout(), Duration::from_secs(5));
///
/// let read: Timings = serde_json::from_str(r#"{ "lease_duration": "1m", "request_timeout": "500ms" }"#).unwrap();
/// assert_eq!((read.lease_duration(), read.renew_deadline()), (Duration::from_secs(60), Duration::from_secs(10)));
/// # Ok::<(), leaderelection::ConfigError>(())
/// ```
///
/// In a configuration file, write each duration as a number and a unit. A field that is left out has its default. An
/// unknown field is an error.
///
/// With the feature `clap`, the timings are also command-line options, with the names that client-go's programs use,
/// and `--leader-elect-request-timeout`:
///
/// ```
/// # #[cfg(feature = "clap")] {
/// use std::time::Duration;
///
/// use clap::Parser;
/// use leaderelection::Timings;
///
/// #[derive(Parser)]
/// struct Args {
///     #[command(flatten)]
///     timings: Timings,
/// }
///
/// let args = Args::parse_from(["program", "--leader-elect-lease-duration=30s", "--leader-elect-renew-deadline=20s"]);
/// assert_eq!(args.timings.lease_duration(), Duration::from_secs(30));
/// assert_eq!(args.timings.retry_period(), Duration::from_secs(2));
///
/// let Err(error) = Args::try_parse_from(["program", "--leader-elect-lease-duration=5s"]) else { panic!("they do not fit") };
/// let message = "--leader-elect-lease-duration (5s) must be greater than --leader-elect-renew-deadline (10s)";
/// assert!(error.to_string().contains(message), "{error}");
/// # }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "human::Written", into = "human::Written")]
pub struct Timings {
    lease_duration: Duration,
    renew_deadline: Duration,
    retry_period: Duration,
    request_timeout: Duration,
}

impl Timings {
    /// Creates timings with a request timeout of a quarter of the renew deadline.
    ///
    /// # Errors
    ///
    /// The error names the first invalid duration, its value, and the accepted values.
    pub fn new(
        lease_duration: Duration,
        renew_deadline: Duration,
        retry_period: Duration,
    ) -> Result<Self, ConfigError> {
        Unchecked { lease_duration, renew_deadline, retry_period, request_timeout: None }.check()
    }

    /// Returns these timings with another request timeout.
    ///
    /// # Errors
    ///
    /// If the request timeout is zero, or not less than half of the renew deadline.
    pub fn with_request_timeout(self, request_timeout: Duration) -> Result<Self, ConfigError> {
        Unchecked { request_timeout: Some(request_timeout), ..self.into() }.check()
    }

    /// How long other candidates wait after the last observed renewal before they take the lease.
    #[must_use]
    pub fn lease_duration(&self) -> Duration {
        self.lease_duration
    }

    /// How long one renewal keeps leadership, counted from before the renewal was sent.
    #[must_use]
    pub fn renew_deadline(&self) -> Duration {
        self.renew_deadline
    }

    /// The pause between a leader's renewals, and the shortest pause between a candidate's reads.
    #[must_use]
    pub fn retry_period(&self) -> Duration {
        self.retry_period
    }

    /// How long to wait for the answer to a request, before its outcome counts as unknown.
    #[must_use]
    pub fn request_timeout(&self) -> Duration {
        self.request_timeout
    }

    /// How long a release is tried: enough for a read, a write, and each of them once more.
    pub(crate) fn release_patience(&self) -> Duration {
        self.request_timeout.saturating_mul(4)
    }

    /// Checks the timings against the longest lease that the lock accepts. Returns the checked follower interval, which
    /// is the retry period if `follower` is `None`.
    pub(crate) fn check_for(&self, longest: Duration, follower: Option<Duration>) -> Result<Duration, ConfigError> {
        let lease_duration = self.lease_duration;
        if lease_duration > longest {
            let spelled = |duration| humantime::format_duration(duration).to_string();
            let longest = if longest == LONGEST_LEASE { "24h".to_owned() } else { spelled(longest) };
            let problem = format!("({}) must be at most {longest}, the limit of this lock", spelled(lease_duration));
            return Err(ConfigError::new("lease_duration", problem));
        }
        self.check_follower_interval(follower)
    }

    fn check_follower_interval(&self, wanted: Option<Duration>) -> Result<Duration, ConfigError> {
        const FIELD: &str = "follower_interval";

        let Self { lease_duration, retry_period, .. } = *self;
        let Some(interval) = wanted else { return Ok(retry_period) };
        if interval < retry_period {
            let problem = format!("({interval:?}) must not be less than retry_period ({retry_period:?})");
            return Err(ConfigError::new(FIELD, problem).beside(&["retry_period"]));
        }
        let longest = interval.checked_add(retry_period.mul_f64(JITTER_FACTOR));
        if longest.is_none_or(|longest| longest >= lease_duration) {
            let problem = format!(
                "({interval:?}) plus {JITTER_FACTOR} times retry_period ({retry_period:?}) must be less than \
                 lease_duration ({lease_duration:?}), so that a candidate sees the leader's renewals in time"
            );
            return Err(ConfigError::new(FIELD, problem).beside(&["retry_period", "lease_duration"]));
        }
        Ok(interval)
    }

    /// Returns `true` if a single slow renewal ends a term, because there is no time for another.
    pub(crate) fn allow_a_single_try(&self) -> bool {
        self.retry_period.saturating_add(self.request_timeout) >= self.renew_deadline
    }
}

impl Default for Timings {
    fn default() -> Self {
        let Unchecked { lease_duration, renew_deadline, retry_period, .. } = Unchecked::default();
        Self { lease_duration, renew_deadline, retry_period, request_timeout: renew_deadline / 4 }
    }
}

/// Timings that are not checked yet.
#[derive(Clone, Debug)]
pub(crate) struct Unchecked {
    pub(crate) lease_duration: Duration,
    pub(crate) renew_deadline: Duration,
    pub(crate) retry_period: Duration,
    /// `None` means a quarter of the renew deadline.
    pub(crate) request_timeout: Option<Duration>,
}

impl Default for Unchecked {
    fn default() -> Self {
        Self {
            lease_duration: Duration::from_secs(15),
            renew_deadline: Duration::from_secs(10),
            retry_period: Duration::from_secs(2),
            request_timeout: None,
        }
    }
}

impl From<Timings> for Unchecked {
    fn from(timings: Timings) -> Self {
        let Timings { lease_duration, renew_deadline, retry_period, request_timeout } = timings;
        Self { lease_duration, renew_deadline, retry_period, request_timeout: Some(request_timeout) }
    }
}

impl Unchecked {
    pub(crate) fn check(self) -> Result<Timings, ConfigError> {
        let Self { lease_duration, renew_deadline, retry_period, .. } = self;
        let request_timeout = self.request_timeout.unwrap_or(renew_deadline / 4);
        for (field, value) in [
            ("lease_duration", lease_duration),
            ("renew_deadline", renew_deadline),
            ("retry_period", retry_period),
            ("request_timeout", request_timeout),
        ] {
            if value.is_zero() {
                return Err(ConfigError::new(field, "must be greater than zero"));
            }
        }
        if lease_duration <= renew_deadline {
            let problem = format!("({lease_duration:?}) must be greater than renew_deadline ({renew_deadline:?})");
            return Err(ConfigError::new("lease_duration", problem).beside(&["renew_deadline"]));
        }
        if lease_duration - renew_deadline < LEAST_MARGIN {
            let problem = format!(
                "({lease_duration:?}) must be greater than renew_deadline ({renew_deadline:?}) by {LEAST_MARGIN:?} or \
                 more, so that there is time to drop work that does not stop"
            );
            return Err(ConfigError::new("lease_duration", problem).beside(&["renew_deadline"]));
        }
        let longest_poll = Duration::try_from_secs_f64(retry_period.as_secs_f64() * JITTER_FACTOR);
        if longest_poll.unwrap_or(Duration::MAX) >= renew_deadline {
            let problem = format!(
                "({renew_deadline:?}) must be greater than retry_period ({retry_period:?}) times {JITTER_FACTOR}"
            );
            return Err(ConfigError::new("renew_deadline", problem).beside(&["retry_period"]));
        }
        if request_timeout >= renew_deadline / 2 {
            let problem =
                format!("({request_timeout:?}) must be less than half of renew_deadline ({renew_deadline:?})");
            return Err(ConfigError::new("request_timeout", problem).beside(&["renew_deadline"]));
        }
        Ok(Timings { lease_duration, renew_deadline, retry_period, request_timeout })
    }
}
