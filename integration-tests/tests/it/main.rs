//! Tests against real processes and servers, and against a server that misbehaves on command.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

#[cfg(unix)]
mod file_store;
mod harness;
mod s3;
