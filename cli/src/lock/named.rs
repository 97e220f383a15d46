//! The arguments that name a lock: a URL, or a file with the URL.

use std::fmt;
use std::io::{self, Read as _};
use std::ops::Deref;
use std::path::Path;

use clap::error::ErrorKind;
use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgGroup, ArgMatches, Args, Command, FromArgMatches};
use futures_util::future::join_all;
use leaderelection::admin::Target;
use leaderelection::lock::TimeLimit;
use leaderelection_serving::secret;

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
                    "{place} names the lock more than once; use only one of: the argument, --lock, --lock-file. To combine several \
                     locks, repeat --lock, or put one URL per line in the file\n"
                );
                return Err(clap::Error::raw(ErrorKind::ArgumentConflict, message));
            }
        }
    }
    Err(missing())
}

fn missing() -> clap::Error {
    clap::Error::raw(ErrorKind::MissingRequiredArgument, "missing the URL of the lock\n")
}

/// The URLs in a file, one in each line.
#[derive(Clone, Debug)]
struct Lines(Vec<LockUrl>);

/// Reads the URLs in a file, which decide who leads, so not every user may change it. The error does not repeat what is in the file.
fn read(path: &str, parse: fn(&str) -> Result<LockUrl, String>) -> Result<Lines, String> {
    let mut text = String::new();
    let read = secret::open(Path::new(path)).and_then(|file| file.take(TOO_LONG).read_to_string(&mut text));
    read.map_err(|error: io::Error| format!("cannot read {path}: {error}; expected a file with the URL of the lock"))?;
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

/// The lock that the command line names: that of a candidate if it is `SHARED` with rivals in other processes, or that of a
/// command that does not compete.
#[derive(Clone, Debug)]
pub(crate) struct Named<const SHARED: bool>(Vec<LockUrl>);

pub(crate) type CandidateLock = Named<true>;
pub(crate) type OperatorLock = Named<false>;

impl<const SHARED: bool> Named<SHARED> {
    /// The locks of which this one is made, in the order in which a candidate takes them.
    pub(crate) fn parts(&self) -> &[LockUrl] {
        &self.0
    }

    fn parse(text: &str) -> Result<LockUrl, String> {
        if SHARED { LockUrl::parse_shared(text) } else { LockUrl::parse(text) }
    }
}

impl<const SHARED: bool> FromArgMatches for Named<SHARED> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        named(matches).map(Self)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl<const SHARED: bool> Args for Named<SHARED> {
    fn augment_args(command: Command) -> Command {
        let details = "A session is one lease for many locks: its locks are at PREFIX/locks/NAME, and the session at PREFIX/sessions/ID.";
        let url = |id: &'static str| Arg::new(id).value_name("URL").value_parser(QuietParser(Self::parse));
        let example = "Name the lock, such as s3://bucket/key or file:///directory/name";
        let argument = url("url").help("Name the lock, such as s3://bucket/key");
        let argument = argument.long_help(if SHARED { example.to_owned() } else { format!("{example}. {details}") });
        // A variable has one value, and no URL has several lines.
        let lock = url("lock").long("lock").action(ArgAction::Append).value_delimiter('\n');
        let lock = lock.help("Name the lock; repeat to combine several").long_help(
            "Name the lock; repeat to combine several\n\nThe same as the argument. Repeat it to combine several locks into one: a \
             leader must hold a majority of them. Name them in the same order in all commands. In the environment variable, put one URL per \
             line.",
        );
        let file = Arg::new("lock_file").long("lock-file").value_name("PATH");
        let file = file.value_parser(QuietParser(|path| read(path, Self::parse)));
        let file = file
            .help("Read the URL from this file")
            .long_help("Read the URL from this file\n\nTo combine several locks, put one URL per line.");
        let group = ArgGroup::new("named").args(["url", "lock", "lock_file"]).required(true).multiple(true);
        command.group(group).args([argument, lock, file])
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl<const SHARED: bool> Deref for Named<SHARED> {
    type Target = LockUrl;

    fn deref(&self) -> &LockUrl {
        &self.0[0]
    }
}

impl<const SHARED: bool> fmt::Display for Named<SHARED> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Joined(&self.0).fmt(f)
    }
}

impl OperatorLock {
    /// Refuses a local directory that does not exist, unless another part is elsewhere.
    pub(crate) fn must_have_directory(&self) -> Result<(), Failure> {
        self.parts().iter().map(LockUrl::must_have_directory).min_by_key(Result::is_err).unwrap_or(Ok(()))
    }

    /// Opens the lock, or all of its parts as one, for an operator whose requests are limited in time, if there is a limit.
    pub(crate) async fn target(&self, limit: Option<TimeLimit>) -> Result<Target, Failure> {
        let [only] = self.parts() else {
            let parts = join_all(self.parts().iter().map(|part| part.target(limit.clone()))).await;
            return Ok(Target::of_parts(&parts.into_iter().collect::<Result<Vec<_>, _>>()?)?);
        };
        only.target(limit).await
    }
}
