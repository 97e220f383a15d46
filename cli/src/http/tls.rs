//! The server's TLS certificate.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use axum_server::tls_rustls::RustlsConfig;
use rustls::ServerConfig;
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::pem::{self, PemObject as _};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

use crate::exit::{Exit, Failure};

/// A certificate and its key, from files that may change.
#[derive(Clone, Debug)]
pub(crate) struct Tls {
    cert: PathBuf,
    key: PathBuf,
    config: RustlsConfig,
}

impl Tls {
    pub(crate) fn load(cert: &Path, key: &Path) -> Result<Self, Failure> {
        let config = RustlsConfig::from_config(read(cert, key)?);
        Ok(Self { cert: cert.to_owned(), key: key.to_owned(), config })
    }

    /// Reads the files again. Open connections keep the old certificate.
    pub(crate) fn reload(&self) -> Result<(), Failure> {
        self.config.reload_from_config(read(&self.cert, &self.key)?);
        Ok(())
    }

    pub(crate) fn config(&self) -> RustlsConfig {
        self.config.clone()
    }
}

fn read(cert: &Path, key: &Path) -> Result<Arc<ServerConfig>, Failure> {
    let chain = CertificateDer::pem_file_iter(cert)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .map_err(|error| unreadable("--tls-cert", cert, &error))?;
    if chain.is_empty() {
        return Err(unreadable("--tls-cert", cert, &pem::Error::NoItemsFound));
    }
    let secret = PrivateKeyDer::from_pem_file(key).map_err(|error| unreadable("--tls-key", key, &error))?;
    let provider = Arc::new(aws_lc_rs::default_provider());
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .and_then(|builder| builder.with_no_client_auth().with_single_cert(chain, secret))
        .map_err(|error| {
            let (cert, key) = (cert.display(), key.display());
            Failure::usage(format!("cannot serve with {cert} and {key}: {error}; check --tls-cert and --tls-key"))
        })?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}

fn unreadable(flag: &str, path: &Path, error: &pem::Error) -> Failure {
    let path = path.display();
    match error {
        pem::Error::Io(error) => Failure::new(Exit::Internal, format!("cannot read {path}: {error}; check {flag}")),
        // The error message never contains the content of the file.
        _ => Failure::usage(format!("{path} has nothing in PEM that fits; give {flag} a file that has")),
    }
}
