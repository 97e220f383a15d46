//! TLS and the token.

use std::path::{Path, PathBuf};
use std::process::Command;

use reqwest::header::WWW_AUTHENTICATE;
use reqwest::{Certificate, Client, StatusCode};
use rustix::process::Signal;

use super::process::eventually;
use super::sidecar::{Sidecar, lock_in, serve, serve_at};
use crate::dashboard::dashboard;

const TOKEN: &str = "a-token-that-nobody-else-has-got";

/// A certificate that nobody else trusts, in files.
struct Identity {
    cert: PathBuf,
    key: PathBuf,
}

impl Identity {
    fn in_directory(directory: &Path) -> Self {
        Self { cert: directory.join("cert.pem"), key: directory.join("key.pem") }
    }

    /// Writes a new one into the files, and returns a client that trusts it and nothing else.
    fn renew(&self) -> Client {
        let made = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
        std::fs::write(&self.cert, made.cert.pem()).unwrap();
        std::fs::write(&self.key, made.signing_key.serialize_pem()).unwrap();
        let trusted = Certificate::from_pem(made.cert.pem().as_bytes()).unwrap();
        // No connection is used twice: each shows the certificate of its day.
        Client::builder().tls_certs_only([trusted]).pool_max_idle_per_host(0).build().unwrap()
    }

    fn serve_with<'a>(&self, command: &'a mut Command) -> &'a mut Command {
        command.arg("--tls-cert").arg(&self.cert).arg("--tls-key").arg(&self.key)
    }
}

#[tokio::test]
async fn the_token_opens_what_names_anybody() {
    let directory = tempfile::tempdir().unwrap();
    let identity = Identity::in_directory(directory.path());
    let client = identity.renew();
    let token = directory.path().join("token");
    std::fs::write(&token, format!("{TOKEN}\n")).unwrap();
    let mut command = serve(&lock_in(directory.path()), "alpha");
    identity.serve_with(&mut command).arg("--token-file").arg(&token).arg("-vv");
    let sidecar = Sidecar::spawn(&mut command).await;
    assert!(sidecar.url().starts_with("https://127.0.0.1:"), "{}", sidecar.url());

    for path in ["/", "/leader", "/metrics", "/page.js", "/page.css"] {
        let url = format!("{}{path}", sidecar.url());
        let refused = client.get(&url).send().await.unwrap();
        assert_eq!(refused.status(), StatusCode::UNAUTHORIZED, "{path}");
        assert!(refused.headers()[WWW_AUTHENTICATE].to_str().unwrap().contains("Basic"), "so that a browser asks");
        assert!(!refused.text().await.unwrap().contains("alpha"), "{path}");
        let wrong = client.get(&url).bearer_auth("another-token-of-the-same-length").send().await.unwrap();
        assert_eq!(wrong.status(), StatusCode::UNAUTHORIZED, "{path}");
        let bearer = client.get(&url).bearer_auth(TOKEN).send().await.unwrap();
        assert_eq!(bearer.status(), StatusCode::OK, "{path}");
        let password = client.get(&url).basic_auth("anybody", Some(TOKEN)).send().await.unwrap();
        assert_eq!(password.status(), StatusCode::OK, "{path}");
    }
    for path in ["/healthz", "/readyz", "/leading"] {
        eventually(&format!("{path} is open"), async || {
            let answer = client.get(format!("{}{path}", sidecar.url())).send().await.unwrap();
            (answer.status() == StatusCode::OK).then_some(())
        })
        .await;
    }
    let plain = sidecar.url().replace("https:", "http:");
    assert!(Client::new().get(plain).send().await.is_err(), "it speaks nothing but TLS");
    assert!(Client::new().get(sidecar.url()).send().await.is_err(), "others do not know this certificate");
    assert!(!sidecar.said().contains(TOKEN), "{}", sidecar.said());
}

