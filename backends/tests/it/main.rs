//! The guarantees of the stores, tested through their public interface.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

#[cfg(unix)]
mod file;
#[cfg(unix)]
mod sharing;
