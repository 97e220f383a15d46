//! Tests against servers: real ones, and one that misbehaves on command.

// Helpers of tests are test code, which the lints only see in functions marked `#[test]`.
#![allow(clippy::expect_used, clippy::unwrap_used)]

mod harness;
mod s3;
