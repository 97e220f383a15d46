//! Tests against real processes and real servers.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

#[cfg(unix)]
mod file_store;
