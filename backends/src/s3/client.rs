//! The clients of a store: how the next one is made, and what they leave out.

use std::convert::Infallible;

use aws_sdk_s3::Client;
use aws_sdk_s3::config::{Config, RequestChecksumCalculation};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use md5::{Digest as _, Md5};

use crate::ca::Trusted;
use crate::request::fresh::Fresh;

/// The clients of this configuration, which share its credentials, and whose connections are their own. An HTTP client of
/// the program has its own connections, for all of them.
pub(super) fn renewed(config: Config, trusted: Option<Trusted>) -> Fresh<Client> {
    let client = Client::from_conf(config.clone());
    match (trusted, config.http_client()) {
        (None, Some(_)) => Fresh::fixed(client),
        (None, None) => Fresh::new(client, move || Ok::<_, Infallible>(Client::from_conf(config.clone()))),
        (Some(trusted), _) => Fresh::new(client, move || {
            let config = config.to_builder().http_client(trusted.http_client());
            Ok::<_, Infallible>(Client::from_conf(config.build()))
        }),
    }
}

/// Returns the digest of a body whose checksum the client does not send. A bucket whose objects are kept for a time by default
/// (Object Lock) demands one of both, and every store knows the older one.
pub(super) fn digest(client: &Client, body: &[u8]) -> Option<String> {
    let is_checked = client.config().request_checksum_calculation() != Some(&RequestChecksumCalculation::WhenRequired);
    (!is_checked).then(|| STANDARD.encode(Md5::digest(body)))
}
