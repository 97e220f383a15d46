//! Clients of HTTP.

use reqwest::redirect::Policy;
use reqwest::{Client, ClientBuilder};

/// Begins a client that asks at `url` and follows no redirect. For plain HTTP, the client reads no certificates of
/// authorities: a small container has none, and without any a client with TLS cannot be made.
pub(crate) fn client_for(url: &str) -> ClientBuilder {
    let client = Client::builder().redirect(Policy::none());
    if url.starts_with("http://") { client.tls_certs_only([]) } else { client }
}
