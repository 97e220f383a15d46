//! The guarantees of the stores, tested through their public interface.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

#[cfg(unix)]
mod file;
#[cfg(feature = "object-store")]
mod object_store;
#[cfg(feature = "opendal")]
mod opendal;
#[cfg(unix)]
mod sharing;
