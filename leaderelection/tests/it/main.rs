//! What the crate promises, through its public interface.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod bad_input;
mod config;
mod conformance;
mod election;
mod footprint;
mod lifecycle;
mod observers;
mod record;
mod semantics;
mod support;
