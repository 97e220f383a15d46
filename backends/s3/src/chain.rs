//! The SDK's sources of credentials, found anew by each load.

use std::fs;

use aws_config::SdkConfig;
use aws_config::default_provider::credentials::DefaultCredentialsChain;
use aws_config::provider_config::ProviderConfig;
use aws_credential_types::provider::error::CredentialsError;
use aws_credential_types::provider::{self, ProvideCredentials, future};
use leaderelection_store_support::ca::Authorities;
use leaderelection_store_support::request::causes;
use leaderelection_store_support::variable;

use crate::http_client;

/// The SDK's default chain. The SDK reads the files of profiles once in the life of a chain, so each load makes another: a
/// program that runs for months has to see the keys that an agent replaces every hour.
#[derive(Debug)]
pub(crate) struct Chain {
    settings: SdkConfig,
    authorities: Option<Authorities>,
}

impl Chain {
    /// Takes the region and the kind of endpoints from settings that are loaded.
    pub(crate) fn of(settings: &SdkConfig, authorities: Option<Authorities>) -> Self {
        Self { settings: settings.clone(), authorities }
    }

    async fn credentials(&self) -> provider::Result {
        let region = self.settings.region().cloned();
        let config = ProviderConfig::default()
            .with_region(region.clone())
            .with_use_fips(self.settings.use_fips())
            .with_use_dual_stack(self.settings.use_dual_stack());
        // Token services are reached as the store is, with the same authorities.
        let client = http_client(self.authorities.as_ref()).map_err(CredentialsError::provider_error)?;
        let config = match client {
            Some(client) => config.with_http_client(client),
            None => config,
        };
        let mut chain = DefaultCredentialsChain::builder().configure(config);
        chain.set_region(region);
        chain.build().await.provide_credentials().await.map_err(|error| match &error {
            CredentialsError::CredentialsNotLoaded(_) if is_silence(&error) && is_on_ec2() => {
                CredentialsError::provider_error(error)
            }
            _ => error,
        })
    }
}

impl ProvideCredentials for Chain {
    fn provide_credentials<'a>(&'a self) -> future::ProvideCredentials<'a>
    where
        Self: 'a,
    {
        future::ProvideCredentials::new(self.credentials())
    }
}

/// Returns `true` if no connection to the machine's metadata service was possible. To the SDK this means that the machine has
/// none, and its error has no type of its own.
fn is_silence(error: &CredentialsError) -> bool {
    causes(error).any(|error| error.to_string().contains("could not communicate with IMDS"))
}

/// Returns `true` if the machine has a metadata service, whether or not it answers now.
pub(crate) fn is_on_ec2() -> bool {
    let says_so = |file: &str| fs::read_to_string(file).is_ok_and(|vendor| vendor.trim() == "Amazon EC2");
    variable("AWS_EC2_METADATA_SERVICE_ENDPOINT").is_some() || says_so("/sys/class/dmi/id/sys_vendor")
}
