//! URLs of locks, by which command lines and configuration files name them: one table of schemes, and one parser.
//!
//! A store declares its [`Scheme`]s, and [`url_of_table`](crate::url_of_table) makes the rest of them. A location whose URLs are not
//! of this kind, such as a URL with a signature, reads its [`Parts`] itself.

use std::fmt;
use std::sync::Arc;

use leaderelection::implement::ConditionalStore;
use leaderelection::{StoreError, StoreErrorKind};

use crate::CompiledHere;

#[cfg(feature = "http")]
pub use self::checks::checked_endpoint;
pub use self::checks::{check_bucket, check_key, check_name, checked_ca, checked_region, is_name};
pub use self::parts::{Parts, escaped};
pub use self::strange::strange;
pub use self::table::{Check, Parameter, Scheme, Table, Value, parse, show, with, wrong};
pub use self::text::{deserialize, serialize};

mod checks;
mod parts;
mod strange;
mod table;
#[cfg(test)]
mod tests;
mod text;

/// The key in a location of which only the store is asked for.
pub const ANY: &str = "any";

/// An object in a store. `Display` shows the URL, without a secret.
pub trait Place: fmt::Display + Send + Sync {
    /// The object's key in the store.
    fn key(&self) -> &str;

    /// The object's key, to name another object of the same store.
    fn key_mut(&mut self) -> &mut String;

    /// Opens the store, with the environment's credentials. Nothing is sent.
    ///
    /// # Errors
    ///
    /// If the environment's settings are invalid.
    fn store(&self) -> CompiledHere<'_, Result<Arc<dyn ConditionalStore>, StoreError>>;

    /// The URL of the server that the store asks, as location and environment resolve it; `None` for a store on this machine.
    /// Nothing is sent.
    ///
    /// # Errors
    ///
    /// If the environment's settings are invalid.
    fn server(&self) -> CompiledHere<'_, Result<Option<String>, StoreError>> {
        Box::pin(std::future::ready(Ok(None)))
    }

    /// The secret for which the place is not written to a configuration file, and what to do about that.
    fn secret(&self) -> Option<&'static str> {
        None
    }
}

/// The error of a URL that names no lock. The message names the problem and shows a valid URL.
///
/// The message does not repeat the invalid URL, because that URL may contain a secret.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{problem}; a valid URL looks like {example}")]
pub struct UrlError {
    problem: String,
    example: &'static str,
}

impl UrlError {
    /// The error with this problem, which is shown a valid URL.
    pub fn new(problem: impl Into<String>, example: &'static str) -> Self {
        Self { problem: problem.into(), example }
    }

    /// The error of a name that the program has given, and not as a URL.
    #[must_use]
    pub fn fatal(self) -> StoreError {
        StoreError::new(StoreErrorKind::Fatal, self.problem)
    }
}
