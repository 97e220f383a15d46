//! Servers and processes for the tests of the leaderelection crates.
#![allow(clippy::expect_used, clippy::unwrap_used, reason = "a test whose server cannot be had fails by panicking")]

use std::time::Duration;

use leaderelection::Timings;

#[cfg(feature = "adapters")]
pub mod adapted;
#[cfg(unix)]
pub mod crash;
pub mod history;
mod mutex;
#[cfg(feature = "adapters")]
pub mod place;
#[cfg(unix)]
pub mod program;
pub mod proxy;
pub mod servers;
#[cfg(unix)]
pub mod takeover;

/// Returns timings in milliseconds: lease duration, renew deadline and retry period.
///
/// # Panics
///
/// If they do not fit each other.
#[must_use]
pub fn timings(lease: u64, deadline: u64, retry: u64) -> Timings {
    let [lease, deadline, retry] = [lease, deadline, retry].map(Duration::from_millis);
    Timings::new(lease, deadline, retry).expect("timings that fit")
}
