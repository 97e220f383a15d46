//! Tests that run the programs as a newcomer would.
#![allow(clippy::expect_used, clippy::unwrap_used, reason = "a test fails by panicking")]

#[cfg(unix)]
mod failover;
