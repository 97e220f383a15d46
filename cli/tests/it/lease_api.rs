//! `leaderelect lease-api`: the real program, asked over real sockets, beside candidates on the same lock.

mod accounts;
#[cfg(feature = "all-tests")]
mod clients;
pub(crate) mod drivers;
mod hostile;
mod kubectl;
mod lies;
mod operators;
mod restarts;
#[cfg(feature = "all-tests")]
mod rollouts;
mod watches;

use std::process::{Command, Stdio};

use reqwest::Method;
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::peers::own_address;
use crate::serve::process::eventually;
use crate::serve::sidecar::Sidecar;
use crate::support::{CLIENT, LONG, Place, end, run};

pub(crate) const LEASES: &str = "/apis/coordination.k8s.io/v1/namespaces/default/leases";

/// The command, for the Leases in a folder.
pub(crate) fn lease_api(folder: &str, listen: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_leaderelect"));
    command.args(["lease-api", "--store", folder, "--listen", listen]);
    command.env_remove("RUST_LOG").env_remove("LEADERELECTION_HTTP_TOKEN").stdin(Stdio::null());
    command
}

async fn send(server: &Sidecar, method: Method, path: &str, token: &str, body: &Value) -> (u16, Value) {
    let request = CLIENT.request(method, format!("{}{path}", server.url())).bearer_auth(token);
    let request = if body.is_null() { request } else { request.json(body) };
    let answer = request.send().await.unwrap();
    (answer.status().as_u16(), answer.json().await.unwrap_or_default())
}

/// The number of reads that a server has answered.
async fn reads(server: &Sidecar) -> u64 {
    let metrics = server.ask("/metrics").await.1;
    let reads = r#"leaderelection_lease_api_requests_total{verb="get",code="200"} "#;
    metrics.lines().find_map(|line| line.strip_prefix(reads)?.parse().ok()).unwrap_or_default()
}

fn lease(holder: &str) -> Value {
    json!({
        "apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "web"},
        "spec": {"holderIdentity": holder, "leaseDurationSeconds": 3600, "leaseTransitions": 0},
    })
}

#[tokio::test]
async fn a_lease_works_with_every_command_and_survives_a_kill() {
    let place = Place::new();
    let mut server = Sidecar::spawn(&mut lease_api(&place.file("leases"), &own_address())).await;
    let (status, held) = send(&server, Method::POST, LEASES, "", &lease("theirs")).await;
    assert_eq!(status, 201, "{held}");
    let lock = place.file("leases/default/web");
    let shown: Value = serde_json::from_str(&end(&["status", &lock, "-o", "json"]).stdout).unwrap();
    assert_eq!(shown["holder"], "theirs", "{shown}");
    let options = [&LONG[..], &["--no-wait", "--once"]].concat();
    let run = run(&lock, &options, &["true"]);
    assert_eq!(end(&run).code, Some(75), "theirs holds the lease");

    let listen = server.url().trim_start_matches("http://").to_owned();
    server.signal(Signal::KILL);
    server.ended().await;
    let server = Sidecar::spawn(&mut lease_api(&place.file("leases"), &listen)).await;
    let mut released = held.clone();
    released["spec"]["holderIdentity"] = "".into();
    let web = format!("{LEASES}/web");
    let (status, answer) = send(&server, Method::PUT, &web, "", &released).await;
    assert_eq!(status, 200, "{answer}");
    assert_eq!(end(&run).code, Some(0));
    let (_, seen) = send(&server, Method::GET, &web, "", &Value::Null).await;
    assert_eq!((&seen["spec"]["holderIdentity"], &seen["spec"]["leaseTransitions"]), (&json!(""), &json!(1)), "{seen}");
    assert_eq!(seen["metadata"]["uid"], held["metadata"]["uid"]);
    assert_eq!(send(&server, Method::PUT, &web, "", &released).await.0, 409, "a version of before");
    let metrics = server.ask("/metrics").await.1;
    assert!(metrics.contains("leaderelection_lease_api_requests_total{verb=\"update\",code=\"409\"} 1"), "{metrics}");
}

