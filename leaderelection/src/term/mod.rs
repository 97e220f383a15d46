//! A term: why it begins and ends, how its work ends, and the outcome for the caller.
//!
//! Who holds the lease is decided elsewhere: by an [`Election`](crate::election::Election) for a lock with a lease, and by
//! the member of a session for each of its locks. The member holds an `Ending` from the moment at which leadership ends.

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
