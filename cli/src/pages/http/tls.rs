//! The server's TLS certificate.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use axum_server::tls_rustls::RustlsConfig;
use leaderelection_peers::expiry::{self, Validity};
use leaderelection_peers::secret;
use rustls::ServerConfig;
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::pem::{self, PemObject as _};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::sync::watch;

use crate::exit::{Exit, Failure};

/// A certificate and its key, from files that may change.
#[derive(Clone, Debug)]
pub(crate) struct Tls {
    cert: PathBuf,
    key: PathBuf,
    config: RustlsConfig,
    validity: watch::Sender<Option<Validity>>,
}

impl Tls {
    pub(crate) fn load(cert: &Path, key: &Path) -> Result<Self, Failure> {
        let (config, validity) = read(cert, key)?;
        let (config, validity) = (RustlsConfig::from_config(config), watch::Sender::new(validity));
        Ok(Self { cert: cert.to_owned(), key: key.to_owned(), config, validity })
    }

    /// Reads the files again. Open connections keep the old certificate.
    pub(crate) fn reload(&self) -> Result<(), Failure> {
        let (config, validity) = read(&self.cert, &self.key)?;
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

fn read(cert: &Path, key: &Path) -> Result<(Arc<ServerConfig>, Option<Validity>), Failure> {
    let chain = CertificateDer::pem_file_iter(cert)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .map_err(|error| unreadable("--tls-cert", cert, &error))?;
    if chain.is_empty() {
        return Err(unreadable("--tls-cert", cert, &pem::Error::NoItemsFound));
    }
    let validity = Validity::of_chain(&chain);
    let secret = secret::open(key)
        .map_err(pem::Error::Io)
        .and_then(PrivateKeyDer::from_pem_reader)
        .map_err(|error| unreadable("--tls-key", key, &error))?;
    let provider = Arc::new(aws_lc_rs::default_provider());
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .and_then(|builder| builder.with_no_client_auth().with_single_cert(chain, secret))
        .map_err(|error| {
            let (cert, key) = (cert.display(), key.display());
            Failure::usage(format!("cannot serve with {cert} and {key}: {error}; check --tls-cert and --tls-key"))
        })?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok((Arc::new(config), validity))
}

fn unreadable(flag: &str, path: &Path, error: &pem::Error) -> Failure {
    let path = path.display();
    match error {
        pem::Error::Io(error) => Failure::new(Exit::Internal, format!("cannot read {path}: {error}; check {flag}")),
        // The error message never contains the content of the file.
        _ => Failure::usage(format!("{path} has nothing in PEM that fits; give {flag} a file that has")),
    }
}
