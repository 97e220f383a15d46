//! The crates on real servers and in real processes.
#![allow(clippy::expect_used, clippy::unwrap_used, reason = "a test fails by panicking")]

mod adapters;
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
mod fleet;
mod forgotten;
mod gcs;
mod harness;
mod history;
mod kube;
mod lying_network;
mod real_service;
mod s3;
mod url;
