//! The command line.

use std::time::Duration;

use clap::{Args, Parser, Subcommand};

use crate::place::Place;

/// Watch a leader being killed, stopped and frozen, and others take its place.
///
/// Starts three processes that elect a leader through one object in a store, and writes to a shared log
/// that checks fencing tokens. Ends with a verdict; exits with 1 if anything went wrong.
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
    /// One of the processes: started by the program itself.
    #[command(hide = true)]
    Candidate {
        #[arg(long)]
        name: String,
        #[command(flatten)]
        settings: Settings,
    },
}

/// What the candidates must agree on.
#[derive(Clone, Debug, Args)]
pub struct Settings {
    /// Where the lock is: file:///dir/name or s3://bucket/key?endpoint=…; nothing may be there yet.
    /// A temporary directory unless given
    #[arg(long, value_name = "URL")]
    pub store: Option<Place>,
    /// How long the others leave a silent leader its lease
    #[arg(long, value_name = "DURATION", default_value = "3s", value_parser = duration)]
    pub lease: Duration,
    /// How long a leader leads on one renewal
    #[arg(long, value_name = "DURATION", default_value = "2s", value_parser = duration)]
    pub renew: Duration,
    /// The pause between two renewals
    #[arg(long, value_name = "DURATION", default_value = "400ms", value_parser = duration)]
    pub retry: Duration,
}

impl Settings {
    /// The arguments that give another process the same settings.
    pub fn to_args(&self) -> Vec<String> {
        let mut args = Vec::new();
        if let Some(store) = &self.store {
            args.extend(["--store".to_owned(), store.to_string()]);
        }
        for (name, value) in [("--lease", self.lease), ("--renew", self.renew), ("--retry", self.retry)] {
            args.extend([name.to_owned(), humantime::format_duration(value).to_string()]);
        }
        args
    }

    /// How often a leader appends to the log: a few times per renewal, yet so that hundreds of entries,
    /// far fewer than the log can hold, are all that a whole run makes.
    pub fn append_period(&self) -> Duration {
        (self.retry / 2).max(self.lease / 50)
    }
}

fn duration(text: &str) -> Result<Duration, String> {
    humantime::parse_duration(text)
        .map_err(|error| format!("{error}; a duration is a number and a unit, such as 15s or 400ms"))
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
        let given = parse(&["--store", url, "--lease", "1m30s", "--renew", "10s", "--retry", "1500ms"]).unwrap();
        let mut args = vec!["candidate".to_owned(), "--name".to_owned(), "a".to_owned()];
        args.extend(given.settings.to_args());
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        let Some(Role::Candidate { settings, .. }) = parse(&args).unwrap().role else { panic!("not a candidate") };
        assert_eq!(settings.to_args(), given.settings.to_args());
        assert_eq!(settings.lease, Duration::from_secs(90));
        assert_eq!(settings.retry, Duration::from_millis(1500));
    }

    #[test]
    fn a_wrong_duration_is_shown_a_right_one() {
        let error = parse(&["--lease", "15"]).unwrap_err();
        assert!(error.contains("such as 15s or 400ms"), "{error}");
    }
}
