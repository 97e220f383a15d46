//! TLS and the token.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use chrono::{Datelike as _, NaiveDate, NaiveTime, TimeDelta, Utc};
use rcgen::{CertificateParams, KeyPair};
use reqwest::header::WWW_AUTHENTICATE;
use reqwest::{Certificate, Client, StatusCode};
use rustix::process::Signal;

use super::process::{PATIENCE, Process, eventually};
use super::sidecar::{Sidecar, lock_in, serve, serve_at};
use crate::dashboard::dashboard;
use crate::lease_api::{LEASES, lease_api};

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
        self.renew_until(NaiveDate::from_ymd_opt(4096, 1, 1).unwrap())
    }

    fn renew_until(&self, end: NaiveDate) -> Client {
        let mut params = CertificateParams::new(["127.0.0.1".to_owned()]).unwrap();
        let (month, day) = (u8::try_from(end.month()).unwrap(), u8::try_from(end.day()).unwrap());
        params.not_after = rcgen::date_time_ymd(end.year(), month, day);
        let key = KeyPair::generate().unwrap();
        let cert = params.self_signed(&key).unwrap().pem();
        std::fs::write(&self.cert, &cert).unwrap();
        std::fs::write(&self.key, key.serialize_pem()).unwrap();
        let trusted = Certificate::from_pem(cert.as_bytes()).unwrap();
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
        sidecar.said().contains("keeping the old certificate and key").then_some(())
    })
    .await;
    assert!(new.get(&url).send().await.is_ok());
}

#[tokio::test]
async fn the_end_of_a_certificate_is_a_metric_and_a_warning_when_it_is_near() {
    let directory = tempfile::tempdir().unwrap();
    let identity = Identity::in_directory(directory.path());
    let lock = lock_in(directory.path());
    let client = identity.renew();
    let prefix = format!("file://{}/", directory.path().display());
    let (mut served, mut shown) = (serve(&lock, "alpha"), dashboard(&prefix, "1s"));
    let sidecar = Sidecar::spawn(identity.serve_with(&mut served)).await;
    let dashboard = Sidecar::spawn(identity.serve_with(&mut shown)).await;
    let metric = "leader_election_certificate_expiry_timestamp_seconds";
    let seconds = async |client: &Client| {
        let metrics = client.get(format!("{}/metrics", sidecar.url())).send().await.ok()?.text().await.unwrap();
        let labels = [format!("name=\"{lock}\""), "certificate=\"pages\"".to_owned()];
        let line = metrics.lines().find(|line| line.starts_with(metric))?.to_owned();
        assert!(labels.iter().all(|label| line.contains(label)), "{line}");
        line.rsplit(' ').next()?.parse::<f64>().ok()
    };
    assert_eq!(eventually("it is a metric", async || seconds(&client).await).await, 67_090_118_400.0);
    assert!(!sidecar.said().contains("expires soon"), "{}", sidecar.said());

    let near = (Utc::now() + TimeDelta::days(5)).date_naive();
    let client = identity.renew_until(near);
    sidecar.signal(Signal::HUP);
    dashboard.signal(Signal::HUP);
    let end = near.and_time(NaiveTime::MIN).and_utc().timestamp() as f64;
    eventually("the new end is told", async || seconds(&client).await.filter(|told| *told == end)).await;
    for server in [&sidecar, &dashboard] {
        eventually("the log warns", async || server.said().contains("the certificate expires soon").then_some(()))
            .await;
        assert!(server.said().contains("left=\"4 days\""), "{}", server.said());
    }
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
        eventually("the problem is told", async || server.said().contains("keeping the old token").then_some(())).await;
        assert_eq!(status(NEW).await, StatusCode::OK, "{path}");
        assert!(!server.said().contains(NEW), "{}", server.said());
    }
}

