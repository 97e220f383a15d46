//! What the tests stand on: servers to test against, a model of the protocol, and a simulation of its use.
#![allow(clippy::expect_used, clippy::unwrap_used, reason = "a test whose server cannot be had fails by panicking")]

pub mod model;
#[cfg(feature = "servers")]
pub mod servers;
pub mod simulation;
