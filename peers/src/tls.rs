//! TLS between peers: an authority of their own, and certificates on both sides.

use std::path::Path;
use std::sync::Arc;

use leaderelection::ConfigError;
use leaderelection_serving::expiry::Validity;
use leaderelection_serving::secret;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{Resumption, WebPkiServerVerifier};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::server::{NoServerSessionStorage, VerifierBuilderError, WebPkiClientVerifier};
use rustls::{ClientConfig, DigitallySignedStruct, Error, RootCertStore, ServerConfig, SignatureScheme};

/// The files of a peer's TLS.
#[derive(Clone, Debug, Default)]
pub(crate) struct Files {
    pub(crate) authority: Option<Box<Path>>,
    pub(crate) certificate: Option<(Box<Path>, Box<Path>)>,
    /// The name that every peer's certificate has; `None` if it has the host of the address.
    pub(crate) name: Option<String>,
}

/// The settings of both sides, as far as the files allow them.
#[derive(Clone, Debug)]
pub(crate) struct Tls {
    /// `None` without an authority.
    pub(crate) client: Option<Arc<ClientConfig>>,
    /// `None` without a certificate.
    pub(crate) server: Option<Arc<ServerConfig>>,
    /// The validity of the certificate, if there is one.
    pub(crate) validity: Option<Validity>,
}

/// A certificate with those above it, and its key.
type Identity = (Vec<CertificateDer<'static>>, PrivateKeyDer<'static>);

impl Files {
    /// Every file.
    pub(crate) fn paths(&self) -> impl Iterator<Item = &Path> {
        let pair = self.certificate.as_ref().map(|(certificate, key)| [certificate, key]);
        self.authority.iter().chain(pair.into_iter().flatten()).map(|path| &**path)
    }

    /// Reads the files.
    pub(crate) fn load(&self) -> Result<Tls, ConfigError> {
        let provider = match (&self.authority, &self.certificate) {
            (None, None) => return Ok(Tls { client: None, server: None, validity: None }),
            _ => provider()?,
        };
        let roots = self.authority.as_deref().map(roots).transpose()?;
        let name = self.name.clone().map(ServerName::try_from).transpose();
        let name = name.map_err(|error| {
            ConfigError::new("peer_name", format!("({:?}) is no name of a certificate: {error}", self.name))
        })?;
        let identity = self.identity()?;
        let client = roots.as_ref().map(|roots| client(&provider, roots, name, identity.as_ref())).transpose()?;
        let server = identity.as_ref().map(|identity| server(&provider, roots, identity)).transpose()?;
        let validity = identity.and_then(|(chain, _)| Validity::of_chain(&chain));
        Ok(Tls { client, server, validity })
    }

    fn identity(&self) -> Result<Option<Identity>, ConfigError> {
        let Some((certificate, key)) = &self.certificate else { return Ok(None) };
        let chain = certificates("certificate", certificate)?;
        let wrong = |error: &dyn std::fmt::Display| {
            ConfigError::new("certificate_key", format!("in {}: {error}", key.display()))
        };
        let file = secret::open(key).map_err(|error| wrong(&error))?;
        let key = PrivateKeyDer::from_pem_reader(file).map_err(|error| wrong(&error))?;
        Ok(Some((chain, key)))
    }
}

/// The provider of TLS that the program has installed, or else the one that a feature names.
pub(crate) fn provider() -> Result<Arc<CryptoProvider>, ConfigError> {
    if let Some(installed) = CryptoProvider::get_default() {
        return Ok(Arc::clone(installed));
    }
    #[cfg(feature = "aws-lc-rs")]
    return Ok(Arc::new(rustls::crypto::aws_lc_rs::default_provider()));
    #[cfg(all(feature = "ring", not(feature = "aws-lc-rs")))]
    return Ok(Arc::new(rustls::crypto::ring::default_provider()));
    // rustls panics if its features name none or two.
    #[cfg(not(any(feature = "ring", feature = "aws-lc-rs")))]
    return std::panic::catch_unwind(|| Arc::clone(ClientConfig::builder().crypto_provider())).map_err(|_| {
        ConfigError::new(
            "peers",
            "need a provider of TLS: enable the feature aws-lc-rs or ring of leaderelection-peers, or call \
             rustls::crypto::CryptoProvider::install_default at the start of the program",
        )
    });
}

