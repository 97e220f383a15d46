//! Errors with all that is behind them.

use std::error::Error;

/// The message of an error followed by those of its causes, on one line: for logs and for people.
///
/// The errors of this crate name the object and leave the cause to their [`source`](Error::source).
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
