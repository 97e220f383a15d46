//! The arguments that name a lock: a URL, or a file with the URL.

use std::fmt;
use std::io::{self, Read as _};
use std::ops::Deref;

use clap::builder::TypedValueParser;
use clap::error::ErrorKind;
use clap::parser::ValueSource;
use clap::{ArgMatches, Args, Command, FromArgMatches};

use super::{LockUrl, QuietParser};

/// The length of a file that contains no URL.
const TOO_LONG: u64 = 64 * 1024;

/// Returns the only lock that is named. The command line wins over the environment, whichever way each names a lock.
fn named(matches: &ArgMatches) -> Result<LockUrl, clap::Error> {
    for (source, place) in
        [(ValueSource::CommandLine, "the command line"), (ValueSource::EnvVariable, "the environment")]
    {
        let of_source = |id: &&str| matches.try_contains_id(id).is_ok() && matches.value_source(id) == Some(source);
        let given: Vec<_> = ["url", "lock", "lock_file"].into_iter().filter(of_source).collect();
        match given[..] {
            [] => {}
            [id] => return matches.get_one(id).cloned().ok_or_else(missing),
            _ => {
                let message =
                    format!("{place} names the lock more than once: name it by its URL, or by a file with the URL\n");
                return Err(clap::Error::raw(ErrorKind::ArgumentConflict, message));
            }
        }
    }
    Err(missing())
}

fn missing() -> clap::Error {
    clap::Error::raw(ErrorKind::MissingRequiredArgument, "no lock is named\n")
}

fn in_file(read: fn(&str) -> Result<LockUrl, String>) -> impl TypedValueParser<Value = LockUrl> {
    QuietParser(read)
}

/// Reads a URL from a file. The error does not repeat what is in the file.
fn read(path: &str, parse: fn(&str) -> Result<LockUrl, String>) -> Result<LockUrl, String> {
    let mut text = String::new();
    let read = std::fs::File::open(path).and_then(|file| file.take(TOO_LONG).read_to_string(&mut text));
    read.map_err(|error: io::Error| format!("cannot read {path}: {error}; name a file that contains the lock's URL"))?;
    parse(text.trim()).map_err(|error| format!("{path}: {error}"))
}

/// A type with the lock that the command line names, and the arguments for it.
macro_rules! named {
    ($(#[$doc:meta])* $lock:ident, $args:ident, $parse:path, $help:literal) => {
        $(#[$doc])*
        #[derive(Clone, Debug)]
        pub(crate) struct $lock(LockUrl);

        #[derive(Debug, Args)]
        #[group(required = true, multiple = true)]
        #[allow(dead_code, reason = "the values are taken by their sources")]
        struct $args {
            #[doc = $help]
            #[arg(value_name = "URL", value_parser = QuietParser($parse))]
            url: Option<LockUrl>,
            /// The same as the argument, as an option
            #[arg(long, value_name = "URL", value_parser = QuietParser($parse))]
            lock: Option<LockUrl>,
            /// Read the URL from this file, in place of the argument
            #[arg(long, value_name = "PATH", value_parser = in_file(|path| read(path, $parse)))]
            lock_file: Option<LockUrl>,
        }

        impl FromArgMatches for $lock {
            fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
                named(matches).map(Self)
            }

            fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
                *self = Self::from_arg_matches(matches)?;
                Ok(())
            }
        }

        impl Args for $lock {
            fn augment_args(command: Command) -> Command {
                $args::augment_args(command)
            }

            fn augment_args_for_update(command: Command) -> Command {
                $args::augment_args_for_update(command)
            }
        }

        impl Deref for $lock {
            type Target = LockUrl;

            fn deref(&self) -> &LockUrl {
                &self.0
            }
        }

        impl fmt::Display for $lock {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

named!(
    /// The lock of a candidate, whose rivals are in other processes.
    CandidateLock,
    CandidateArgs,
    LockUrl::parse_shared,
    "The lock, such as s3://bucket/key or file:///directory/name"
);
named!(
    /// The lock of a command that does not compete.
    OperatorLock,
    OperatorArgs,
    LockUrl::parse,
    "The lock, such as s3://bucket/key or file:///directory/name. A lock of a session is at PREFIX/locks/NAME, and a \
     session at PREFIX/sessions/ID"
);
