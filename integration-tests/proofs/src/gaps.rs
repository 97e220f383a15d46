//! The time without a leader of locks that sessions hold: what every change of the members costs the users of each lock. It is
//! measured in simulated time beside a store in memory that is as slow as a real one, or beside any other store.

mod measure;
mod member;
mod program;
mod watch;

pub use measure::{Event, Measured, Open, Settings};
pub use program::{Arguments, HEAD, row};

pub use crate::counted::{Pace, Pauses, Throttle};
