//! The arguments that name a lock: a URL, or a file with the URL.

use std::fmt;
use std::io::{self, Read as _};
use std::ops::Deref;

use clap::builder::TypedValueParser;
use clap::error::ErrorKind;
use clap::parser::ValueSource;
use clap::{ArgMatches, Args, Command, FromArgMatches};
use futures_util::future::join_all;
use leaderelection::admin::Target;
use leaderelection::lock::TimeLimit;

use super::{LockUrl, QuietParser};
use crate::exit::Failure;

/// The length of a file that contains no URL.
const TOO_LONG: u64 = 64 * 1024;

/// Returns the locks that are named. The command line wins over the environment, whichever way each names a lock.
fn named(matches: &ArgMatches) -> Result<Vec<LockUrl>, clap::Error> {
    for (source, place) in
        [(ValueSource::CommandLine, "the command line"), (ValueSource::EnvVariable, "the environment")]
    {
        let of_source = |id: &&str| matches.try_contains_id(id).is_ok() && matches.value_source(id) == Some(source);
        let given: Vec<_> = ["url", "lock", "lock_file"].into_iter().filter(of_source).collect();
        match given[..] {
            [] => {}
            ["lock_file"] => return Ok(matches.get_one::<Lines>("lock_file").ok_or_else(missing)?.0.clone()),
            [id] => return Ok(matches.get_many(id).ok_or_else(missing)?.cloned().collect()),
            _ => {
                let message = format!(
                    "{place} names the lock more than once: name it by its URL, or by a file with the URL. A lock that is made \
                     of several has --lock for each, or a line of the file for each\n"
                );
                return Err(clap::Error::raw(ErrorKind::ArgumentConflict, message));
            }
        }
    }
    Err(missing())
}

fn missing() -> clap::Error {
    clap::Error::raw(ErrorKind::MissingRequiredArgument, "no lock is named\n")
}

/// The URLs in a file, one in each line.
#[derive(Clone, Debug)]
struct Lines(Vec<LockUrl>);

fn in_file(read: fn(&str) -> Result<Lines, String>) -> impl TypedValueParser<Value = Lines> {
    QuietParser(read)
}

/// Reads the URLs in a file. The error does not repeat what is in the file.
fn read(path: &str, parse: fn(&str) -> Result<LockUrl, String>) -> Result<Lines, String> {
    let mut text = String::new();
    let read = std::fs::File::open(path).and_then(|file| file.take(TOO_LONG).read_to_string(&mut text));
    read.map_err(|error: io::Error| format!("cannot read {path}: {error}; name a file that contains the lock's URL"))?;
    // An empty file has one line, which is no URL.
    let urls = text.trim().split('\n').map(|line| parse(line.trim()));
    urls.collect::<Result<_, _>>().map(Lines).map_err(|error| format!("{path}: {error}"))
}

/// The names of locks, as one.
pub(crate) struct Joined<'a, T>(pub(crate) &'a [T]);

impl<T: fmt::Display> fmt::Display for Joined<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, lock) in self.0.iter().enumerate() {
            write!(f, "{}{lock}", if number == 0 { "" } else { " and " })?;
        }
        Ok(())
    }
}

/// A type with the lock that the command line names, and the arguments for it.
macro_rules! named {
    ($(#[$doc:meta])* $lock:ident, $args:ident, $parse:path, $help:literal) => {
        $(#[$doc])*
        #[derive(Clone, Debug)]
        pub(crate) struct $lock(Vec<LockUrl>);

        impl $lock {
            /// The locks of which this one is made, in the order in which a candidate takes them.
            pub(crate) fn parts(&self) -> &[LockUrl] {
                &self.0
            }
        }

        #[derive(Debug, Args)]
        #[group(required = true, multiple = true)]
        #[allow(dead_code, reason = "the values are taken by their sources")]
        struct $args {
            #[doc = $help]
            #[arg(value_name = "URL", value_parser = QuietParser($parse))]
            url: Option<LockUrl>,
            /// The same as the argument, as an option. Given several times, it names the parts of one lock, of which a leader
            /// needs a majority, in the order that all commands share
            #[arg(long, value_name = "URL", value_parser = QuietParser($parse))]
            lock: Vec<LockUrl>,
            /// Read the URL from this file, in place of the argument; for several locks, one in each line
            #[arg(long, value_name = "PATH", value_parser = in_file(|path| read(path, $parse)))]
            lock_file: Option<Lines>,
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
                &self.0[0]
            }
        }

        impl fmt::Display for $lock {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}", Joined(&self.0))
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

impl OperatorLock {
    /// Opens the lock, or all of its parts as one, for an operator whose requests are limited in time, if there is a limit.
    pub(crate) async fn target(&self, limit: Option<TimeLimit>) -> Result<Target, Failure> {
        let [only] = self.parts() else {
            let parts = join_all(self.parts().iter().map(|part| part.target(limit.clone()))).await;
            return Ok(Target::of_parts(&parts.into_iter().collect::<Result<Vec<_>, _>>()?)?);
        };
        only.target(limit).await
    }
}
