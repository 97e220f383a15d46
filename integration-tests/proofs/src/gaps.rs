//! The time without a leader of locks that sessions hold, measured on paused time beside a store that is as slow as a real
//! one: what every change of the members costs the users of each lock.

mod measure;
mod member;
mod program;
pub(crate) mod store;
mod table;
mod watch;

pub use measure::{Event, Measured, Settings};
pub use program::Arguments;
pub use store::{Pace, Throttle};
pub use table::{HEAD, row};
