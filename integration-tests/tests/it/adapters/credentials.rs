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
use leaderelection::Timings;
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
    refuses_old: bool,
    /// The writes of the lock with the old key that were refused, and those with the new key. The log of a leader's work has keys
    /// of its own.
    refused: u32,
    renewed: u32,
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
        let told = |seen: &Seen| format!("{:?}, refused {}, asked {}", seen.by, seen.refused, seen.asked);
        waited.await.unwrap_or_else(|_| panic!("no {what}: {}", told(&self.seen())));
    }

    fn give(&self, source: Source) {
        self.seen().source = source;
    }

    /// Refuses the old key from now on, whose source gives the new one.
    fn replace_key(&self) {
        let mut seen = self.seen();
        (seen.refuses_old, seen.source) = (true, Source::Gives("new", 3600));
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
    let is_write_of_the_lock = uri.path() == "/bucket/lock" && method == Method::PUT;
    let mut seen = world.seen();
    if key != "new" && (key != "old" || seen.refuses_old) {
        seen.refused += u32::from(is_write_of_the_lock);
        return error(StatusCode::FORBIDDEN, "InvalidAccessKeyId");
    }
    seen.renewed += u32::from(is_write_of_the_lock && key == "new");
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
struct Candidate {
    process: Child,
    _home: TempDir,
}

impl Drop for Candidate {
    fn drop(&mut self) {
        let _gone = (self.process.kill(), self.process.wait());
    }
}

/// Starts a candidate whose place, and whose source of keys, are at `url`.
fn candidate(by: By, url: &str, timings: Timings) -> Candidate {
    let home = tempfile::tempdir().unwrap();
    let token = home.path().join("token");
    std::fs::write(&token, "token").unwrap();
    let place = Place::Environment { endpoint: url.to_owned(), bucket: "bucket".into() };
    let adapted = Adapted { by, place, retries: false, key: "lock".into() };
    let mut command = Command::new(env!("CARGO_BIN_EXE_contender"));
    let timings = serde_json::to_string(&timings).unwrap();
    command.args([adapted.to_string(), "a".into(), timings, "--rest".into(), "500".into()]);
    for name in ["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE"] {
        command.env_remove(name);
    }
    command.env("HOME", home.path()).env("NO_PROXY", "*").env("AWS_EC2_METADATA_DISABLED", "true");
    command.env("AWS_CONTAINER_CREDENTIALS_FULL_URI", format!("{url}/keys"));
    command.env("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", token);
    Candidate { process: command.stdin(Stdio::piped()).spawn().unwrap(), _home: home }
}

/// Starts the servers. Returns their URL, too.
async fn world(source: Source) -> (World, String) {
    let seen = Seen {
        objects: HashMap::new(),
        source,
        by: HashMap::new(),
        refuses_old: false,
        refused: 0,
        renewed: 0,
        asked: 0,
        last: Instant::now(),
    };
    let world = World(Arc::new(Mutex::new(seen)));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let routes = Router::new().fallback(answer).with_state(world.clone());
    tokio::spawn(async { axum::serve(listener, routes).await });
    (world, url)
}

/// Timings with which a term ends soon.
fn short() -> Timings {
    timings(6000, 4000, 500)
}

async fn start(by: By, source: Source) -> (World, Candidate) {
    let (world, url) = world(source).await;
    (world, candidate(by, &url, short()))
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
            let (world, _candidate) = start(by, source).await;
            world.wait_until("question", |seen| seen.asked >= 1).await;
            world.give(Source::Gives("new", 3600));
            world.wait_until("term", |seen| seen.token().is_some()).await;
        }
    }
}

/// Leads with keys that are loaded anew eight seconds later, from a source that answers like this. Returns the world, and the
/// token and the requests so far.
async fn fails_before_the_end(by: By, source: Source) -> (World, Candidate, u64, u32) {
    let (world, candidate) = start(by, Source::Gives("old", early(by) + 8)).await;
    world.wait_until("term", |seen| seen.token().is_some()).await;
    let (first, token) = {
        let seen = world.seen();
        (seen.asked, seen.token().unwrap())
    };
    world.give(source);
    world.wait_until("second load", |seen| seen.asked > first).await;
    let before = world.seen().by("old");
    (world, candidate, token, before)
}

const FAULTS: [Source; 3] = [Source::Fails, Source::IsSilent, Source::Closes];

/// With the credentials that this library keeps.
#[tokio::test(flavor = "multi_thread")]
async fn a_source_that_is_down_before_the_end_costs_no_request_of_object_store() {
    let case = |source| async move {
        let (world, _candidate, token, before) = fails_before_the_end(By::ObjectStore, source).await;
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
        let (world, _candidate, token, _) = fails_before_the_end(By::Opendal, source).await;
        let lease = short().lease_duration();
        world.wait_until("end of the requests", |seen| seen.last.elapsed() > lease * 2).await;
        world.give(Source::Gives("new", 3600));
        world.wait_until("a term", |seen| seen.token().is_some_and(|later| later > token)).await;
    };
    for case in [Source::Fails, Source::Closes].map(|source| tokio::spawn(case(source))) {
        case.await.unwrap();
    }
}

/// Renewals are refused until the crate loads new keys, which it does some minutes before the end of the old.
#[tokio::test(flavor = "multi_thread")]
async fn a_term_goes_on_if_its_writes_are_refused_shortly_before_new_keys_come() {
    let case = |by| async move {
        let (world, url) = world(Source::Gives("old", early(by) + 8)).await;
        let _candidate = candidate(by, &url, timings(60_000, 40_000, 500));
        world.wait_until("term", |seen| seen.token().is_some()).await;
        world.replace_key();
        world.wait_until("refused write", |seen| seen.refused >= 1).await;
        world.wait_until("new keys", |seen| seen.renewed >= 3).await;
        assert_eq!(world.seen().token(), Some(1), "{by:?}");
    };
    for case in BOTH.map(|by| tokio::spawn(case(by))) {
        case.await.unwrap();
    }
}

/// The crates look for no other keys before that, whatever the store says.
#[tokio::test(flavor = "multi_thread")]
async fn keys_that_are_refused_for_good_need_a_new_process() {
    let case = |by| async move {
        let (world, url) = world(Source::Gives("old", 3600)).await;
        let _candidate = candidate(by, &url, short());
        world.wait_until("term", |seen| seen.token().is_some()).await;
        world.replace_key();
        let lease = short().lease_duration();
        world.wait_until("end of the term", |seen| seen.refused >= 1 && seen.last.elapsed() > lease * 2).await;
        assert_eq!(world.seen().renewed, 0, "{by:?}");
        let _next = candidate(by, &url, short());
        world.wait_until("a term", |seen| seen.token().is_some_and(|token| token > 1)).await;
    };
    for case in BOTH.map(|by| tokio::spawn(case(by))) {
        case.await.unwrap();
    }
}
