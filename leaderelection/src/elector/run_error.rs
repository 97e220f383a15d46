//! The error of [`run_while_leading`](crate::DefaultLeaderElector::run_while_leading).

use crate::election::TermEndReason;
use crate::store::check::StoreUnfit;
use crate::term::FencingToken;

/// The reason for which [`DefaultLeaderElector::run_while_leading`](crate::DefaultLeaderElector::run_while_leading) has
/// no output.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// The elector was cancelled before it led; the work was never started.
    #[error("cancelled before it could lead; the work was not started")]
    Cancelled,
    /// The store failed its [check](crate::store::StoreCheck); the work was never started.
    #[error("the work was not started: {0}")]
    StoreUnfit(#[from] StoreUnfit),
    /// The term ended before the work did, or during a cancellation; the work was started.
    #[error("leadership (fencing token {fencing_token}) ended before the work was complete: {reason}")]
    Lost {
        /// The term's token.
        fencing_token: FencingToken,
        /// The reason for the end of the term.
        reason: TermEndReason,
    },
}
