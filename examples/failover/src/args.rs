//! The command line.

use std::time::Duration;

use clap::{Args, Parser, Subcommand};
use leaderelection::{ConfigError, Timings};
use leaderelection_backends::url::{Location, UrlError};

/// Watch a leader being killed, stopped and frozen, and other candidates take its place.
///
/// Starts three processes that elect a leader through one object in a store. The leader writes to a shared log
/// that checks fencing tokens. The demonstration ends with a verdict, and exits with 1 after any failure.
#[derive(Debug, Parser)]
#[command(name = "failover", version, args_conflicts_with_subcommands = true)]
pub struct Cli {
    #[command(subcommand)]
    pub role: Option<Role>,
    #[command(flatten)]
    pub settings: Settings,
}

#[derive(Debug, Subcommand)]
pub enum Role {
    /// Runs one of the processes. The program itself starts this command.
    #[command(hide = true)]
    Candidate {
        #[arg(long)]
        name: String,
        #[command(flatten)]
        settings: Settings,
    },
}

/// The settings that the candidates must agree on.
#[derive(Clone, Debug, Args)]
pub struct Settings {
    /// The place of the lock: file:///dir/name or s3://bucket/key?endpoint=…. No object may exist at this place.
    /// The default is a temporary directory
    #[arg(long, value_name = "URL", value_parser = store_url)]
    pub store: Option<Location>,
    /// Let the candidates that follow get messages from the leader, so that the next leader begins at once. The first
    /// run with peers takes longer to build
    #[arg(long)]
    pub peers: bool,
    #[command(flatten)]
    pub timing: Timing,
}

/// The timings of the election. The defaults are short, because a person watches the demonstration.
#[derive(Clone, Copy, Debug, Args)]
pub struct Timing {
    /// The time that other candidates wait for a silent leader.
    #[arg(long, default_value = "3s", value_name = "DURATION", value_parser = duration)]
    pub lease: Duration,
    /// The time for which one renewal keeps leadership.
    #[arg(long, default_value = "2s", value_name = "DURATION", value_parser = duration)]
    pub renew: Duration,
    /// The pause between two renewals.
    #[arg(long, default_value = "400ms", value_name = "DURATION", value_parser = duration)]
    pub retry: Duration,
}

impl Timing {
    /// Checks that the timings fit each other.
    pub fn check(&self) -> Result<Timings, ConfigError> {
        Timings::new(self.lease, self.renew, self.retry)
    }
}

/// Parses a duration. The error contains an example.
fn duration(text: &str) -> Result<Duration, String> {
    leaderelection::timings::parse_duration(text)
        .map_err(|_| "expected a number and a unit, such as 15s or 400ms".to_owned())
}

impl Settings {
    /// The arguments that give another process the same settings.
    pub fn to_args(&self) -> Vec<String> {
        let mut args = Vec::new();
        if let Some(store) = &self.store {
            args.extend(["--store".to_owned(), store.to_string()]);
        }
        if self.peers {
            args.push("--peers".to_owned());
        }
        let Timing { lease, renew, retry } = self.timing;
        for (name, value) in [("--lease", lease), ("--renew", renew), ("--retry", retry)] {
            args.extend([name.to_owned(), humantime::format_duration(value).to_string()]);
        }
        args
    }

    /// The pause between a leader's appends to the log. A leader appends a few times per renewal. A whole
    /// run makes hundreds of entries, far fewer than the log can hold.
    pub fn append_period(&self) -> Duration {
        (self.timing.retry / 2).max(self.timing.lease / 50)
    }
}

/// Parses the URL of a store that all candidates share. Memory, which a [`Location`] can name, is not shared between
/// processes.
fn store_url(text: &str) -> Result<Location, String> {
    if text.starts_with("file://") || text.starts_with("s3://") {
        return text.parse().map_err(|error: UrlError| error.to_string());
    }
    Err("not the URL of a store; a right one is file:///var/tmp/demo/lock or \
         s3://bucket/demo/lock?endpoint=http://127.0.0.1:8333"
        .to_owned())
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    fn parse(args: &[&str]) -> Result<Cli, String> {
        Cli::try_parse_from([&["failover"], args].concat()).map_err(|error| error.to_string())
    }

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn settings_survive_being_passed_on() {
        let url = "s3://bucket/key?endpoint=http://127.0.0.1:8333";
        let given =
            parse(&["--store", url, "--lease", "1m30s", "--renew", "10s", "--retry", "1500ms", "--peers"]).unwrap();
        let mut args = vec!["candidate".to_owned(), "--name".to_owned(), "a".to_owned()];
        args.extend(given.settings.to_args());
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        let Some(Role::Candidate { settings, .. }) = parse(&args).unwrap().role else { panic!("not a candidate") };
        assert_eq!(settings.to_args(), given.settings.to_args());
        assert_eq!(settings.store, given.settings.store);
        assert_eq!(settings.timing.lease, Duration::from_secs(90));
        assert_eq!(settings.timing.retry, Duration::from_millis(1500));
    }

    #[test]
    fn a_wrong_duration_is_shown_a_right_one() {
        let error = parse(&["--lease", "15"]).unwrap_err();
        assert!(error.contains("such as 15s or 400ms"), "{error}");
    }

    #[test]
    fn a_wrong_url_is_shown_a_right_one() {
        for url in ["", "bucket/key", "gs://bucket/key", "memory:key", "file://", "file:///", "file://host/dir/name"] {
            let error = store_url(url).unwrap_err();
            assert!(error.contains("file:///"), "{url}: {error}");
        }
        let error = store_url("s3://bucket").unwrap_err();
        assert!(error.contains("s3://bucket/key"), "{error}");
    }
}
