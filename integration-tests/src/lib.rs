//! Servers and processes for the tests of the leaderelection crates.
#![cfg(feature = "servers")]
#![allow(clippy::expect_used, clippy::unwrap_used, reason = "a test whose server cannot be had fails by panicking")]

use std::time::Duration;
use std::{fs, thread};

use leaderelection::Timings;
use leaderelection_peers::{DEFAULT_PATH, Peers, SharedKey};

#[cfg(feature = "adapters")]
pub mod adapted;
#[cfg(all(unix, feature = "adapters"))]
pub mod connections;
#[cfg(feature = "gaps")]
pub mod fleet;
#[cfg(feature = "gaps")]
pub mod gaps;
pub mod history;
mod mutex;
pub mod operators;
#[cfg(feature = "adapters")]
pub mod place;
#[cfg(unix)]
pub mod program;
pub mod proxy;
pub mod relay;
pub mod servers;
#[cfg(unix)]
pub mod takeover;

/// Returns timings in milliseconds: lease duration, renew deadline and retry period. On a busy machine, they are
/// [longer](stretch).
///
/// # Panics
///
/// If they do not fit each other.
#[must_use]
pub fn timings(lease: u64, deadline: u64, retry: u64) -> Timings {
    // Once for all: the machine can become busier at any time.
    let stretch = stretch();
    let [lease, deadline, retry] = [lease, deadline, retry].map(|millis| Duration::from_millis(millis) * stretch);
    Timings::new(lease, deadline, retry).expect("timings that fit")
}

/// The peers of a process whose others are on this machine, and have the same key.
///
/// # Errors
///
/// If the key is short, or no port is free.
pub fn peers(key: &str) -> anyhow::Result<Peers> {
    let here = "127.0.0.1:0".parse()?;
    Ok(Peers::builder().key(SharedKey::new(key)?).plain_http(true).allow("127.0.0.1".parse()?).listen(here).build()?)
}

/// Returns the URL at which others reach these peers.
#[must_use]
pub fn address(peers: &Peers) -> Option<String> {
    peers.listens_at().map(|address| format!("http://{address}{DEFAULT_PATH}"))
}

/// Returns the factor by which everything takes longer on a busy machine: 1 while each processor has four tasks at most, and 4
/// at most. Terms that end because a process did not run in time are no terms that ended for the reason of a test.
#[must_use]
pub fn stretch() -> u32 {
    let average = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let tasks: f64 = average.split(' ').next().and_then(|load| load.parse().ok()).unwrap_or_default();
    let processors = thread::available_parallelism().map_or(1, usize::from) as f64;
    (1..4).find(|factor| tasks <= 4.0 * processors * f64::from(*factor)).unwrap_or(4)
}
