//! Certificates in files, good ones and bad ones.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

use leaderelection_peers::{Peers, PeersBuilder};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair, date_time_ymd};

/// A directory that ends with the value.
#[derive(Debug)]
pub(crate) struct Files(PathBuf);

impl Files {
    pub(crate) fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let name = format!("peers-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::SeqCst));
        let directory = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
        std::fs::create_dir_all(&directory).unwrap();
        Self(directory)
    }

    fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.0.join(name);
        std::fs::write(&path, text).unwrap();
        path
    }
}

impl Drop for Files {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// An authority that signs the certificates of peers.
pub(crate) struct Authority<'a> {
    files: &'a Files,
    issuer: CertifiedIssuer<'static, KeyPair>,
    pub(crate) path: PathBuf,
}

impl<'a> Authority<'a> {
    pub(crate) fn new(files: &'a Files, name: &str) -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(rcgen::DnType::CommonName, name);
        let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        let path = files.write(&format!("{name}.ca"), &issuer.pem());
        Self { files, issuer, path }
    }

    /// Signs a certificate for a host; one that has expired if so.
    pub(crate) fn sign(&self, name: &str, host: &str, has_expired: bool) -> (PathBuf, PathBuf) {
        let mut params = CertificateParams::new(vec![host.to_owned()]).unwrap();
        if has_expired {
            (params.not_before, params.not_after) = (date_time_ymd(2020, 1, 1), date_time_ymd(2021, 1, 1));
        }
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        let certificate = self.files.write(&format!("{name}.pem"), &certificate.pem());
        (certificate, self.files.write(&format!("{name}.key"), &key.serialize_pem()))
    }

    /// Replaces the file of another authority by that of this one.
    pub(crate) fn replace(&self, other: &Authority) {
        std::fs::copy(&self.path, &other.path).unwrap();
    }

    /// Peers with a certificate of this authority, for mutual TLS.
    pub(crate) fn mutual(&self, name: &str, host: &str) -> PeersBuilder {
        let (certificate, key) = self.sign(name, host, false);
        Peers::builder().ca(&self.path).certificate(certificate, key).allow("127.0.0.0/8".parse().unwrap())
    }
}