/// The configuration of a client that speaks plain HTTP and trusts nobody. Without one, reqwest would read the certificates of all
/// authorities, which a small container has not.
pub(crate) fn of_plain_http() -> Result<ClientConfig, ConfigError> {
    let builder =
        ClientConfig::builder_with_provider(provider()?).with_safe_default_protocol_versions().map_err(unusable)?;
    Ok(builder.with_root_certificates(RootCertStore::empty()).with_no_client_auth())
}

fn client(
    provider: &Arc<CryptoProvider>,
    roots: &Arc<RootCertStore>,
    name: Option<ServerName<'static>>,
    identity: Option<&Identity>,
) -> Result<Arc<ClientConfig>, ConfigError> {
    let inner = WebPkiServerVerifier::builder_with_provider(Arc::clone(roots), Arc::clone(provider))
        .build()
        .map_err(unusable_authority)?;
    let builder = ClientConfig::builder_with_provider(Arc::clone(provider))
        .with_safe_default_protocol_versions()
        .map_err(unusable)?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(OfAuthority { inner, name }));
    let mut config = match identity {
        Some((chain, key)) => builder.with_client_auth_cert(chain.clone(), key.clone_key()).map_err(unusable)?,
        None => builder.with_no_client_auth(),
    };
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    // A resumed session would not check the certificate again.
    config.resumption = Resumption::disabled();
    Ok(Arc::new(config))
}

fn server(
    provider: &Arc<CryptoProvider>,
    roots: Option<Arc<RootCertStore>>,
    (chain, key): &Identity,
) -> Result<Arc<ServerConfig>, ConfigError> {
    let builder = ServerConfig::builder_with_provider(Arc::clone(provider))
        .with_safe_default_protocol_versions()
        .map_err(unusable)?;
    let builder = match roots {
        Some(roots) => {
            let verifier = WebPkiClientVerifier::builder_with_provider(roots, Arc::clone(provider)).build();
            builder.with_client_cert_verifier(verifier.map_err(unusable_authority)?)
        }
        None => builder.with_no_client_auth(),
    };
    let mut config = builder.with_single_cert(chain.clone(), key.clone_key()).map_err(unusable)?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    config.send_tls13_tickets = 0;
    config.session_storage = Arc::new(NoServerSessionStorage {});
    Ok(Arc::new(config))
}

fn roots(path: &Path) -> Result<Arc<RootCertStore>, ConfigError> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates("ca", path)? {
        roots
            .add(certificate)
            .map_err(|error| ConfigError::new("ca", format!("in {} cannot be used: {error}", path.display())))?;
    }
    Ok(Arc::new(roots))
}

fn certificates(setting: &'static str, path: &Path) -> Result<Vec<CertificateDer<'static>>, ConfigError> {
    let read = CertificateDer::pem_file_iter(path).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    let chain = read.map_err(|error| ConfigError::new(setting, format!("in {}: {error}", path.display())))?;
    if chain.is_empty() {
        return Err(ConfigError::new(setting, format!("in {} is missing; give a file in PEM", path.display())));
    }
    Ok(chain)
}

fn unusable_authority(error: VerifierBuilderError) -> ConfigError {
    ConfigError::new("ca", format!("cannot be used: {error}"))
}

fn unusable(error: Error) -> ConfigError {
    ConfigError::new("certificate", format!("and its key cannot be used: {error}"))
}

/// Accepts the certificates of an authority, for the name from the configuration, or for the host of the address.
#[derive(Debug)]
struct OfAuthority {
    inner: Arc<WebPkiServerVerifier>,
    name: Option<ServerName<'static>>,
}

impl ServerCertVerifier for OfAuthority {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let name = self.name.as_ref().unwrap_or(server_name);
        self.inner.verify_server_cert(end_entity, intermediates, name, ocsp_response, now)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.inner.verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.inner.verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.inner.supported_verify_schemes()
    }
}
