//! Where the lock is: from a URL to a store.

use std::ffi::OsStr;
use std::fmt;
use std::sync::Arc;

use clap::builder::{StringValueParser, TypedValueParser};
use clap::error::ErrorKind;
use clap::{Arg, Command};
use leaderelection::{ConditionalStore, ObjectLock};
use leaderelection_backends::url::{Location, UrlError};

use crate::exit::Failure;

/// A lock over any store.
pub(crate) type Lock = ObjectLock<Arc<dyn ConditionalStore>>;

/// The lock that a command is about. Shown without secrets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LockUrl(Location);

impl LockUrl {
    /// Reads the URL of a lock, without repeating it in a complaint: it may hold a secret.
    pub(crate) fn parser() -> impl TypedValueParser<Value = Self> {
        QuietParser(|text| text.parse().map(Self))
    }

    /// The lock, for the candidate `identity`.
    pub(crate) async fn open(&self, identity: impl Into<String>) -> Result<Lock, Failure> {
        Ok(self.0.lock(identity).await?)
    }

    /// The lock, for somebody who only looks.
    pub(crate) async fn open_to_look(&self) -> Result<Lock, Failure> {
        self.open("leaderelect").await
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

/// A value parser whose complaints do not show the value.
#[derive(Clone)]
struct QuietParser<T>(fn(&str) -> Result<T, UrlError>);

impl<T: Clone + Send + Sync + 'static> TypedValueParser for QuietParser<T> {
    type Value = T;

    fn parse_ref(&self, command: &Command, arg: Option<&Arg>, value: &OsStr) -> Result<T, clap::Error> {
        let text = StringValueParser::new().parse_ref(command, arg, value)?;
        (self.0)(&text).map_err(|error| {
            let name = arg.map(ToString::to_string).unwrap_or_default();
            let message = format!("invalid value for '{name}': {error}\n");
            clap::Error::raw(ErrorKind::ValueValidation, message).with_cmd(command)
        })
    }
}
