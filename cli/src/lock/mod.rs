//! The way from a lock's URL to its store.

mod logged;
mod named;
pub(crate) mod observed;
mod root;
pub(crate) mod status;
mod text;
pub(crate) mod view;

use std::ffi::OsStr;
use std::fmt;
#[cfg(unix)]
use std::path::Path;
use std::path::PathBuf;
use std::sync::Arc;

use clap::builder::{StringValueParser, TypedValueParser};
use clap::error::ErrorKind;
use clap::{Arg, Command};
use leaderelection::admin::Target;
use leaderelection::causes::with_causes;
use leaderelection::implement::ConditionalStore;
use leaderelection::lock::{Bounded, TimeLimit};
use leaderelection::{ObjectLock, StoreError};
use leaderelection_backends::url::{Location, UrlError};

use crate::exit::Failure;
use crate::lock::logged::Logged;
use crate::lock::observed::{Observed, Observer};

pub(crate) use self::named::{CandidateLock, Joined, OperatorLock};

/// A lock over any store.
pub(crate) type Lock = ObjectLock<Arc<dyn ConditionalStore>>;

/// The identity of a command that does not compete.
const OBSERVER_IDENTITY: &str = "leaderelect";

/// The lock that a command works on. Displayed without secrets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LockUrl(Location);

impl LockUrl {
    /// Returns `true` if both URLs name one object, also if they are spelt differently.
    pub(crate) async fn names_the_object_of(&self, other: &Self) -> bool {
        if self == other || self.0.key() != other.0.key() {
            return self == other;
        }
        let endpoints = (self.0.endpoint().await, other.0.endpoint().await);
        // Settings that are wrong are reported when the store is opened.
        matches!(endpoints, (Ok(Some(one)), Ok(Some(two))) if one == two)
    }

    /// Parses the URL of a lock. The error does not repeat the URL, which may contain a secret.
    fn parse(text: &str) -> Result<Self, String> {
        text.parse().map(Self).map_err(|error: UrlError| error.to_string())
    }

    /// Parses the URL of a lock for a candidate, whose rivals are in other processes.
    fn parse_shared(text: &str) -> Result<Self, String> {
        match Self::parse(text)? {
            Self(Location::Memory(_)) => Err("a memory: lock is private to this process and excludes no other; use a \
                                              store, or file:///directory/name"
                .to_owned()),
            lock => Ok(lock),
        }
    }

    /// Returns the parser of a further lock of a candidate. Error messages do not repeat the URL.
    pub(crate) fn shared_parser() -> impl TypedValueParser<Value = Self> {
        QuietParser(Self::parse_shared)
    }

    /// Opens the lock for the candidate `identity`.
    pub(crate) async fn open(&self, identity: impl Into<String>) -> Result<Lock, Failure> {
        self.0.lock(identity).await.map_err(wrong_settings)
    }

    /// Opens the lock for the candidate `identity`, whose requests somebody observes.
    pub(crate) async fn open_observed(&self, identity: &str, observer: impl Observer) -> Result<Lock, Failure> {
        Ok(Lock::new(observed(&self.0, observer).await?, self.0.key(), identity))
    }

    /// Opens the lock for a command that does not compete for it.
    pub(crate) async fn open_to_read(&self) -> Result<Lock, Failure> {
        Ok(Lock::new(self.store().await?, self.0.key(), OBSERVER_IDENTITY))
    }

    /// Opens the lock, or the session, for an operator whose requests are limited in time one by one, if there is a limit.
    pub(crate) async fn target(&self, limit: Option<TimeLimit>) -> Result<Target, Failure> {
        let url = self.with_sessions();
        let (store, key) = (url.store().await?, url.0.key());
        Ok(match limit {
            Some(limit) => Target::new(Bounded::new(store, limit), key),
            None => Target::new(store, key),
        })
    }

    /// The URL of another object that an operator asks about, by its key.
    pub(crate) fn at(&self, key: &str) -> Self {
        Self(self.with_sessions().0.with_key(key))
    }

    /// All objects below a folder that an operator asks about, by its key.
    pub(crate) fn folder(&self, key: &str) -> PrefixUrl {
        PrefixUrl { location: self.with_sessions().0.with_key(key), hidden: 0 }
    }

