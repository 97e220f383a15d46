//! The return types that a leader's work may have, and what they say about its success.

use std::convert::Infallible;
use std::error::Error;

use crate::election::{TermEndReason, WorkEnd};
use crate::util::causes::with_causes;

/// The return type of a term's work, such as `()` or a `Result`, like [`std::process::Termination`] for `main`.
///
/// Work that returns an error ends its term: see
/// [`on_start_leading`](crate::LeaderCallbacks::on_start_leading).
///
/// ```
/// # async fn open_socket() -> std::io::Result<()> { Ok(()) }
/// # async fn serve(leadership: &leaderelection::Leadership) {}
/// let callbacks = leaderelection::LeaderCallbacks::new().on_start_leading(|leadership| async move {
///     open_socket().await?;
///     serve(&leadership).await;
///     Ok::<(), std::io::Error>(())
/// });
/// ```
#[diagnostic::on_unimplemented(
    message = "the work of a leader has to return `()` or a `Result`, and returns `{Self}`",
    label = "this work returns `{Self}`",
    note = "end the work with `;` if its value does not matter, or with `Ok(())` if it can fail; for the value of work that is done once, use `run_while_leading`",
    note = "the error of a `Result` has to become a `Box<dyn std::error::Error + Send + Sync>`; `String` and `anyhow::Error` do"
)]
pub trait WorkOutcome {
    /// Returns whether the work has succeeded.
    ///
    /// # Errors
    ///
    /// The error with which the work failed. The elector logs it with its causes.
    fn outcome(self) -> Result<(), Box<dyn Error + Send + Sync>>;
}

impl WorkOutcome for () {
    fn outcome(self) -> Result<(), Box<dyn Error + Send + Sync>> {
        Ok(())
    }
}

/// Lets [`Leadership::lost`](crate::Leadership::lost) be the last expression of the work.
impl WorkOutcome for TermEndReason {
    fn outcome(self) -> Result<(), Box<dyn Error + Send + Sync>> {
        Ok(())
    }
}

impl WorkOutcome for Infallible {
    fn outcome(self) -> Result<(), Box<dyn Error + Send + Sync>> {
        match self {}
    }
}

impl<T: WorkOutcome, E: Into<Box<dyn Error + Send + Sync>>> WorkOutcome for Result<T, E> {
    fn outcome(self) -> Result<(), Box<dyn Error + Send + Sync>> {
        self.map_err(Into::into)?.outcome()
    }
}

/// The type `!` of an expression that never returns. Stable Rust has no name for it outside of function types.
type Never = <fn() -> ! as Returns>::Output;

trait Returns {
    type Output;
}

impl<T> Returns for fn() -> T {
    type Output = T;
}

#[allow(private_interfaces, reason = "the type is `!`, which nobody else has to name in this way")]
/// Lets work run until it is dropped, as an endless loop does.
impl WorkOutcome for Never {
    fn outcome(self) -> Result<(), Box<dyn Error + Send + Sync>> {
        self
    }
}

/// How the work ended.
#[derive(Debug)]
pub(crate) struct Done {
    pub(crate) end: WorkEnd,
    /// The error for the log, with its causes; `None` if there is none, or if the caller gets it, as from `run_once`.
    pub(crate) error: Option<String>,
}

impl Done {
    pub(crate) fn of(outcome: impl WorkOutcome) -> Self {
        match outcome.outcome() {
            Ok(()) => WorkEnd::Complete.into(),
            Err(error) => Self { end: WorkEnd::Failed, error: Some(with_causes(&*error)) },
        }
    }
}

impl From<WorkEnd> for Done {
    fn from(end: WorkEnd) -> Self {
        Self { end, error: None }
    }
}
