//! Tests that run the programs with the commands of the documentation.
#![cfg(unix)]
#![allow(clippy::expect_used, clippy::unwrap_used, reason = "a test fails by panicking")]

mod fenced_writes;
mod job;
mod leader;
mod shards;
mod spawned;
