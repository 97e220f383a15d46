//! A crowd of strangers who connect.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use reqwest::{Client, RequestBuilder, Response, StatusCode};
use rustix::process::{Pid, Resource, Rlimit, Signal, getrlimit, kill_process, setrlimit};
use serde_json::{Value, json};

use super::process::{PATIENCE, eventually};
use super::sidecar::{Sidecar, lock_in, serve};
use crate::lease_api::{LEASES, lease_api};
use crate::stderr::fill;
use crate::support::{Place, leaderelect};
use crate::support::{with_files, with_limit};

const STRANGERS: usize = 2_000;

/// Far longer than an answer takes, and far shorter than the time after which a probe is taken for failed.
const BOUND: Duration = Duration::from_secs(5);

/// Sends a request, and notes the time until the answer.
async fn timed(request: RequestBuilder, times: &mut Vec<Duration>) -> Response {
    let began = Instant::now();
    let answer = request.send().await.unwrap();
    times.push(began.elapsed());
    answer
}

/// Asserts that all answers but one came soon: a stall of this machine delays one of those who ask in turn, and a crowd delays
/// all.
fn assert_soon(mut times: Vec<Duration>) {
    times.sort_unstable();
    println!("the slowest answers took {:?}", &times[times.len() - 2..]);
    assert!(times[times.len() - 2] < BOUND, "{times:?}");
}

/// Strangers who connect to `address`. One in three asks, in part.
fn crowd(address: &str) -> Vec<TcpStream> {
    let files = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: files.maximum, ..files }).unwrap();
    let come = |number: usize| {
        let mut stranger = TcpStream::connect(address).unwrap();
        if number.is_multiple_of(3) {
            // Those who are hung up on notice it here.
            let _ = stranger.write_all(b"GET /leader HT");
        }
        stranger
    };
    (0..STRANGERS).map(come).collect()
}

#[tokio::test]
async fn a_client_is_answered_beside_a_silent_crowd() {
    let directory = tempfile::tempdir().unwrap();
    let (reader, mut writer) = std::io::pipe().unwrap();
    let mut command = leaderelect(serve(&lock_in(directory.path()), "alpha").get_args());
    command.arg("-vv").args(["--drain", "0s"]).stderr(writer.try_clone().unwrap());
    let mut child = command.spawn().unwrap();
    let mut lines = BufReader::new(reader).lines().map(Result::unwrap);
    let address = lines.find_map(|line| Some(line.strip_prefix("leaderelect: serving http://")?.to_owned())).unwrap();
    let address = address.trim_end_matches('/');
    fill(&mut writer);
    // Every request comes over a connection of its own.
    let client = Client::builder().pool_max_idle_per_host(0).build().unwrap();
    let ask = |path: &str| client.get(format!("http://{address}{path}"));
    eventually("it leads", async || {
        let answer = ask("/leading").send().await.ok()?;
        (answer.status() == StatusCode::OK).then_some(())
    })
    .await;

    let strangers = crowd(address);
    let mut times = Vec::new();
    let mut renewals = std::collections::BTreeSet::new();
    while renewals.len() < 4 {
        for path in ["/leader", "/healthz", "/leading"] {
            let answer = timed(ask(path), &mut times).await;
            let (status, body) = (answer.status(), answer.text().await.unwrap());
            assert_eq!(status, StatusCode::OK, "{path}: {body}");
            if let Ok(leader) = serde_json::from_str::<Value>(&body) {
                renewals.insert(leader["renewTime"].as_str().unwrap().to_owned());
            }
        }
    }
    assert_soon(times);
    drop(strangers);
    kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
    let status = eventually("it ends", async || child.try_wait().unwrap()).await;
    assert_eq!(status.code(), Some(0));
}

#[tokio::test]
async fn leases_are_renewed_beside_a_crowd_that_leaves_few_files() {
    let place = Place::new();
    let mut command = with_files(lease_api(&place.file("leases"), "127.0.0.1:0"), 256);
    let server = Sidecar::spawn(&mut command).await;
    let strangers = crowd(server.url().trim_start_matches("http://"));
    // Every request comes over a connection of its own.
    let client = Client::builder().pool_max_idle_per_host(0).timeout(PATIENCE).build().unwrap();
    let mut times = Vec::new();
    let url = format!("{}{LEASES}", server.url());
    let lease = json!({"metadata": {"name": "web"}, "spec": {"holderIdentity": "a", "leaseDurationSeconds": 15}});
    let created = timed(client.post(&url).json(&lease), &mut times).await;
    assert_eq!(created.status(), StatusCode::CREATED);
    let mut held: Value = created.json().await.unwrap();
    for second in 10..20 {
        held["spec"]["renewTime"] = format!("2026-02-02T10:15:{second}.000000Z").into();
        let renewed = timed(client.put(format!("{url}/web")).json(&held), &mut times).await;
        assert_eq!(renewed.status(), StatusCode::OK);
        held = renewed.json().await.unwrap();
    }
    // A body has a limit, beside the crowd, too.
    let large =
        client.put(format!("{url}/web")).header("content-type", "application/json").body(vec![b' '; 128 * 1024]);
    assert_eq!(timed(large, &mut times).await.status(), StatusCode::PAYLOAD_TOO_LARGE);
    assert_soon(times);
    drop(strangers);
}

