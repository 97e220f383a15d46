//! The errors of elections that could not begin, and of `run_while_leading`.

use crate::election::TermEndReason;
use crate::store::check::StoreUnfit;
use crate::term::FencingToken;

/// Why an election has not begun.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ElectionError {
    /// The store failed the [check](crate::implement::StoreCheck) that the configuration requires.
    #[error(transparent)]
    StoreUnfit(#[from] StoreUnfit),
    /// Another call of the same elector or session has not ended, or a caller still holds its [`Term`](crate::Term).
    #[error("this elector or session is already running; wait until the other call ends, or create another one")]
    AlreadyRunning,
    /// Both the caller and `on_start_leading` would do the leader's work.
    #[error(
        "on_start_leading is set, but {method} leaves the work to its caller; do not set on_start_leading, or call run or campaign"
    )]
    CallbackIsSet {
        /// The method that was called.
        method: &'static str,
    },
}

/// Why [`run_while_leading`](crate::Elector::run_while_leading) has no output.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// The elector was cancelled before it led. The work was never started.
    #[error("cancelled before it could lead; the work was not started")]
    Cancelled,
    /// No election has begun. The work was never started.
    #[error("the work was not started: {0}")]
    Election(#[from] ElectionError),
    /// Leadership ended before the work was complete. Part of the work may have been done.
    #[error("leadership (fencing token {fencing_token}) ended before the work was complete: {reason}")]
    Lost {
        /// The term's token.
        fencing_token: FencingToken,
        /// The reason for the end of the term.
        reason: TermEndReason,
    },
}
