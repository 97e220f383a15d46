//! The credentials of stores of other crates, in real processes, from a source that misbehaves.

use std::collections::HashMap;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, Method, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use chrono::{TimeDelta, Utc};
use leaderelection_integration_tests::adapted::{Adapted, By, Place};
use leaderelection_integration_tests::timings;
use serde_json::Value;
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::time::{sleep, timeout};

const PATIENCE: Duration = Duration::from_secs(60);

/// The answer of the source of keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Source {
    /// This key, for so many seconds.
    Gives(&'static str, i64),
    Fails,
    IsSilent,
    Closes,
}

struct Seen {
    objects: HashMap<String, (u64, Bytes)>,
    source: Source,
    by: HashMap<String, u32>,
    asked: u32,
    /// The moment of the last request that was not refused.
    last: Instant,
}

impl Seen {
    fn by(&self, key: &str) -> u32 {
        self.by.get(key).copied().unwrap_or_default()
    }

    /// The token of the lock.
    fn token(&self) -> Option<u64> {
        let (_, lock) = self.objects.get("/bucket/lock")?;
        serde_json::from_slice::<Value>(lock).ok()?["leaderTransitions"].as_u64()
    }
}

/// An S3 and its container's source of keys.
#[derive(Clone)]
struct World(Arc<Mutex<Seen>>);

impl World {
    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.0.lock().unwrap()
    }

    async fn wait_until(&self, what: &str, is_so: impl Fn(&Seen) -> bool) {
        let waited = timeout(PATIENCE, async {
            while !is_so(&self.seen()) {
                sleep(Duration::from_millis(20)).await;
            }
        });
        let told = |seen: &Seen| format!("{:?}, asked {}", seen.by, seen.asked);
        waited.await.unwrap_or_else(|_| panic!("no {what}: {}", told(&self.seen())));
    }

    fn give(&self, source: Source) {
        self.seen().source = source;
    }
}

async fn answer(State(world): State<World>, method: Method, uri: Uri, headers: HeaderMap, body: Bytes) -> Response {
    if uri.path() == "/keys" {
        let source = {
            let mut seen = world.seen();
            seen.asked += 1;
            seen.source
        };
        return match source {
            Source::Gives(key, life) => {
                let until = (Utc::now() + TimeDelta::seconds(life)).to_rfc3339();
                format!(
                    r#"{{"AccessKeyId":"{key}","SecretAccessKey":"hidden","Token":"token","Expiration":"{until}"}}"#
                )
                .into_response()
            }
            Source::Fails => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
            Source::IsSilent => {
                while world.seen().source == source {
                    sleep(Duration::from_millis(20)).await;
                }
                StatusCode::INTERNAL_SERVER_ERROR.into_response()
            }
            // The task of the connection ends, and nothing is printed.
            Source::Closes => std::panic::resume_unwind(Box::new("closed")),
        };
    }
    let header = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let key = header("authorization").split_once("Credential=").and_then(|(_, rest)| rest.split_once('/'));
    let key = key.map_or("", |(key, _)| key).to_owned();
    let error = |status: StatusCode, code: &str| {
        (status, format!("<Error><Code>{code}</Code><Message>m</Message></Error>")).into_response()
    };
    let mut seen = world.seen();
    if key != "old" && key != "new" {
        return error(StatusCode::FORBIDDEN, "InvalidAccessKeyId");
    }
    *seen.by.entry(key).or_default() += 1;
    seen.last = Instant::now();
    let shown =
        |version: u64| [("etag", format!("\"{version}\"")), ("last-modified", "Sun, 29 Nov 2026 00:00:00 GMT".into())];
    let present = seen.objects.get(uri.path()).cloned();
    if method != Method::PUT {
        return match present {
            Some((version, body)) => (shown(version), body).into_response(),
            None => error(StatusCode::NOT_FOUND, "NoSuchKey"),
        };
    }
    let version = present.map(|(version, _)| version);
    let expected = header("if-match");
    let may_write = if expected.is_empty() {
        version.is_none()
    } else {
        version.map(|v| format!("\"{v}\"")).as_deref() == Some(expected)
    };
    if !may_write {
        return error(StatusCode::PRECONDITION_FAILED, "PreconditionFailed");
    }
    let next = version.unwrap_or_default() + 1;
    seen.objects.insert(uri.path().to_owned(), (next, body));
    shown(next).into_response()
}

/// A candidate in a process of its own, until it is dropped.
struct Candidate(Child);

