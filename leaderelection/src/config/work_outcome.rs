//! The outcome of a leader's work.

use std::convert::Infallible;
use std::error::Error;

use crate::election::{TermEndReason, WorkEnd};
use crate::util::causes::with_causes;

/// The output of the work of a term, as [`std::process::Termination`] is the output of `main`.
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
    /// Returns the error with which the work failed, if it failed.
    ///
    /// # Errors
    ///
    /// The error of the work. The elector logs the error with its causes.
    fn outcome(self) -> Result<(), Box<dyn Error + Send + Sync>>;
}

impl WorkOutcome for () {
    fn outcome(self) -> Result<(), Box<dyn Error + Send + Sync>> {
        Ok(())
    }
}

/// The output of work that ends with [`Leadership::lost`](crate::Leadership::lost).
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

/// The type of an expression that never returns, which has no stable name.
type Never = <fn() -> ! as Returns>::Output;

trait Returns {
    type Output;
}

impl<T> Returns for fn() -> T {
    type Output = T;
}

#[allow(private_interfaces, reason = "the type is `!`, which nobody else has to name in this way")]
/// The output of work that runs until it is dropped.
impl WorkOutcome for Never {
    fn outcome(self) -> Result<(), Box<dyn Error + Send + Sync>> {
        self
    }
}

/// The end of work that ran.
#[derive(Debug)]
pub(crate) struct Done {
    pub(crate) end: WorkEnd,
    /// The error that the log tells, and its causes. The caller of `run_once` gets the error itself.
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
