//! Error messages that include all causes.

use std::error::Error;

/// Returns the message of an error and the messages of its causes on one line, for logs and for people.
///
/// An error of this crate names the object and leaves the cause to its [`source`](Error::source).
///
/// ```
/// use leaderelection::{LockError, StoreErrorKind, with_causes};
///
/// let error = LockError::new(StoreErrorKind::Ambiguous, "cannot read lock", "s3://bucket/key", "timed out");
/// assert_eq!(error.to_string(), "cannot read lock s3://bucket/key");
/// assert_eq!(with_causes(&error), "cannot read lock s3://bucket/key: timed out");
/// ```
#[must_use]
pub fn with_causes(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        source = cause.source();
    }
    text
}
