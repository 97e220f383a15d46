//! The HTTP client of the AWS SDK that trusts the authorities of a private network, too.

use aws_sdk_s3::config::SharedHttpClient;
use aws_smithy_http_client::proxy::ProxyConfig;
use aws_smithy_http_client::tls::rustls_provider::CryptoMode;
use aws_smithy_http_client::tls::{Provider, TlsContext, TrustStore};
use aws_smithy_http_client::{Builder, ConnectorBuilder};
use aws_smithy_runtime_api::client::runtime_components::RuntimeComponents;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use leaderelection::StoreError;
use leaderelection_store_support::ca::Authorities;

/// Creates a client without connections as the AWS SDK does, with the proxies of the environment. It trusts these
/// authorities, too.
pub(crate) fn http_client(authorities: &Authorities) -> Result<SharedHttpClient, StoreError> {
    let mut trust = TrustStore::default();
    for certificate in authorities.read()? {
        trust.add_pem_certificate(pem_of(&certificate));
    }
    let trusted = TlsContext::builder().with_trust_store(trust).build();
    let trusted = trusted.map_err(|error| authorities.wrong(&format!("cannot be used: {error}")))?;
    Ok(Builder::new().build_with_connector_fn(move |settings, components| {
        let mut connector = ConnectorBuilder::default().tls_provider(Provider::Rustls(CryptoMode::AwsLc));
        connector.set_connector_settings(settings.cloned());
        connector.set_sleep_impl(components.and_then(RuntimeComponents::sleep_impl));
        connector.tls_context(trusted.clone()).proxy_config(ProxyConfig::from_env()).build()
    }))
}

/// The one form that the SDK takes.
fn pem_of(certificate: &[u8]) -> String {
    let text = STANDARD.encode(certificate);
    let lines = text.as_bytes().chunks(64).map(String::from_utf8_lossy).collect::<Vec<_>>().join("\n");
    format!("-----BEGIN CERTIFICATE-----\n{lines}\n-----END CERTIFICATE-----\n")
}
