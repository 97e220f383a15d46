//! The faulty store and the log that the tests of all crates share.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

pub mod faulty;
pub mod logs;
