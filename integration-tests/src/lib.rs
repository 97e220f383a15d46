//! Servers and processes for the tests of the leaderelection crates.
#![allow(clippy::expect_used, clippy::unwrap_used, reason = "a test whose server cannot be had fails by panicking")]

pub mod contender;
#[cfg(unix)]
pub mod program;
pub mod proxy;
pub mod servers;
