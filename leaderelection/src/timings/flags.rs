//! Timings as command-line options, such as `--leader-elect-lease-duration 15s`.

use std::time::Duration;

use clap::error::ErrorKind;
use clap::parser::ValueSource;
use clap::{ArgMatches, Args, Command, Error, FromArgMatches, Id};

use super::{Timings, Unchecked, parse_duration};

/// The options, with client-go's names and defaults. The ids have a prefix because they are global in the program.
#[derive(Args)]
#[group(id = "leader-elect-timings")]
struct Flags {
    /// How long other candidates wait after the leader's last renewal before they take over.
    #[arg(id = "leader-elect-lease-duration", long = "leader-elect-lease-duration", value_name = "DURATION", default_value = "15s", value_parser = parse_duration)]
    lease_duration: Duration,
    /// How long a leader leads without a renewal.
    #[arg(id = "leader-elect-renew-deadline", long = "leader-elect-renew-deadline", value_name = "DURATION", default_value = "10s", value_parser = parse_duration)]
    renew_deadline: Duration,
    /// The pause between two renewals, and the shortest pause between two reads by a candidate.
    #[arg(id = "leader-elect-retry-period", long = "leader-elect-retry-period", value_name = "DURATION", default_value = "2s", value_parser = parse_duration)]
    retry_period: Duration,
    /// How long to wait for an answer of the store. The default is a quarter of the renew deadline.
    #[arg(id = "leader-elect-request-timeout", long = "leader-elect-request-timeout", value_name = "DURATION", value_parser = parse_duration)]
    request_timeout: Option<Duration>,
}

impl Flags {
    fn check(self) -> Result<Timings, Error> {
        let Self { lease_duration, renew_deadline, retry_period, request_timeout } = self;
        Unchecked { lease_duration, renew_deadline, retry_period, request_timeout }.check().map_err(|error| {
            let option = |field: &str| Some(format!("--leader-elect-{}", field.replace('_', "-")));
            Error::raw(ErrorKind::ValueValidation, error.in_words(option))
        })
    }
}

impl FromArgMatches for Timings {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        Flags::from_arg_matches(matches)?.check()
    }

    /// Replaces only the durations whose options are given.
    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        let is_given = |id: &str| matches.value_source(id).is_some_and(|source| source != ValueSource::DefaultValue);
        let given = Flags::from_arg_matches(matches)?;
        let choose = |id: &str, new: Duration, old: Duration| if is_given(id) { new } else { old };
        *self = Flags {
            lease_duration: choose("leader-elect-lease-duration", given.lease_duration, self.lease_duration()),
            renew_deadline: choose("leader-elect-renew-deadline", given.renew_deadline, self.renew_deadline()),
            retry_period: choose("leader-elect-retry-period", given.retry_period, self.retry_period()),
            request_timeout: given.request_timeout.or(Some(self.request_timeout())),
        }
        .check()?;
        Ok(())
    }
}

impl Args for Timings {
    fn group_id() -> Option<Id> {
        Flags::group_id()
    }

    fn augment_args(command: Command) -> Command {
        Flags::augment_args(command)
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}
