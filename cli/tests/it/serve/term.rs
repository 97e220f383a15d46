//! POST /term and /events: a program beside the real sidecar, which tells how its work goes.

use std::io::{Read as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use reqwest::{Client, StatusCode};
use rustix::process::Signal;
use serde_json::{Value, json};

use super::process::eventually;
use super::sidecar::{Sidecar, lock_in, serve, serve_at};

/// A lease that nobody loses on a busy machine, and that no test waits for.
const LONG: [&str; 2] = ["--lease-duration", "5m"];

async fn says(sidecar: &Sidecar, token: u64, work: &str) -> (StatusCode, Value) {
    let report = json!({"token": token, "work": work});
    let answer = Client::new().post(format!("{}/term", sidecar.url())).json(&report).send().await.unwrap();
    (answer.status(), answer.json().await.unwrap())
}

async fn start(lock: &str, identity: &str, more: &[&str]) -> Sidecar {
    Sidecar::spawn(serve(lock, identity).args(LONG).args(more)).await
}

/// Starts the sidecars `alpha`, which leads, and `beta`, which follows it.
async fn leader_and_follower(lock: &str, more: &[&str]) -> (Sidecar, Sidecar) {
    let alpha = start(lock, "alpha", more).await;
    alpha.sees("alpha").await;
    let beta = start(lock, "beta", more).await;
    beta.sees("alpha").await;
    (alpha, beta)
}

#[tokio::test]
async fn the_end_of_the_work_releases_the_lease_at_once() {
    let directory = tempfile::tempdir().unwrap();
    let (alpha, beta) = leader_and_follower(&lock_in(directory.path()), &[]).await;
    let (status, told) = says(&alpha, 1, "running").await;
    assert_eq!((status, &told["leading"]), (StatusCode::OK, &json!(true)), "{told}");
    assert_eq!(says(&alpha, 2, "stopped").await.0, StatusCode::CONFLICT, "no term has this token");
    assert_eq!(says(&beta, 1, "stopped").await.0, StatusCode::CONFLICT, "it is the term of another");
    let (status, told) = says(&alpha, 1, "stopped").await;
    assert_eq!((status, &told["leading"]), (StatusCode::OK, &json!(false)), "{told}");
    assert_ne!(told["holder"], "alpha", "the answer comes after the release: {told}");
    beta.sees("beta").await;
    assert_eq!(says(&alpha, 1, "running").await.0, StatusCode::CONFLICT);

    let token = beta.leader().await["fencingToken"].as_u64().unwrap();
    assert_eq!(says(&beta, token, "failed").await.0, StatusCode::OK);
    let metrics = beta.ask("/metrics").await.1;
    assert!(metrics.contains(r#"reason="work_failed"} 1"#), "{metrics}");
}

#[tokio::test]
async fn a_report_is_json_that_no_other_site_can_send() {
    let directory = tempfile::tempdir().unwrap();
    let alpha = start(&lock_in(directory.path()), "alpha", &[]).await;
    alpha.sees("alpha").await;
    let client = Client::new();
    for (body, kind, status) in [
        (r#"{"token":0,"work":"stopped"}"#, "text/plain", 415),
        (r#"{"token":0,"work":"stopped""#, "application/json", 400),
        (r#"{"token":0,"work":"over"}"#, "application/json", 422),
        (r#"{"work":"stopped"}"#, "application/json", 422),
        (r#"{"token":0,"work":"stopped","more":1}"#, "application/json", 422),
    ] {
        let request = client.post(format!("{}/term", alpha.url())).header("content-type", kind).body(body);
        let answer = request.send().await.unwrap();
        assert_eq!(answer.status(), status, "{kind} {body}");
    }
    assert_eq!(alpha.leader().await["leading"], true);
}

#[tokio::test]
async fn a_program_keeps_the_lease_after_a_signal_until_it_has_stopped() {
    let directory = tempfile::tempdir().unwrap();
    let (mut alpha, beta) = leader_and_follower(&lock_in(directory.path()), &["--drain", "1h"]).await;
    says(&alpha, 1, "running").await;
    alpha.signal(Signal::TERM);
    eventually("it drains", async || (alpha.leader().await["draining"] == true).then_some(())).await;
    let (status, told) = says(&alpha, 1, "running").await;
    assert_eq!((status, &told["draining"]), (StatusCode::OK, &json!(true)), "{told}");
    // Leadership ends now, and the work does not.
    alpha.signal(Signal::TERM);
    eventually("leadership is over", async || {
        (says(&alpha, 1, "running").await.0 == StatusCode::CONFLICT).then_some(())
    })
    .await;
    assert_eq!(beta.leader().await["holder"], "alpha");
    let _answer = says(&alpha, 1, "stopped").await;
    assert_eq!(alpha.ended().await.code(), Some(0), "{}", alpha.said());
    beta.sees("beta").await;
}

#[tokio::test]
async fn a_program_that_says_nothing_leads_no_longer() {
    let directory = tempfile::tempdir().unwrap();
    let lock = lock_in(directory.path());
    let alpha = start(&lock, "alpha", &["--heartbeat-timeout", "500ms"]).await;
    eventually("it says so", async || alpha.said().contains("--heartbeat-timeout").then_some(())).await;
    let beta = start(&lock, "beta", &[]).await;
    beta.sees("beta").await;
}

#[tokio::test]
async fn a_sidecar_competes_again_when_its_silent_program_asks() {
    for job in [&[][..], &["--job-id", "2026-02-02"]] {
        let directory = tempfile::tempdir().unwrap();
        let silence = ["--lease-duration", "1500ms", "--heartbeat-timeout", "500ms"];
        let alpha = Sidecar::spawn(serve(&lock_in(directory.path()), "alpha").args(silence).args(job)).await;
        let waits = || alpha.said().matches("when the program asks /leader").count();
        eventually("it waits", async || (waits() == 1).then_some(())).await;
        // Probes and load balancers ask this, whether or not there is a program.
        assert_eq!(alpha.ask("/leading").await.0, StatusCode::SERVICE_UNAVAILABLE);
        assert_eq!(alpha.leader().await["leading"], false);
        eventually("it leads again, and waits again", async || (waits() == 2).then_some(())).await;
    }
}

#[tokio::test]
async fn a_program_that_falls_silent_leads_no_longer_and_keeps_the_lease() {
    let directory = tempfile::tempdir().unwrap();
    let lock = lock_in(directory.path());
    let alpha = start(&lock, "alpha", &["--heartbeat-timeout", "10s"]).await;
    alpha.sees("alpha").await;
    let token = alpha.leader().await["fencingToken"].as_u64().unwrap();
    says(&alpha, token, "running").await;
    eventually("it stops", async || (alpha.leader().await["leading"] == false).then_some(())).await;
    let late = alpha.leader().await;
    assert_eq!(late["holder"], "alpha", "the work may go on: {late}");
    assert_eq!(says(&alpha, token, "running").await.0, StatusCode::CONFLICT, "it is told that it is late");
    let (status, told) = says(&alpha, token, "stopped").await;
    assert_eq!((status, &told["holder"]), (StatusCode::OK, &json!("")), "{told}");
}

#[tokio::test]
async fn a_job_is_done_once_by_one_of_two_programs() {
    let directory = tempfile::tempdir().unwrap();
    let lock = lock_in(directory.path());
    let job = ["--job-id", "2026-02-02"];
    let (alpha, beta) = leader_and_follower(&lock, &job).await;
    assert_eq!(alpha.leader().await["jobDone"], false);
    assert_eq!(says(&alpha, 1, "failed").await.0, StatusCode::OK);
    let token = beta.sees("beta").await["fencingToken"].as_u64().unwrap();
    assert_eq!(says(&beta, token, "done").await.0, StatusCode::OK);
    // Whoever looks only now finds it done.
    let gamma = start(&lock, "gamma", &job).await;
    for sidecar in [&beta, &gamma] {
        eventually("the job is done", async || {
            let leader = sidecar.leader().await;
            (leader["jobDone"] == true && leader["leading"] == false).then_some(())
        })
        .await;
    }
}

#[tokio::test]
async fn a_sidecar_ends_when_its_program_knows_that_the_job_is_done() {
    let directory = tempfile::tempdir().unwrap();
    let lock = lock_in(directory.path());
    let job = ["--job-id", "2026-02-02", "--end-when-done"];
    let (mut alpha, mut beta) = leader_and_follower(&lock, &job).await;
    assert_eq!(says(&alpha, 1, "done").await.0, StatusCode::OK);
    assert_eq!(alpha.ended().await.code(), Some(0), "{}", alpha.said());
    assert!(!beta.has_ended(), "its program does not know");
    eventually("it is told", async || (beta.leader().await["jobDone"] == true).then_some(())).await;
    assert_eq!(beta.ended().await.code(), Some(0), "{}", beta.said());
}

#[tokio::test]
async fn the_sidecar_ends_with_the_program_that_started_it() {
    let directory = tempfile::tempdir().unwrap();
    let lock = lock_in(directory.path());
    // The program holds the only other end of the pipe.
    let mut program = std::process::Command::new("sleep").arg("1000").stdout(Stdio::piped()).spawn().unwrap();
    let mut command = serve(&lock, "alpha");
    command.args(LONG).args(["--drain", "1h", "--exit-on-stdin-eof"]).stdin(program.stdout.take().unwrap());
    let mut alpha = Sidecar::spawn(&mut command).await;
    drop(command);
    alpha.sees("alpha").await;
    says(&alpha, 1, "running").await;
    let beta = start(&lock, "beta", &[]).await;
    beta.sees("alpha").await;
    program.kill().unwrap();
    program.wait().unwrap();
    assert_eq!(alpha.ended().await.code(), Some(0), "{}", alpha.said());
    beta.sees("beta").await;
}

#[tokio::test]
async fn changes_come_as_events() {
    let directory = tempfile::tempdir().unwrap();
    let lock = lock_in(directory.path());
    let alpha = start(&lock, "alpha", &[]).await;
    alpha.sees("alpha").await;
    let beta = start(&lock, "beta", &[]).await;
    beta.sees("alpha").await;
    let mut events = beta.get("/events").await;
    assert_eq!(events.headers()["content-type"], "text/event-stream");
    let mut seen = String::new();
    let mut next = async |wanted: &str| {
        let deadline = Instant::now() + super::process::PATIENCE;
        while !seen.contains(wanted) {
            let left = deadline.saturating_duration_since(Instant::now()).max(Duration::from_millis(1));
            let chunk = tokio::time::timeout(left, events.chunk()).await;
            seen += std::str::from_utf8(&chunk.expect(wanted).unwrap().expect(wanted)).unwrap();
        }
        let event = seen.split("\n\n").find(|event| event.contains(wanted)).unwrap().to_owned();
        let data = event.strip_prefix("event: leader\ndata: ").unwrap_or_else(|| panic!("{event}"));
        serde_json::from_str::<Value>(data).unwrap()
    };
    assert_eq!(next(r#""name":"alpha""#).await["fencingToken"], 1);
    says(&alpha, 1, "done").await;
    assert_eq!(next(r#""name":"beta""#).await["leading"], true);
    beta.signal(Signal::TERM);
    next(r#""draining":true"#).await;
}

/// One request over a socket, to its end.
fn over_socket(path: &Path, request: &str) -> String {
    let mut stream = UnixStream::connect(path).unwrap();
    stream.write_all(format!("{request}\r\nHost: x\r\nConnection: close\r\n\r\n").as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

#[tokio::test]
async fn a_socket_is_for_this_user_and_one_of_a_dead_process_makes_room() {
    let directory = tempfile::tempdir().unwrap();
    let lock = lock_in(directory.path());
    let path = directory.path().join("leader.sock");
    let listen = format!("unix:{}", path.display());
    let command = || {
        let mut command = serve_at(&listen, &lock, "alpha");
        command.args(LONG);
        command
    };
    let mut first = Sidecar::spawn(&mut command()).await;
    assert_eq!(first.url(), listen);
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    let answer = over_socket(&path, "GET /leader HTTP/1.1");
    assert!(answer.starts_with("HTTP/1.1 200") && answer.contains(r#""identity":"alpha""#), "{answer}");
    let mut second = super::process::Process::spawn(&mut command());
    assert_eq!(second.ended().await.code(), Some(74));
    assert!(second.said().contains("another process is listening on it"), "{}", second.said());
    first.signal(Signal::KILL);
    first.ended().await;
    assert!(path.exists());
    let _third = Sidecar::spawn(&mut command()).await;
    assert!(over_socket(&path, "GET /healthz HTTP/1.1").starts_with("HTTP/1.1 200"));
}

#[tokio::test]
async fn the_answers_are_as_the_description_says() {
    let directory = tempfile::tempdir().unwrap();
    let alpha = start(&lock_in(directory.path()), "alpha", &["--job-id", "job"]).await;
    let leader = alpha.sees("alpha").await;
    let description: Value = serde_json::from_str(&alpha.ask("/openapi.json").await.1).unwrap();
    let schema = &description["components"]["schemas"]["Leader"];
    let keys = |value: &Value| value.as_object().unwrap().keys().cloned().collect::<std::collections::BTreeSet<_>>();
    assert_eq!(keys(&schema["properties"]), keys(&leader));
    let required = schema["required"].as_array().unwrap();
    assert!(keys(&leader).iter().all(|key| key == "jobDone" || required.iter().any(|name| name == key)), "{schema}");
    for (key, value) in leader.as_object().unwrap() {
        let kind = match value {
            Value::Null => "null",
            Value::Bool(_) => "boolean",
            Value::String(_) => "string",
            Value::Number(number) if number.is_f64() => "number",
            _ => "integer",
        };
        let allowed = &schema["properties"][key]["type"];
        let is_allowed = allowed == kind || allowed.as_array().is_some_and(|kinds| kinds.iter().any(|one| one == kind));
        assert!(is_allowed, "{key}: {value} is no {allowed}");
    }
    for (path, methods) in description["paths"].as_object().unwrap() {
        for (method, said) in methods.as_object().unwrap() {
            let request =
                Client::new().request(method.to_uppercase().parse().unwrap(), format!("{}{path}", alpha.url()));
            let answer = request.send().await.unwrap();
            let status = answer.status().as_u16().to_string();
            let described = &said["responses"][&status];
            let kind = answer.headers()["content-type"].to_str().unwrap().split(';').next().unwrap().to_owned();
            assert!(described["content"].get(&kind).is_some(), "{method} {path}: {status} {kind}");
        }
    }
}
