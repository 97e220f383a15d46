//! Tests against servers: real ones, and one that misbehaves on command.
#![allow(clippy::expect_used, clippy::unwrap_used, reason = "a test fails by panicking")]

mod harness;
mod s3;
