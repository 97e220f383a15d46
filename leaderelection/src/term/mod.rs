//! A term: why it begins and ends, how its work ends, and the outcome for the caller.
//!
//! Who leads is decided elsewhere: for a lock with its own lease by an [`Election`](crate::election::Election), and for
//! the locks of a session by its member. When leadership of such a lock ends, the member holds an `Ending` for it.

#[cfg(feature = "sessions")]
mod ending;
mod outcome;
mod reason;
#[cfg(all(test, feature = "sessions"))]
mod tests;
mod token;
mod work;

#[cfg(feature = "sessions")]
pub(crate) use ending::{Ending, Timeout};
pub use outcome::RunOutcome;
pub use reason::{BeginReason, TermEndReason};
pub use token::FencingToken;
pub use work::WorkEnd;
