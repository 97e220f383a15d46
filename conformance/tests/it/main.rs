//! The probe and the suites, on correct stores and on stores with known faults.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod broken_store;
mod endpoints;
mod fence;
mod probe;
mod probe_first;
mod sequenced;
mod suites;
mod wrapper;
