//! The server's TLS certificate, and those of its clients.

use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use axum_server::tls_rustls::RustlsConfig;
use leaderelection_serving::expiry::{self, Validity};
use leaderelection_serving::secret;
use rustls::crypto::{CryptoProvider, aws_lc_rs};
use rustls::pki_types::pem::{self, PemObject as _};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::ClientCertVerifier;
use rustls::{RootCertStore, ServerConfig};
use tokio::sync::watch;

use crate::exit::Failure;

/// The files of a server with TLS.
#[derive(Clone, Debug)]
pub(crate) struct Files {
    pub(super) cert: PathBuf,
    pub(super) key: PathBuf,
    /// The authority of the clients, if they need certificates.
    pub(super) client_ca: Option<PathBuf>,
}

/// A certificate and its key, from files that may change.
#[derive(Clone, Debug)]
pub(crate) struct Tls {
    files: Files,
    config: RustlsConfig,
    validity: watch::Sender<Option<Validity>>,
}

impl Tls {
    pub(crate) fn load(files: Files) -> Result<Self, Failure> {
        let (config, validity) = read(&files)?;
        let (config, validity) = (RustlsConfig::from_config(config), watch::Sender::new(validity));
        Ok(Self { files, config, validity })
    }

    /// Reads the files again. Open connections keep the old certificates.
    pub(crate) fn reload(&self) -> Result<(), Failure> {
        let (config, validity) = read(&self.files)?;
        self.config.reload_from_config(config);
        self.validity.send_replace(validity);
        Ok(())
    }

    /// Tells of the end of the certificate, in the metrics of the lock `name` and in the log.
    pub(crate) fn tell_of_expiry(&self, name: impl Into<String>) {
        tokio::spawn(expiry::tell("pages", name.into(), self.validity.subscribe()));
    }

    pub(crate) fn config(&self) -> RustlsConfig {
        self.config.clone()
    }
}

fn read(Files { cert, key, client_ca }: &Files) -> Result<(Arc<ServerConfig>, Option<Validity>), Failure> {
    let chain = certificates("--tls-cert", cert)?;
    let validity = Validity::of_chain(&chain);
    let secret = secret::open(key)
        .map_err(pem::Error::Io)
        .and_then(PrivateKeyDer::from_pem_reader)
        .map_err(|error| unreadable("--tls-key", key, &error))?;
    let provider = Arc::new(aws_lc_rs::default_provider());
    let clients = client_ca.as_ref().map(|path| verifier(path, &provider)).transpose()?;
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .and_then(|builder| {
            match clients {
                Some(clients) => builder.with_client_cert_verifier(clients),
                None => builder.with_no_client_auth(),
            }
            .with_single_cert(chain, secret)
        })
        .map_err(|error| {
            let (cert, key) = (cert.display(), key.display());
            Failure::usage(format!("cannot serve with {cert} and {key}: {error}; check --tls-cert and --tls-key"))
        })?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok((Arc::new(config), validity))
}

/// Accepts the certificates of an authority.
fn verifier(path: &Path, provider: &Arc<CryptoProvider>) -> Result<Arc<dyn ClientCertVerifier>, Failure> {
    let mut roots = RootCertStore::empty();
    let unfit = |error: &dyn Display| {
        Failure::usage(format!("{}: not a CA certificate: {error}; check --client-ca", path.display()))
    };
    for certificate in certificates("--client-ca", path)? {
        roots.add(certificate).map_err(|error| unfit(&error))?;
    }
    WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::clone(provider))
        .build()
        .map_err(|error| unfit(&error))
}

fn certificates(flag: &str, path: &Path) -> Result<Vec<CertificateDer<'static>>, Failure> {
    let found = CertificateDer::pem_file_iter(path)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .map_err(|error| unreadable(flag, path, &error))?;
    if found.is_empty() {
        return Err(unreadable(flag, path, &pem::Error::NoItemsFound));
    }
    Ok(found)
}

fn unreadable(flag: &str, path: &Path, error: &pem::Error) -> Failure {
    let path = path.display();
    match error {
        pem::Error::Io(error) => Failure::usage(format!("cannot read {path}: {error}; check {flag}")),
        // The error message never contains the content of the file.
        _ => Failure::usage(format!("{path}: no matching PEM block found; check {flag}")),
    }
}