impl Drop for Candidate {
    fn drop(&mut self) {
        let _gone = (self.0.kill(), self.0.wait());
    }
}

async fn start(by: By, source: Source) -> (World, Candidate, TempDir) {
    let seen = Seen { objects: HashMap::new(), source, by: HashMap::new(), asked: 0, last: Instant::now() };
    let world = World(Arc::new(Mutex::new(seen)));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let routes = Router::new().fallback(answer).with_state(world.clone());
    tokio::spawn(async { axum::serve(listener, routes).await });
    let home = tempfile::tempdir().unwrap();
    let token = home.path().join("token");
    std::fs::write(&token, "token").unwrap();
    let place = Place::Environment { endpoint: url.clone(), bucket: "bucket".into() };
    let adapted = Adapted { by, place, retries: false, key: "lock".into() };
    let mut command = Command::new(env!("CARGO_BIN_EXE_contender"));
    let timings = serde_json::to_string(&timings(6000, 4000, 500)).unwrap();
    command.args([adapted.to_string(), "a".into(), timings, "--rest".into(), "500".into()]);
    for name in ["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE"] {
        command.env_remove(name);
    }
    command.env("HOME", home.path()).env("NO_PROXY", "*").env("AWS_EC2_METADATA_DISABLED", "true");
    command.env("AWS_CONTAINER_CREDENTIALS_FULL_URI", format!("{url}/keys"));
    command.env("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", token);
    (world, Candidate(command.stdin(Stdio::piped()).spawn().unwrap()), home)
}

const BOTH: [By; 2] = [By::ObjectStore, By::Opendal];

/// The time before the end from which a crate loads new keys, in seconds.
fn early(by: By) -> i64 {
    if by == By::ObjectStore { 300 } else { 120 }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_source_that_is_down_at_the_start_is_waited_for() {
    for by in BOTH {
        for source in [Source::Fails, Source::IsSilent, Source::Closes] {
            let (world, _candidate, _home) = start(by, source).await;
            world.wait_until("question", |seen| seen.asked >= 1).await;
            world.give(Source::Gives("new", 3600));
            world.wait_until("term", |seen| seen.token().is_some()).await;
        }
    }
}

/// Leads with keys that are loaded anew eight seconds later, from a source that answers like this. Returns the world, and the
/// token and the requests so far.
async fn fails_before_the_end(by: By, source: Source) -> (World, Candidate, TempDir, u64, u32) {
    let (world, candidate, home) = start(by, Source::Gives("old", early(by) + 8)).await;
    world.wait_until("term", |seen| seen.token().is_some()).await;
    let (first, token) = {
        let seen = world.seen();
        (seen.asked, seen.token().unwrap())
    };
    world.give(source);
    world.wait_until("second load", |seen| seen.asked > first).await;
    let before = world.seen().by("old");
    (world, candidate, home, token, before)
}

const FAULTS: [Source; 3] = [Source::Fails, Source::IsSilent, Source::Closes];

/// With the credentials that this library keeps.
#[tokio::test(flavor = "multi_thread")]
async fn a_source_that_is_down_before_the_end_costs_no_request_of_object_store() {
    let case = |source| async move {
        let (world, _candidate, _home, token, before) = fails_before_the_end(By::ObjectStore, source).await;
        world.wait_until("renewals", |seen| seen.by("old") >= before + 20).await;
        world.give(Source::Gives("new", 3600));
        world.wait_until("new keys", |seen| seen.by("new") >= 5).await;
        assert_eq!(world.seen().token(), Some(token), "{source:?}");
    };
    for case in FAULTS.map(|source| tokio::spawn(case(source))) {
        case.await.unwrap();
    }
}

/// OpenDAL has no place for credentials that are kept.
#[tokio::test(flavor = "multi_thread")]
async fn a_source_that_is_down_before_the_end_costs_a_term_with_opendal() {
    let case = |source| async move {
        let (world, _candidate, _home, token, _) = fails_before_the_end(By::Opendal, source).await;
        let lease = timings(6000, 4000, 500).lease_duration();
        world.wait_until("end of the requests", |seen| seen.last.elapsed() > lease * 2).await;
        world.give(Source::Gives("new", 3600));
        world.wait_until("a term", |seen| seen.token().is_some_and(|later| later > token)).await;
    };
    for case in [Source::Fails, Source::Closes].map(|source| tokio::spawn(case(source))) {
        case.await.unwrap();
    }
}
