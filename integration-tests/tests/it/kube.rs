//! The lock on Kubernetes Leases: the answers of API servers, and candidates of client-go beside ours.

mod announcer;
mod answers;
mod api;
#[cfg(feature = "all-tests")]
mod client_go;
mod go_candidate;
#[cfg(feature = "all-tests")]
mod migration;
#[cfg(feature = "all-tests")]
mod one_object;
mod ours;
mod server;
mod stock;
mod tokens;

use std::time::Duration;

use kube::Config;
use leaderelection_backends::kubernetes::LeaseStore;

/// The time limit for every required event.
const PATIENCE: Duration = Duration::from_secs(120);

/// The lease of all candidates.
const LEASE: Duration = Duration::from_secs(5);

const RETRY: Duration = Duration::from_millis(300);

/// The store with the configuration of a user, whose client would repeat requests.
fn store(url: &str) -> LeaseStore {
    LeaseStore::new(Config::new(url.parse().expect("the URL of a server")), "default").expect("a client")
}
