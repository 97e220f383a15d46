//! The faulty store, the log and the candidate of a scenario, and hostile numbers, for the tests of all crates.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

pub mod borders;
pub mod faulty;
pub mod logs;
#[cfg(feature = "election")]
pub mod play;
#[cfg(feature = "paused")]
pub mod spans;
