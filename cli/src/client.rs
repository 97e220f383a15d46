//! Clients of HTTP.

use std::path::Path;
use std::time::Duration;

use reqwest::redirect::Policy;
use reqwest::{Client, Result};

/// Creates a client that asks at `url` and follows no redirect. A small container has no certificates of authorities, without
/// which a client with TLS cannot be made. Plain HTTP needs none of them, unless a proxy is asked with TLS. Each request has a
/// connection of its own: requests are rare, and a kept connection may lead nowhere by then.
pub(crate) fn client_for(url: &str, timeout: Duration) -> Result<Client> {
    let begin = || Client::builder().redirect(Policy::none()).timeout(timeout).pool_max_idle_per_host(0);
    match begin().build() {
        Err(_) if url.starts_with("http://") => begin().tls_certs_only([]).build(),
        built => built,
    }
}

/// Creates a client that asks the sidecar on this machine, in plain HTTP, and at its socket if it has one. It reads no
/// certificates, because each probe of a container creates one.
pub(crate) fn client_for_sidecar(timeout: Duration, socket: Option<&Path>) -> Result<Client> {
    let client = Client::builder().redirect(Policy::none()).timeout(timeout).no_proxy().tls_certs_only([]);
    #[cfg(unix)]
    let client = match socket {
        Some(path) => client.unix_socket(path),
        None => client,
    };
    #[cfg(not(unix))]
    let _ = socket;
    client.build()
}
