//! The protocol against every history, and against many of the real elector.
#![allow(clippy::expect_used, clippy::unwrap_used, reason = "a test fails by panicking")]

mod model;
mod simulation;
