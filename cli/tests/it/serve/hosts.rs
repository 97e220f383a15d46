//! The host names under which requests are answered: none of other sites, whose pages could read what is served otherwise.

use reqwest::header::HOST;
use reqwest::{Client, StatusCode};

use super::sidecar::{Sidecar, lock_in, serve};
use crate::dashboard::dashboard;
use crate::lease_api::{LEASES, lease_api};
use crate::support::{LONG, Place, Running, run};

/// The answer to a request that names a host.
async fn ask(url: &str, host: &str) -> (StatusCode, String) {
    let answer = Client::new().get(url).header(HOST, host).send().await.unwrap();
    (answer.status(), answer.text().await.unwrap())
}

async fn refuses(url: &str, host: &str) {
    let (status, body) = ask(url, host).await;
    assert_eq!(status, StatusCode::MISDIRECTED_REQUEST, "{url} for {host}: {body}");
    assert!(body.contains("--allow-host") && !body.contains("alpha"), "{body}");
}

async fn answers(url: &str, host: &str) {
    let (status, body) = ask(url, host).await;
    assert_ne!(status, StatusCode::MISDIRECTED_REQUEST, "{url} for {host}: {body}");
}

#[tokio::test]
async fn a_page_of_another_site_reads_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let mut command = serve(&lock_in(directory.path()), "alpha");
    command.args(["--advertise", "http://front.example.com:8443/health/leadership", "--allow-host", "*.internal"]);
    let sidecar = Sidecar::spawn(&mut command).await;
    for path in ["/", "/leader", "/metrics", "/page.js", "/healthz", "/readyz", "/leading"] {
        let url = format!("{}{path}", sidecar.url());
        refuses(&url, "evil.example").await;
        refuses(&url, "evil.example:4040").await;
        // As the kubelet and Prometheus ask, and as people do.
        for host in ["10.0.1.42:4041", "[2001:db8::1]:4041", "localhost:4040", "front.example.com", "leader.internal"] {
            answers(&url, host).await;
        }
    }
}

#[tokio::test]
async fn every_page_looks_at_the_host() {
    let place = Place::new();
    let leases = Sidecar::spawn(&mut lease_api(&place.file("leases"), "127.0.0.1:0")).await;
    refuses(&format!("{}{LEASES}", leases.url()), "evil.example").await;
    answers(&format!("{}{LEASES}", leases.url()), "localhost").await;
    let shown = Sidecar::spawn(&mut dashboard(&place.prefix(), "1s")).await;
    refuses(&format!("{}/", shown.url()), "evil.example").await;
    answers(&format!("{}/", shown.url()), "localhost").await;
    let lock = place.lock("a");
    let options = [&LONG[..], &["--metrics-listen", "127.0.0.1:0", "--allow-host", "metrics.internal"]].concat();
    let mut running = Running::start(&run(&lock, &options, &["sleep", "1000"]));
    let metrics = running.wait_for_note("serving ");
    refuses(&metrics, "evil.example").await;
    answers(&metrics, "metrics.internal:9404").await;
}

#[tokio::test]
async fn behind_a_token_every_name_is_answered() {
    let directory = tempfile::tempdir().unwrap();
    let mut command = serve(&lock_in(directory.path()), "alpha");
    let sidecar = Sidecar::spawn(command.env("LEADERELECTION_HTTP_TOKEN", "a-token-that-nobody-else-has-got")).await;
    let (status, _) = ask(&format!("{}/leader", sidecar.url()), "leader.example.com").await;
    assert_eq!(status, StatusCode::UNAUTHORIZED);
}
