//! Authorities of a private network, whose certificates are trusted beside those of the system.

use leaderelection::{StoreError, StoreErrorKind};
use rustls::RootCertStore;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;

/// A file with certificates of authorities in PEM. It is read for each client: somebody may replace it.
#[derive(Clone, Debug)]
pub struct Authorities {
    path: String,
    /// The place that names the file.
    setting: &'static str,
}

impl Authorities {
    /// Takes the file at `path`, which `setting` names.
    pub fn new(path: impl Into<String>, setting: &'static str) -> Self {
        Self { path: path.into(), setting }
    }

    /// Takes the file that the parameter `ca` of a URL names.
    pub fn of_url(path: &str) -> Self {
        Self::new(path, "the parameter ca")
    }

    /// Reads the certificates, of which there is at least one.
    ///
    /// # Errors
    ///
    /// If the file cannot be read, is damaged, or has no certificate of an authority.
    pub fn read(&self) -> Result<Vec<CertificateDer<'static>>, StoreError> {
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

    /// The error of a file with this problem.
    #[must_use]
    pub fn wrong(&self, problem: &str) -> StoreError {
        let Self { path, setting } = self;
        let message =
            format!("{path}, which {setting} names, {problem}; name a file with the authority's certificate in PEM");
        StoreError::new(StoreErrorKind::Fatal, message)
    }
}

#[cfg(feature = "reqwest")]
mod with_reqwest {
    use leaderelection::StoreError;
    use reqwest::{Certificate, ClientBuilder};

    use super::Authorities;

    impl Authorities {
        /// Lets the client trust them, too.
        ///
        /// # Errors
        ///
        /// Those of [`read`](Self::read), and those of certificates that the client cannot use.
        pub fn trusted_by(&self, client: ClientBuilder) -> Result<ClientBuilder, StoreError> {
            let certificates = self.read()?.into_iter().map(|certificate| Certificate::from_der(&certificate));
            let certificates: Result<Vec<_>, _> = certificates.collect();
            let certificates = certificates.map_err(|error| self.wrong(&format!("cannot be used: {error}")))?;
            Ok(client.tls_certs_merge(certificates))
        }
    }
}
