//! The clients of a store: how the next one is made, and what they leave out.

use std::sync::Arc;

use aws_config::imds::region::ImdsRegionProvider;
use aws_config::provider_config::ProviderConfig;
use aws_sdk_s3::Client;
use aws_sdk_s3::config::{Config, Region, RequestChecksumCalculation};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use leaderelection_store_support::ca::Authorities;
use leaderelection_store_support::request::fresh::Fresh;

use crate::http_client;
use md5::{Digest as _, Md5};
use tokio::sync::OnceCell;

/// The parts of a client that its configuration does not have.
#[derive(Clone, Debug, Default)]
pub(crate) struct Made {
    pub(crate) authorities: Option<Authorities>,
    /// The HTTP client in the configuration is one of ours, and can be made anew.
    pub(crate) has_own_client: bool,
    /// The region of this machine, which its metadata service did not tell at first.
    pub(crate) region: Option<Arc<OnceCell<Region>>>,
}

impl Made {
    async fn region(&self) -> Option<Region> {
        let config = match http_client(None).ok().flatten() {
            Some(client) => ProviderConfig::default().with_http_client(client),
            None => ProviderConfig::default(),
        };
        let machine = ImdsRegionProvider::builder().configure(&config).build();
        let told = self.region.as_ref()?.get_or_try_init(async || machine.region().await.ok_or(()));
        told.await.ok().cloned()
    }
}

/// The clients of this configuration, which share its credentials, and whose connections are their own. An HTTP client of
/// the program has its own connections, for all of them.
pub(crate) fn renewed(config: Config, made: Made) -> Fresh<Client> {
    let client = Fresh::fixed(Client::from_conf(config.clone()));
    if config.http_client().is_some() && !made.has_own_client {
        return client;
    }
    client.renewed_by(move || {
        let (made, mut config) = (made.clone(), config.to_builder());
        Box::pin(async move {
            // The SDK's default client stays the default one: the program may have chosen how it is made.
            if made.has_own_client
                && let Some(client) = http_client(made.authorities.as_ref())?
            {
                config = config.http_client(client);
            }
            if let Some(region) = made.region().await {
                config = config.region(region);
            }
            Ok(Client::from_conf(config.build()))
        })
    })
}

/// Returns the digest of a body whose checksum the client does not send. A bucket whose objects are kept for a time by default
/// (Object Lock) demands one of both, and every store knows the older one.
pub(crate) fn digest(client: &Client, body: &[u8]) -> Option<String> {
    let is_checked = client.config().request_checksum_calculation() != Some(&RequestChecksumCalculation::WhenRequired);
    (!is_checked).then(|| STANDARD.encode(Md5::digest(body)))
}
