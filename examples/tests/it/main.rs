//! Tests that run the programs as a newcomer would.
#![cfg(unix)]
#![allow(clippy::expect_used, clippy::unwrap_used, reason = "a test fails by panicking")]

mod failover;
mod fenced_writes;
mod job;
mod operator;
mod shards;
