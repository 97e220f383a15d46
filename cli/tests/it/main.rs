//! Tests that use the command line as people and scripts do.
#![cfg(unix)]
#![allow(clippy::expect_used, clippy::unwrap_used, reason = "a test fails by panicking")]

mod serve;
