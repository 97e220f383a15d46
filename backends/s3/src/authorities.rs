//! The HTTP client of the AWS SDK, with the provider of TLS that the features name, and with the authorities of a private network.

use aws_sdk_s3::config::SharedHttpClient;
use aws_smithy_http_client::proxy::ProxyConfig;
use aws_smithy_http_client::tls::rustls_provider::CryptoMode;
use aws_smithy_http_client::tls::{Provider, TlsContext, TrustStore};
use aws_smithy_http_client::{Builder, ConnectorBuilder};
use aws_smithy_runtime_api::client::runtime_components::RuntimeComponents;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use leaderelection::{StoreError, StoreErrorKind};
use leaderelection_store_support::ca::Authorities;

/// Creates a client without connections as the AWS SDK does, with the proxies of the environment. It trusts these
/// authorities, too. Returns `None` where the SDK makes one by itself.
pub(crate) fn http_client(authorities: Option<&Authorities>) -> Result<Option<SharedHttpClient>, StoreError> {
    // The SDK makes one with aws-lc-rs by itself, which trusts the authorities of the system alone.
    if cfg!(feature = "aws-lc-rs") && authorities.is_none() {
        return Ok(None);
    }
    let mut tls = TlsContext::builder();
    if let Some(authorities) = authorities {
        let mut trust = TrustStore::default();
        for certificate in authorities.read()? {
            trust.add_pem_certificate(pem_of(&certificate));
        }
        tls = tls.with_trust_store(trust);
    }
    let tls = tls.build().map_err(|error| match authorities {
        Some(authorities) => authorities.wrong(&format!("cannot be used: {error}")),
        None => StoreError::new(StoreErrorKind::Fatal, format!("cannot create a TLS client: {error}")),
    })?;
    Ok(Some(Builder::new().build_with_connector_fn(move |settings, components| {
        let mut connector = ConnectorBuilder::default().tls_provider(PROVIDER);
        connector.set_connector_settings(settings.cloned());
        connector.set_sleep_impl(components.and_then(RuntimeComponents::sleep_impl));
        connector.tls_context(tls.clone()).proxy_config(ProxyConfig::from_env()).build()
    })))
}

/// The provider of TLS that the features name.
#[cfg(feature = "aws-lc-rs")]
const PROVIDER: Provider = Provider::Rustls(CryptoMode::AwsLc);
#[cfg(all(feature = "ring", not(feature = "aws-lc-rs")))]
const PROVIDER: Provider = Provider::Rustls(CryptoMode::Ring);

/// The one form that the SDK takes.
fn pem_of(certificate: &[u8]) -> String {
    let text = STANDARD.encode(certificate);
    let lines = text.as_bytes().chunks(64).map(String::from_utf8_lossy).collect::<Vec<_>>().join("\n");
    format!("-----BEGIN CERTIFICATE-----\n{lines}\n-----END CERTIFICATE-----\n")
}