#[tokio::test]
async fn a_thousand_electors_keep_their_connections() {
    let place = Place::new();
    // As many systems limit a program that does not ask for more.
    let mut command = with_limit(lease_api(&place.file("leases"), "127.0.0.1:0"), "-S -n 1024");
    let server = Sidecar::spawn(&mut command).await;
    let files = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: files.maximum, ..files }).unwrap();
    let address = server.url().trim_start_matches("http://");
    let connect = |_| {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        BufReader::new(stream)
    };
    let mut electors: Vec<_> = (0..1_000).map(connect).collect();
    for round in 0..2 {
        for (number, elector) in electors.iter_mut().enumerate() {
            elector.get_mut().write_all(b"GET /livez HTTP/1.1\r\nhost: localhost\r\n\r\n").unwrap();
            let (mut status, mut line) = (String::new(), String::new());
            elector.read_line(&mut status).unwrap();
            assert!(status.contains("200"), "elector {number} in round {round}: {status:?}");
            // The body is `ok`.
            while !line.ends_with("\r\n\r\n") {
                assert!(elector.read_line(&mut line).unwrap() > 0, "elector {number} in round {round}");
            }
            elector.read_exact(&mut [0; 2]).unwrap();
        }
    }
}

#[tokio::test]
async fn a_client_beyond_the_limit_is_told_so_over_tls_and_no_elector_loses_its_connection() {
    let place = Place::new();
    let (cert, key) = (place.path("cert.pem"), place.path("key.pem"));
    let made = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
    std::fs::write(&cert, made.cert.pem()).unwrap();
    std::fs::write(&key, made.signing_key.serialize_pem()).unwrap();
    let mut command = lease_api(&place.file("leases"), "127.0.0.1:0");
    command.arg("--tls-cert").arg(&cert).arg("--tls-key").arg(&key);
    // Half of the files are for connections.
    let server = Sidecar::spawn(&mut with_files(command, 128)).await;
    let trusted = reqwest::Certificate::from_pem(made.cert.pem().as_bytes()).unwrap();
    let client = || Client::builder().tls_certs_only([trusted.clone()]).timeout(PATIENCE).build().unwrap();
    let url = format!("{}{LEASES}", server.url());
    let electors: Vec<_> = (0..64).map(|_| client()).collect();
    for round in 0..3 {
        for (number, elector) in electors.iter().enumerate() {
            let answer = elector.get(&url).send().await.unwrap();
            assert_eq!(answer.status(), StatusCode::OK, "elector {number} in round {round}");
            // A connection is free once its answer was read.
            answer.text().await.unwrap();
        }
        let answer = client().get(&url).send().await.unwrap();
        assert_eq!(answer.status(), StatusCode::SERVICE_UNAVAILABLE, "{round}");
        assert_eq!(answer.headers()["retry-after"], "2");
    }
}

#[tokio::test]
async fn tls_does_not_help_the_crowd() {
    let directory = tempfile::tempdir().unwrap();
    let (cert, key) = (directory.path().join("cert.pem"), directory.path().join("key.pem"));
    let made = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
    std::fs::write(&cert, made.cert.pem()).unwrap();
    std::fs::write(&key, made.signing_key.serialize_pem()).unwrap();
    let mut command = serve(&lock_in(directory.path()), "alpha");
    let sidecar = Sidecar::spawn(command.arg("--tls-cert").arg(&cert).arg("--tls-key").arg(&key)).await;
    let strangers = crowd(sidecar.url().trim_start_matches("https://"));
    let trusted = reqwest::Certificate::from_pem(made.cert.pem().as_bytes()).unwrap();
    // Every request comes over a connection of its own.
    let client =
        Client::builder().tls_certs_only([trusted]).pool_max_idle_per_host(0).timeout(PATIENCE).build().unwrap();
    let mut times = Vec::new();
    for _ in 0..3 {
        let answer = timed(client.get(format!("{}/healthz", sidecar.url())), &mut times).await;
        assert_eq!(answer.status(), StatusCode::OK);
    }
    assert_soon(times);
    drop(strangers);
}