    /// The numbered locks of `run --slots`, if this is its URL. A session has no room on a Lease.
    pub(crate) fn slots(&self) -> Option<PrefixUrl> {
        let folder = format!("{}/locks/slot/", self.0.key());
        let location = root::with_sessions(self.0.with_key(&folder));
        (!self.is_lease()).then(|| PrefixUrl { hidden: location.key().len(), location })
    }

    /// Returns `true` for a Kubernetes Lease, beside which no object of another kind fits.
    pub(crate) fn is_lease(&self) -> bool {
        self.to_string().starts_with("lease:")
    }

    /// The URL of the object at `key` in the store of this URL.
    #[cfg(unix)]
    pub(crate) fn with_key(&self, key: &str) -> Self {
        Self(self.0.with_key(key))
    }

    fn with_sessions(&self) -> Self {
        Self(root::with_sessions(self.0.clone()))
    }

    async fn store(&self) -> Result<Arc<dyn ConditionalStore>, Failure> {
        observed(&self.0, Logged).await
    }

    /// Refuses a local directory that does not exist, and that a write would create.
    #[cfg_attr(not(unix), expect(clippy::unnecessary_wraps, clippy::unused_self, reason = "it can fail elsewhere"))]
    pub(crate) fn must_have_directory(&self) -> Result<(), Failure> {
        #[cfg(unix)]
        {
            let Some(directory) = directory(&self.0) else { return Ok(()) };
            if !directory.is_dir() {
                let directory = directory.display();
                return Err(Failure::usage(format!(
                    "directory {directory} not found; check the URL, or start a candidate, which creates it"
                )));
            }
        }
        Ok(())
    }

    pub(crate) fn location(&self) -> &Location {
        &self.0
    }
}

impl fmt::Display for LockUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A part of a store: all keys with the same prefix.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PrefixUrl {
    /// A location whose key is the prefix.
    location: Location,
    /// The length of the part of every key that people do not see, because it is a part of a path to them.
    hidden: usize,
}

impl PrefixUrl {
    /// Parses the URL of a prefix. Error messages do not repeat the URL.
    pub(crate) fn parser() -> impl TypedValueParser<Value = Self> {
        QuietParser(|text| Self::parse(text).map_err(|error| error.to_string()))
    }

    /// Parses a prefix, which may be empty although a key may not. The parser therefore appends a character
    /// first.
    fn parse(text: &str) -> Result<Self, UrlError> {
        const REST: &str = "x";
        let (path, query) = text.split_once('?').map_or((text, None), |(path, query)| (path, Some(query)));
        // Nothing begins with a folder that has no name, and everything in such a folder begins with one slash.
        let start = path.find("://").map_or(0, |scheme| scheme + 3);
        let end = start + path[start..].trim_end_matches('/').len();
        let path = path.get(..=end).unwrap_or(path);
        let slash = match path.split_once("://") {
            // The URL names only a bucket.
            Some((scheme, rest)) if scheme != "file" && !rest.contains('/') => "/",
            _ => "",
        };
        let query = query.map(|query| format!("?{query}")).unwrap_or_default();
        let location: Location = format!("{path}{slash}{REST}{query}").parse()?;
        let visible = location.key().len();
        let location = root::with_sessions(location);
        let hidden = location.key().len() - visible;
        let prefix = location.key().strip_suffix(REST).unwrap_or_default();
        Ok(Self { location: location.with_key(prefix), hidden })
    }

    pub(crate) async fn open(&self) -> Result<Arc<dyn ConditionalStore>, Failure> {
        observed(&self.location, Logged).await
    }

    pub(crate) fn prefix(&self) -> &str {
        self.location.key()
    }

    /// The first directory on the way to the locks that does not exist.
    #[cfg(unix)]
    pub(crate) fn missing_directory(&self) -> Option<PathBuf> {
        let folder = self.prefix().rsplit_once('/').map_or("", |(folder, _)| folder);
        let path = directory(&self.location)?.join(folder);
        let way: Vec<_> = path.ancestors().collect();
        // A directory that cannot be read may exist.
        way.into_iter().rev().find(|path| path.try_exists().is_ok_and(|exists| !exists)).map(PathBuf::from)
    }

    #[cfg(not(unix))]
    pub(crate) fn missing_directory(&self) -> Option<PathBuf> {
        None
    }

    /// The part of a key that people see.
    pub(crate) fn shown<'a>(&self, key: &'a str) -> &'a str {
        key.get(self.hidden..).unwrap_or(key)
    }

    /// The URL of the lock or the session at `key`.
    pub(crate) fn at(&self, key: &str) -> LockUrl {
        LockUrl(self.location.with_key(key))
    }
}

