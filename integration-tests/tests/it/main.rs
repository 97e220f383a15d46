//! The crates against real servers and real processes, and the protocol against every history.
#![allow(clippy::expect_used, clippy::unwrap_used, reason = "a test fails by panicking")]

#[cfg(unix)]
mod file_store;
mod harness;
mod lying_network;
mod model;
mod s3;
