//! Followers and leaders on real sockets.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod certificates;
mod fake;
mod fleet;
mod lies;
mod messages;
mod refused;
mod server;
mod settings;
mod support;
mod tls;
