//! A term from the start of its work to its outcome, as a pure state machine: why it ends, and what is left of it then.
//!
//! Who holds the lease is decided elsewhere: by an [`Election`](crate::election::Election) for a lock with a lease, and by
//! the member of a session for each of its locks. Both hold an [`Ending`] from the moment at which leadership ends.

#[cfg_attr(not(feature = "sessions"), allow(dead_code, reason = "only a session frees what others have left"))]
mod ending;
mod outcome;
mod reason;
#[cfg(test)]
mod tests;
mod work;

pub(crate) use ending::{Ending, Late};
pub use outcome::RunOutcome;
pub use reason::{BeginReason, EndReason};
pub use work::WorkEnd;
