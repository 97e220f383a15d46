//! The promises of the crate, tested through its public interface.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod admin;
mod bad_input;
mod bounded;
mod clock;
mod config;
mod election;
mod fence;
mod footprint;
mod history;
mod identity_clash;
mod lifecycle;
mod metrics;
mod new_leader;
mod observe;
mod observers;
mod operator;
mod record;
mod refused;
mod retry_after;
mod run_once;
mod run_while_leading;
mod semantics;
mod sequenced;
mod session;
mod sessions;
mod slots;
mod stalls;
mod store_check;
mod store_clock;
mod store_time;
mod support;
mod timings;
mod transfer;
