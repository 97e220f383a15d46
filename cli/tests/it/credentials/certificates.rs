//! Certificates of a kubeconfig: those of its user and that of the cluster's authority, replaced on disk.

use std::fs;
use std::net::TcpListener;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::Instant;

use axum::Router;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum_server::tls_rustls::{RustlsConfig, from_tcp_rustls};
use rcgen::{CertifiedKey, KeyPair, generate_simple_self_signed};
use rustls::client::danger::HandshakeSignatureValid;
use rustls::crypto::{CryptoProvider, aws_lc_rs, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{CertificateError, DigitallySignedStruct, DistinguishedName, Error, ServerConfig, SignatureScheme};
use serde_json::json;
use tempfile::tempdir;
use tokio::runtime::Runtime;

use super::tokens::kubeconfig;
use super::world::NO_LEASE;
use super::{at_once, put};
use crate::support::{PATIENCE, Running, leaderelect};

type Pair = CertifiedKey<KeyPair>;

/// The answer of an API server to a user whom it does not know any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Refusal {
    InTls,
    Unauthorized,
}

/// The place of a user's certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Files,
    Command,
    /// A command that takes longer than a request may, but for the first time.
    SlowCommand,
}

#[derive(Debug)]
struct Seen {
    accepted: Vec<u8>,
    refusal: Refusal,
    /// The certificate of the newest connection.
    shown: Vec<u8>,
    served: u32,
}

/// An API server that knows one user, by a certificate, and closes each connection after one request.
#[derive(Clone, Debug)]
struct Door {
    seen: Arc<(Mutex<Seen>, Condvar)>,
    provider: Arc<CryptoProvider>,
}

impl Door {
    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.0.lock().unwrap()
    }

    fn wait_for(&self, requests: u32) {
        let (mut seen, end) = (self.seen(), Instant::now() + PATIENCE);
        let enough = seen.served + requests;
        while seen.served < enough {
            let left = end.saturating_duration_since(Instant::now());
            assert!(!left.is_zero(), "{} of {enough} requests", seen.served);
            seen = self.seen.1.wait_timeout(seen, left).unwrap().0;
        }
    }

    fn answer(&self) -> Response {
        let mut seen = self.seen();
        let close = [(header::CONNECTION, "close")];
        if seen.shown != seen.accepted {
            return (StatusCode::UNAUTHORIZED, close).into_response();
        }
        seen.served += 1;
        self.seen.1.notify_all();
        (StatusCode::NOT_FOUND, close, NO_LEASE).into_response()
    }

    fn config(&self, own: &Pair) -> Arc<ServerConfig> {
        let key = PrivatePkcs8KeyDer::from(own.signing_key.serialize_der()).into();
        let config = ServerConfig::builder_with_provider(Arc::clone(&self.provider));
        let config = config.with_safe_default_protocol_versions().unwrap();
        let config = config.with_client_cert_verifier(Arc::new(self.clone()));
        Arc::new(config.with_single_cert(vec![own.cert.der().clone()], key).unwrap())
    }
}

impl ClientCertVerifier for Door {
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn verify_client_cert(
        &self,
        user: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        let mut seen = self.seen();
        seen.shown = user.to_vec();
        if seen.refusal == Refusal::InTls && seen.shown != seen.accepted {
            return Err(CertificateError::Expired.into());
        }
        Ok(ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        user: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, user, signed, &self.provider.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        user: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, user, signed, &self.provider.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

fn pair() -> Pair {
    generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap()
}

/// Replaces the user's certificate, and then the one of the server with its authority.
fn are_replaced(place: Place, refusal: Refusal) {
    let (home, own, [old, new]) = (tempdir().unwrap(), pair(), [pair(), pair()]);
    let accepted = old.cert.der().to_vec();
    let seen = Mutex::new(Seen { accepted, refusal, shown: Vec::new(), served: 0 });
    let door = Door { seen: Arc::new((seen, Condvar::new())), provider: Arc::new(aws_lc_rs::default_provider()) };
    let (runtime, listener) = (Runtime::new().unwrap(), TcpListener::bind("127.0.0.1:0").unwrap());
    listener.set_nonblocking(true).unwrap();
    let url = format!("https://{}", listener.local_addr().unwrap());
    let config = RustlsConfig::from_config(door.config(&own));
    let answering = door.clone();
    let routes = Router::new().fallback(move || std::future::ready(answering.answer()));
    let _guard = runtime.enter();
    let server = from_tcp_rustls(listener, config.clone()).unwrap();
    runtime.spawn(server.serve(routes.into_make_service()));

    let path = |name: &str| home.path().join(name).display().to_string();
    let user = match place {
        Place::Files => format!("{{client-certificate: {}, client-key: {}}}", path("user"), path("key")),
        Place::Command => super::tokens::by_command(&home.path().join("credential")),
        Place::SlowCommand => {
            let user = super::tokens::by_command(&home.path().join("credential"));
            let slow = format!("[ -e {0} ] && sleep 6; touch {0}", path("credential.asked"));
            user.replace(&format!("touch {}", path("credential.asked")), &slow)
        }
    };
    let give = |pair: &Pair| {
        let (certificate, key) = (pair.cert.pem(), pair.signing_key.serialize_pem());
        let status = json!({"clientCertificateData": certificate, "clientKeyData": key});
        let credential =
            json!({"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": status});
        put(home.path(), "user", &certificate);
        put(home.path(), "key", &key);
        put(home.path(), "credential", &credential.to_string());
    };
    fs::write(path("ca"), own.cert.pem()).unwrap();
    fs::write(
        path("config"),
        kubeconfig(&format!("{{server: '{url}', certificate-authority: {}}}", path("ca")), &user),
    )
    .unwrap();
    give(&old);
    let timeout = if place == Place::SlowCommand { "4s" } else { "10s" };
    let mut command = leaderelect(["watch", "--interval", "200ms", "--request-timeout", timeout, "lease://default/a"]);
    command.env("KUBECONFIG", path("config"));
    let mut watch = Running::of(command);
    door.wait_for(1);

    door.seen().accepted = new.cert.der().to_vec();
    watch.wait_for_line("the store ");
    give(&new);
    door.wait_for(3);

    let next = pair();
    config.reload_from_config(door.config(&next));
    watch.wait_for_line("the server's certificate was issued by an authority that this machine does not know");
    put(home.path(), "ca", &next.cert.pem());
    door.wait_for(3);
}

#[test]
fn certificates_of_a_kubeconfig_are_read_anew() {
    let cases = [
        (Place::Files, Refusal::InTls),
        (Place::Files, Refusal::Unauthorized),
        (Place::Command, Refusal::InTls),
        (Place::Command, Refusal::Unauthorized),
        (Place::SlowCommand, Refusal::InTls),
        (Place::SlowCommand, Refusal::Unauthorized),
    ];
    at_once(&cases, |&(place, refusal)| are_replaced(place, refusal));
}
