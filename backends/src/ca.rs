//! Authorities of a private network, whose certificates are trusted beside those of the system.

use aws_sdk_s3::config::SharedHttpClient;
use aws_smithy_http_client::tls::rustls_provider::CryptoMode;
use aws_smithy_http_client::tls::{Provider, TlsContext, TrustStore};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use leaderelection::{StoreError, StoreErrorKind};
use rustls::RootCertStore;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;

/// The authorities that the HTTP clients of a store trust, each client with connections of its own.
#[derive(Clone, Debug)]
pub(crate) struct Trusted(TlsContext);

impl Trusted {
    /// Creates a client without connections.
    pub(crate) fn http_client(&self) -> SharedHttpClient {
        let client = aws_smithy_http_client::Builder::new().tls_provider(Provider::Rustls(CryptoMode::AwsLc));
        client.tls_context(self.0.clone()).build_https()
    }
}

/// Reads the authorities in the file at `path`, which are trusted beside those of the system. `setting` is where the file is
/// named.
pub(crate) fn read(path: &str, setting: &str) -> Result<Trusted, StoreError> {
    let wrong = |problem: String| {
        let message =
            format!("{path}, which {setting} names, {problem}; name a file with the authority's certificate in PEM");
        StoreError::new(StoreErrorKind::Fatal, message)
    };
    let pem = std::fs::read(path).map_err(|error| wrong(format!("cannot be read: {error}")))?;
    let (mut roots, mut trust) = (RootCertStore::empty(), TrustStore::default());
    for certificate in CertificateDer::pem_slice_iter(&pem) {
        let certificate = certificate.map_err(|error| wrong(format!("is damaged: {error}")))?;
        // The bundle of a system has some that rustls does not know, at which the client would panic.
        if roots.add(certificate.clone()).is_ok() {
            trust.add_pem_certificate(pem_of(&certificate));
        }
    }
    if roots.is_empty() {
        return Err(wrong("has no certificate of an authority".to_owned()));
    }
    let trusted = TlsContext::builder().with_trust_store(trust).build();
    trusted.map(Trusted).map_err(|error| wrong(format!("cannot be used: {error}")))
}

fn pem_of(certificate: &[u8]) -> String {
    let text = STANDARD.encode(certificate);
    let lines = text.as_bytes().chunks(64).map(String::from_utf8_lossy).collect::<Vec<_>>().join("\n");
    format!("-----BEGIN CERTIFICATE-----\n{lines}\n-----END CERTIFICATE-----\n")
}