impl fmt::Display for PrefixUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.location.fmt(f)
    }
}

/// The directory of a store on this machine.
#[cfg(unix)]
fn directory(location: &Location) -> Option<&Path> {
    match location {
        Location::File(location) => Some(Path::new(&location.directory)),
        Location::SequencedFile(location) => Some(Path::new(&location.file.directory)),
        _ => None,
    }
}

async fn observed(location: &Location, observer: impl Observer) -> Result<Arc<dyn ConditionalStore>, Failure> {
    Ok(Arc::new(Observed::new(location.open().await.map_err(wrong_settings)?, observer)))
}

/// Converts an error that arose before anything was sent, so that the store is not to blame.
fn wrong_settings(error: StoreError) -> Failure {
    Failure::usage(with_causes(&error))
}

/// A value parser whose error messages do not show the value.
#[derive(Clone)]
struct QuietParser<T>(fn(&str) -> Result<T, String>);

impl<T: Clone + Send + Sync + 'static> TypedValueParser for QuietParser<T> {
    type Value = T;

    fn parse_ref(&self, command: &Command, arg: Option<&Arg>, value: &OsStr) -> Result<T, clap::Error> {
        let text = StringValueParser::new().parse_ref(command, arg, value)?;
        (self.0)(&text).map_err(|error| {
            let name = arg.map(ToString::to_string).unwrap_or_default();
            // The first word of a command without the `--` is taken for the lock. It is no URL.
            let is_word = arg.is_some_and(Arg::is_positional) && command.get_positionals().any(Arg::is_last_set);
            let tip = if is_word && !text.contains("://") { "\n\n  tip: the command comes after '--'" } else { "" };
            let message = format!("invalid value for '{name}': {error}{tip}\n");
            clap::Error::raw(ErrorKind::ValueValidation, message).with_cmd(command)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_may_be_a_whole_bucket_a_folder_or_the_beginning_of_a_name() {
        for (text, prefix, shown) in [
            ("memory:", "", "memory:"),
            ("memory:lo", "lo", "memory:lo"),
            ("file:///dir/sub/", "", "file:///dir/sub/"),
            ("file:///dir/sub", "sub", "file:///dir/sub"),
            ("file:///dir/locks/", "locks/", "file:///dir/locks/"),
            ("file:///", "", "file:///"),
            ("file:///dir/locks//", "locks/", "file:///dir/locks/"),
            ("s3://bucket//", "", "s3://bucket/"),
            ("s3://bucket/a//b///?region=eu-west-1", "a//b/", "s3://bucket/a//b/?region=eu-west-1"),
            ("memory:a//", "a/", "memory:a/"),
            ("s3://bucket", "", "s3://bucket/"),
            ("s3://bucket/locks/?region=eu-west-1", "locks/", "s3://bucket/locks/?region=eu-west-1"),
            ("gs://bucket/a%20b", "a b", "gs://bucket/a%20b"),
            ("az://account/container/", "", "az://account/container/"),
            ("https://a.blob.core.windows.net/c/x?sig=secret", "x", "az://a/c/x"),
        ] {
            let url = PrefixUrl::parse(text).unwrap();
            assert_eq!((url.prefix(), url.to_string().as_str()), (prefix, shown), "{text}");
        }
        assert!(PrefixUrl::parse("bucket/locks").is_err());
    }

    #[test]
    fn people_see_the_keys_below_the_folder_that_they_named() {
        let url = PrefixUrl::parse("file:///dir/locks/").unwrap();
        assert_eq!(
            (url.shown("locks/a/b"), url.at("locks/a/b").to_string().as_str()),
            ("a/b", "file:///dir/locks/a/b")
        );
        let url = PrefixUrl::parse("s3://bucket/locks/").unwrap();
        assert_eq!(url.shown("locks/a/b"), "locks/a/b");
    }

    #[test]
    fn the_urls_of_locks_under_a_prefix_are_whole() {
        let url = PrefixUrl::parse("s3://bucket/locks/?endpoint=http://127.0.0.1:1").unwrap();
        let lock = url.at("locks/a b");
        assert_eq!(lock.to_string(), "s3://bucket/locks/a%20b?endpoint=http://127.0.0.1:1");
    }
}
