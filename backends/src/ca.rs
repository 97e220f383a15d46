//! Authorities of a private network, whose certificates are trusted beside those of the system.

use leaderelection::{StoreError, StoreErrorKind};
use rustls::RootCertStore;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;

/// A file with certificates of authorities in PEM. It is read for each client: somebody may replace it.
#[derive(Clone, Debug)]
pub(crate) struct Authorities {
    path: String,
    /// The place that names the file.
    setting: &'static str,
}

impl Authorities {
    /// Takes the file at `path`, which `setting` names.
    pub(crate) fn new(path: impl Into<String>, setting: &'static str) -> Self {
        Self { path: path.into(), setting }
    }

    /// Takes the file that the parameter `ca` of a URL names.
    pub(crate) fn of_url(path: &str) -> Self {
        Self::new(path, "the parameter ca")
    }

    /// Reads the certificates, of which there is at least one.
    fn read(&self) -> Result<Vec<CertificateDer<'static>>, StoreError> {
        let pem = std::fs::read(&self.path).map_err(|error| self.wrong(&format!("cannot be read: {error}")))?;
        let (mut roots, mut known) = (RootCertStore::empty(), Vec::new());
        for certificate in CertificateDer::pem_slice_iter(&pem) {
            let certificate = certificate.map_err(|error| self.wrong(&format!("is damaged: {error}")))?;
            // The bundle of a system has some that rustls does not know, at which a client would fail or panic.
            if roots.add(certificate.clone()).is_ok() {
                known.push(certificate);
            }
        }
        if known.is_empty() {
            return Err(self.wrong("has no certificate of an authority"));
        }
        Ok(known)
    }

    fn wrong(&self, problem: &str) -> StoreError {
        let Self { path, setting } = self;
        let message =
            format!("{path}, which {setting} names, {problem}; name a file with the authority's certificate in PEM");
        StoreError::new(StoreErrorKind::Fatal, message)
    }
}

#[cfg(feature = "s3")]
mod aws {
    use aws_sdk_s3::config::SharedHttpClient;
    use aws_smithy_http_client::proxy::ProxyConfig;
    use aws_smithy_http_client::tls::rustls_provider::CryptoMode;
    use aws_smithy_http_client::tls::{Provider, TlsContext, TrustStore};
    use aws_smithy_http_client::{Builder, ConnectorBuilder};
    use aws_smithy_runtime_api::client::runtime_components::RuntimeComponents;
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;
    use leaderelection::StoreError;

    use super::Authorities;

    impl Authorities {
        /// Creates a client without connections as the AWS SDK does, with the proxies of the environment. It trusts these
        /// authorities, too.
        pub(crate) fn http_client(&self) -> Result<SharedHttpClient, StoreError> {
            let mut trust = TrustStore::default();
            for certificate in self.read()? {
                trust.add_pem_certificate(pem_of(&certificate));
            }
            let trusted = TlsContext::builder().with_trust_store(trust).build();
            let trusted = trusted.map_err(|error| self.wrong(&format!("cannot be used: {error}")))?;
            Ok(Builder::new().build_with_connector_fn(move |settings, components| {
                let mut connector = ConnectorBuilder::default().tls_provider(Provider::Rustls(CryptoMode::AwsLc));
                connector.set_connector_settings(settings.cloned());
                connector.set_sleep_impl(components.and_then(RuntimeComponents::sleep_impl));
                connector.tls_context(trusted.clone()).proxy_config(ProxyConfig::from_env()).build()
            }))
        }
    }

    /// The one form that the SDK takes.
    fn pem_of(certificate: &[u8]) -> String {
        let text = STANDARD.encode(certificate);
        let lines = text.as_bytes().chunks(64).map(String::from_utf8_lossy).collect::<Vec<_>>().join("\n");
        format!("-----BEGIN CERTIFICATE-----\n{lines}\n-----END CERTIFICATE-----\n")
    }
}

#[cfg(any(feature = "azure", feature = "opendal-services"))]
mod with_reqwest {
    use leaderelection::StoreError;
    use reqwest::{Certificate, ClientBuilder};

    use super::Authorities;

    impl Authorities {
        /// Lets the client trust them, too.
        pub(crate) fn trusted_by(&self, client: ClientBuilder) -> Result<ClientBuilder, StoreError> {
            let certificates = self.read()?.into_iter().map(|certificate| Certificate::from_der(&certificate));
            let certificates: Result<Vec<_>, _> = certificates.collect();
            let certificates = certificates.map_err(|error| self.wrong(&format!("cannot be used: {error}")))?;
            Ok(client.tls_certs_merge(certificates))
        }
    }
}
