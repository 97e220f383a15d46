//! What the crate promises, through its public interface.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod admin;
mod bad_input;
mod broken_store;
mod clock;
mod config;
mod conformance;
mod election;
mod footprint;
mod history;
mod identity_clash;
mod lifecycle;
mod metrics;
mod observers;
mod probe;
mod record;
mod require_probe;
mod semantics;
mod stalls;
mod support;
mod transfer;
mod troubled_store;
