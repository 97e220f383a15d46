//! The crates against real servers and real processes, and the protocol against every history.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod model;
