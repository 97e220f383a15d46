//! Tests against real processes, real servers, and a server that misbehaves on command.
#![allow(clippy::expect_used, clippy::unwrap_used, reason = "a test fails by panicking")]

#[cfg(unix)]
mod file_store;
mod harness;
mod s3;