#[tokio::test]
async fn the_environment_may_hold_the_token() {
    let directory = tempfile::tempdir().unwrap();
    let mut command = serve(&lock_in(directory.path()), "alpha");
    let sidecar = Sidecar::spawn(command.env("LEADERELECTION_HTTP_TOKEN", TOKEN)).await;
    assert_eq!(sidecar.ask("/leader").await.0, StatusCode::UNAUTHORIZED);
    let answer = Client::new().get(format!("{}/leader", sidecar.url())).bearer_auth(TOKEN).send().await.unwrap();
    assert_eq!(answer.status(), StatusCode::OK);
}

#[tokio::test]
async fn other_machines_are_served_with_both_or_on_demand() {
    let directory = tempfile::tempdir().unwrap();
    let lock = lock_in(directory.path());
    let identity = Identity::in_directory(directory.path());
    let client = identity.renew();
    let mut guarded = serve_at("0.0.0.0:0", &lock, "alpha");
    identity.serve_with(&mut guarded).env("LEADERELECTION_HTTP_TOKEN", TOKEN);
    let guarded = Sidecar::spawn(&mut guarded).await;
    let url = guarded.url().replace("0.0.0.0", "127.0.0.1");
    assert_eq!(client.get(format!("{url}/healthz")).send().await.unwrap().status(), StatusCode::OK);

    let open = Sidecar::spawn(serve_at("0.0.0.0:0", &lock, "beta").arg("--insecure")).await;
    let url = open.url().replace("0.0.0.0", "127.0.0.1");
    assert_eq!(Client::new().get(format!("{url}/leader")).send().await.unwrap().status(), StatusCode::OK);
}

#[tokio::test]
async fn a_new_certificate_is_shown_after_sighup() {
    let directory = tempfile::tempdir().unwrap();
    let identity = Identity::in_directory(directory.path());
    let old = identity.renew();
    let mut command = serve(&lock_in(directory.path()), "alpha");
    let sidecar = Sidecar::spawn(identity.serve_with(&mut command)).await;
    let url = format!("{}/healthz", sidecar.url());
    assert!(old.get(&url).send().await.is_ok());

    let new = identity.renew();
    assert!(new.get(&url).send().await.is_err(), "nobody has read it yet");
    sidecar.signal(Signal::HUP);
    eventually("the new certificate is shown", async || new.get(&url).send().await.ok()).await;
    assert!(old.get(&url).send().await.is_err());

    std::fs::write(&identity.key, "not a key").unwrap();
    sidecar.signal(Signal::HUP);
    eventually("the problem is told", async || {
        sidecar.said().contains("going on with the certificate and its key of before").then_some(())
    })
    .await;
    assert!(new.get(&url).send().await.is_ok());
}

#[tokio::test]
async fn a_new_token_is_required_after_sighup() {
    const NEW: &str = "another-token-that-is-newer";
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("token");
    let lock = lock_in(directory.path());
    let prefix = format!("file://{}/", directory.path().display());
    for (mut command, path) in [(serve(&lock, "alpha"), "/leader"), (dashboard(&prefix, "1s"), "/")] {
        std::fs::write(&file, TOKEN).unwrap();
        let server = Sidecar::spawn(command.arg("--token-file").arg(&file)).await;
        let status = async |token: &str| {
            let answer = Client::new().get(format!("{}{path}", server.url())).bearer_auth(token).send().await;
            answer.unwrap().status()
        };
        std::fs::write(&file, NEW).unwrap();
        assert_eq!((status(TOKEN).await, status(NEW).await), (StatusCode::OK, StatusCode::UNAUTHORIZED), "{path}");
        server.signal(Signal::HUP);
        eventually("the new token is known", async || (status(NEW).await == StatusCode::OK).then_some(())).await;
        assert_eq!(status(TOKEN).await, StatusCode::UNAUTHORIZED, "{path}");

        std::fs::write(&file, "short").unwrap();
        server.signal(Signal::HUP);
        eventually("the problem is told", async || {
            server.said().contains("going on with the token of before").then_some(())
        })
        .await;
        assert_eq!(status(NEW).await, StatusCode::OK, "{path}");
        assert!(!server.said().contains(NEW), "{}", server.said());
    }
}