#[tokio::test]
async fn a_stream_ends_with_the_token_that_has_opened_it() {
    const OTHER: &str = "another-token-that-stays";
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("token");
    let folder = format!("file://{}/leases", directory.path().display());
    let watch = format!("{LEASES}?watch=true");
    let servers =
        [(serve(&lock_in(directory.path()), "alpha"), "/events"), (lease_api(&folder, "127.0.0.1:0"), &watch)];
    for (mut command, path) in servers {
        std::fs::write(&file, format!("{TOKEN}\n{OTHER}\n")).unwrap();
        let server = Sidecar::spawn(command.arg("--token-file").arg(&file)).await;
        let open = async |token: &str| {
            let answer = Client::new().get(format!("{}{path}", server.url())).bearer_auth(token).send().await.unwrap();
            assert_eq!(answer.status(), StatusCode::OK, "{path}");
            answer
        };
        let (mut removed, mut kept) = (open(TOKEN).await, open(OTHER).await);
        std::fs::write(&file, OTHER).unwrap();
        server.signal(Signal::HUP);
        let end = async { while removed.chunk().await.is_ok_and(|chunk| chunk.is_some()) {} };
        tokio::time::timeout(PATIENCE, end).await.expect(path);
        // What it has to say comes still.
        let next = tokio::time::timeout(Duration::ZERO, async { while kept.chunk().await.unwrap().is_some() {} });
        assert!(next.await.is_err(), "{path}");
    }
}

#[tokio::test]
async fn a_world_writable_token_is_refused_and_a_readable_one_named() {
    let directory = tempfile::tempdir().unwrap();
    let token = directory.path().join("token");
    std::fs::write(&token, TOKEN).unwrap();
    let with_mode = |mode| {
        std::fs::set_permissions(&token, std::fs::Permissions::from_mode(mode)).unwrap();
        let mut command = serve(&lock_in(directory.path()), "alpha");
        command.arg("--token-file").arg(&token);
        command
    };
    let mut refused = Process::spawn(&mut with_mode(0o666));
    assert!(!refused.ended().await.success());
    assert!(refused.said().contains("chmod o-w") && refused.said().contains("--token-file"), "{}", refused.said());
    let taken = Sidecar::spawn(&mut with_mode(0o644)).await;
    assert_eq!(taken.said().matches("chmod o-r").count(), 1, "{}", taken.said());
}

#[tokio::test]
async fn a_client_without_a_certificate_of_the_authority_is_told_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let identity = Identity::in_directory(directory.path());
    identity.renew();
    let authority = KeyPair::generate().unwrap();
    let mut params = CertificateParams::new([]).unwrap();
    params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    let certificate = params.self_signed(&authority).unwrap();
    let ca = directory.path().join("ca.pem");
    std::fs::write(&ca, certificate.pem()).unwrap();
    let issuer = rcgen::Issuer::new(params, authority);
    let of = |issuer: Option<&rcgen::Issuer<'_, KeyPair>>| {
        let (key, params) = (KeyPair::generate().unwrap(), CertificateParams::new(["client".to_owned()]).unwrap());
        let certificate = match issuer {
            Some(issuer) => params.signed_by(&key, issuer),
            None => params.self_signed(&key),
        };
        reqwest::Identity::from_pem(format!("{}{}", key.serialize_pem(), certificate.unwrap().pem()).as_bytes())
            .unwrap()
    };
    let trusted = Certificate::from_pem(&std::fs::read(&identity.cert).unwrap()).unwrap();
    let client = |own: Option<reqwest::Identity>| {
        let builder = Client::builder().tls_certs_only([trusted.clone()]);
        own.into_iter().fold(builder, reqwest::ClientBuilder::identity).build().unwrap()
    };
    // With certificates, other machines need no token.
    let sidecar = serve_at("0.0.0.0:0", &lock_in(directory.path()), "alpha");
    let leases = lease_api(&format!("file://{}/leases", directory.path().display()), "0.0.0.0:0");
    for (mut command, path) in [(sidecar, "/leader"), (leases, LEASES)] {
        let server = Sidecar::spawn(identity.serve_with(&mut command).arg("--client-ca").arg(&ca)).await;
        let url = format!("{}{path}", server.url().replace("0.0.0.0", "127.0.0.1"));
        assert_eq!(client(Some(of(Some(&issuer)))).get(&url).send().await.unwrap().status(), StatusCode::OK, "{path}");
        for stranger in [None, Some(of(None))] {
            assert!(client(stranger).get(&url).send().await.is_err(), "{path}");
        }
    }
}
