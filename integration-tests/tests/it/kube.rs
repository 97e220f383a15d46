//! The lock on Leases of Kubernetes: the answers of API servers, and candidates of client-go beside ours.

mod answers;
mod api;
mod client_go;
mod go_candidate;
mod server;

use kube::Config;
use leaderelection_backends::kubernetes::LeaseStore;

/// The store with the configuration of a user, whose client would repeat requests.
fn store(url: &str) -> LeaseStore {
    LeaseStore::new(Config::new(url.parse().expect("the URL of a server")), "default").expect("a client")
}