#[tokio::test]
async fn tokens_open_namespaces_and_the_kubeconfig_has_no_secret() {
    let place = Place::new();
    let (tokens, kubeconfig) = (place.path("tokens"), place.path("kubeconfig"));
    let (all, one) = ("the-token-for-all-namespaces", "the-token-for-one-namespace");
    std::fs::write(&tokens, format!("{all}\n{one} other,default\n")).unwrap();
    let mut command = lease_api(&place.file("leases"), "127.0.0.1:0");
    command.arg("--token-file").arg(&tokens).arg("--kubeconfig").arg(&kubeconfig);
    let server = Sidecar::spawn(&mut command).await;
    let elsewhere = LEASES.replace("default", "elsewhere");
    let everywhere = "/apis/coordination.k8s.io/v1/leases";
    for (token, path, status) in [
        ("", LEASES, 401),
        ("some-other-token-of-nobody", LEASES, 401),
        ("", "/metrics", 401),
        (one, "/metrics", 401),
        (all, "/metrics", 200),
        ("", "/livez", 200),
        ("", "/readyz", 200),
        (one, LEASES, 200),
        (one, &elsewhere, 403),
        (one, everywhere, 403),
        (all, &elsewhere, 200),
        (all, everywhere, 200),
    ] {
        let (found, said) = send(&server, Method::GET, path, token, &Value::Null).await;
        assert_eq!(found, status, "{token} {path}: {said}");
    }
    let written = std::fs::read_to_string(&kubeconfig).unwrap();
    assert!(!written.contains(all) && !written.contains(one), "{written}");
    let written: Value = serde_json::from_str(&written).unwrap();
    assert_eq!(written["clusters"][0]["cluster"]["server"], server.url());
}

#[tokio::test]
async fn a_token_that_may_read_writes_nothing_and_each_write_has_a_line_in_the_audit_log() {
    let place = Place::new();
    let (tokens, log) = (place.path("tokens"), place.path("audit"));
    let (all, reads) = ("the-token-for-all-namespaces", "the-token-that-may-only-read");
    std::fs::write(&tokens, format!("{all}\n{reads} *:read\n")).unwrap();
    let mut command = lease_api(&place.file("leases"), "127.0.0.1:0");
    command.arg("--token-file").arg(&tokens).arg("--audit-log").arg(&log).args(["--max-leases", "7"]);
    let server = Sidecar::spawn(&mut command).await;
    assert_eq!(send(&server, Method::POST, LEASES, reads, &lease("b")).await.0, 403);
    let (status, mut held) = send(&server, Method::POST, LEASES, all, &lease("a")).await;
    assert_eq!(status, 201, "{held}");
    for path in [LEASES, "/apis/coordination.k8s.io/v1/leases", "/metrics"] {
        assert_eq!(send(&server, Method::GET, path, reads, &Value::Null).await.0, 200, "{path}");
    }
    let is_written = async || {
        eventually("the line is written", async || {
            std::fs::read_to_string(&log).is_ok_and(|text| text.ends_with('\n')).then_some(())
        })
        .await;
    };
    is_written().await;
    // Somebody rotates the log.
    std::fs::rename(&log, place.path("audit.1")).unwrap();
    held["spec"]["holderIdentity"] = "b".into();
    assert_eq!(send(&server, Method::PUT, &format!("{LEASES}/web"), all, &held).await.0, 200);
    is_written().await;
    let lines = |name: &str| -> Vec<Value> {
        let text = std::fs::read_to_string(place.path(name)).unwrap();
        assert!(!text.contains(all) && !text.contains(reads), "{text}");
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    };
    let ([created], [taken]) = (&lines("audit.1")[..], &lines("audit")[..]) else { panic!("one line each") };
    // The first digits of `printf %s TOKEN | sha256sum`.
    assert_eq!(
        (&created["caller"], &created["toHolder"], &created["token"]),
        (&json!("d989f2ce"), &json!("a"), &json!(0))
    );
    assert_eq!(
        (&taken["verb"], &taken["fromHolder"], &taken["toHolder"]),
        (&json!("update"), &json!("a"), &json!("b"))
    );
    assert_eq!((&taken["namespace"], &taken["name"], &taken["token"]), (&json!("default"), &json!("web"), &json!(1)));
    let mut command = lease_api(&place.file("leases"), "127.0.0.1:0");
    command.args(["--audit-log", "/nowhere/audit"]);
    let refused = crate::support::end_of(command);
    assert!(refused.code == Some(74) && refused.stderr.contains("check --audit-log"), "{refused:?}");
}

#[tokio::test]
async fn a_server_that_is_told_to_end_answers_while_clients_find_another() {
    let place = Place::new();
    let mut server = Sidecar::spawn(lease_api(&place.file("leases"), "127.0.0.1:0").args(["--drain", "1h"])).await;
    server.signal(Signal::TERM);
    server.answers("/readyz", reqwest::StatusCode::SERVICE_UNAVAILABLE).await;
    assert_eq!(send(&server, Method::POST, LEASES, "", &lease("a")).await.0, 201);
    server.signal(Signal::TERM);
    assert_eq!(server.ended().await.code(), Some(0), "{}", server.said());
}
