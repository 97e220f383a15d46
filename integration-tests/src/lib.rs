//! What the tests stand on: servers to test against, and a model of the protocol to explore.
#![allow(clippy::expect_used, clippy::unwrap_used, reason = "a test whose server cannot be had fails by panicking")]

pub mod contender;
pub mod model;
pub mod proxy;
pub mod servers;
