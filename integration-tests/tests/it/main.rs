//! The crates on real servers and in real processes.
#![allow(clippy::expect_used, clippy::unwrap_used, reason = "a test fails by panicking")]
#![cfg_attr(
    not(feature = "all-tests"),
    allow(dead_code, unused_imports, reason = "some of it is for tests that take long")
)]

#[cfg(feature = "all-tests")]
mod adapters;
#[cfg(feature = "all-tests")]
mod ages;
mod azure;
mod calls;
mod cloud;
#[cfg(unix)]
mod contest;
mod every_store;
mod fence;
#[cfg(unix)]
mod file_store;
#[cfg(feature = "all-tests")]
mod fleet;
mod forgotten;
mod gcs;
mod harness;
mod history;
#[cfg(unix)]
mod idle;
mod kube;
mod lying_network;
#[cfg(feature = "all-tests")]
mod operators;
#[cfg(feature = "all-tests")]
mod real_service;
mod s3;
mod url;

/// The rounds of a race of candidates: all in the long run, and one beside a change, because a client without optimization takes
/// most of the time of a short run.
const fn rounds(all: usize) -> usize {
    if cfg!(feature = "all-tests") { all } else { 1 }
}
