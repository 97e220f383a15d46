//! The last line of `run` after the end of leadership, which is what cron mails: why, and what to do.

use std::fs;
use std::sync::{Arc, Mutex, OnceLock};

use axum::Router;
use axum::body::Bytes;
use axum::http::{Method, StatusCode};
use axum::response::IntoResponse as _;
use rustix::process::Signal;
use tokio::net::TcpListener;
use tokio::runtime::Runtime;

use crate::fake_s3::with_keys;
use crate::pipe::Pipe;
use crate::support::{Place, Running, TIMINGS, end, leaderelect, record, run};

/// Waits until it is told to end.
const WAITS: &str = "echo up; while :; do sleep 0.05; done";

/// Asserts that the process has ended because of a loss, and that its last line has these words.
fn assert_last(running: Running, words: &[&str]) {
    let ended = running.end();
    assert_eq!(ended.code, Some(79), "{ended:?}");
    let last = ended.stderr.lines().last().unwrap_or_default();
    for words in words {
        assert!(last.contains(words), "{words:?} is not in {last:?}");
    }
    assert!(last.starts_with("leaderelect: error: leadership of ") && last.contains("; the command was "), "{last}");
}

/// A leader of the lock `a` whose command is at work.
fn leader(place: &Place, more: &[&str]) -> Running {
    let options = [&TIMINGS[..], &["--identity", "node-1"], more].concat();
    let mut running = Running::start(&run(&place.lock("a"), &options, &["sh", "-c", WAITS]));
    running.wait_for("up");
    running
}

#[test]
fn a_hand_over_is_no_loss() {
    let place = Place::new();
    let lock = place.lock("a");
    let handed = "was handed over to \"node-2\", as `leaderelect transfer` or a candidate with --take-back asked";
    let running = leader(&place, &["--rank", "9"]);
    let mut next =
        Running::start(&run(&lock, &[&TIMINGS[..], &["--identity", "node-2"]].concat(), &["sh", "-c", WAITS]));
    next.wait_for_note("node-1 leads");
    assert_eq!(end(&["transfer", &lock, "--to", "node-2", "--yes"]).code, Some(0));
    assert_last(running, &[handed]);
    drop(next);

    let place = Place::new();
    let running = leader(&place, &["--rank", "9"]);
    let better = [&TIMINGS[..], &["--identity", "node-2", "--take-back"]].concat();
    let mut next = Running::start(&run(&place.lock("a"), &better, &["sh", "-c", WAITS]));
    assert_last(running, &[handed]);
    next.wait_for("up");
}

#[test]
fn changes_of_the_object_are_told_apart() {
    type Change = fn(&Place);
    let released = |place: &Place| {
        assert_eq!(end(&["release", "--force", "--yes", &place.lock("a")]).code, Some(0));
    };
    let cases: [(Change, [&str; 2]); 5] = [
        (
            |place| place.overwrite("a", &record("node-1", "1h", 7, "1")),
            ["the lease was taken over by \"node-1\"", "give every process an --identity of its own"],
        ),
        (
            |place| place.overwrite("a", &record("thief", "1h", 7, "1")),
            ["the lease was taken over by \"thief\"", "look whether somebody forced a release"],
        ),
        (released, ["the lease was released by somebody else", "`leaderelect release --force` does that"]),
        (
            |place| place.overwrite("a", "somebody's photo"),
            ["the lock's object was replaced by something that is not a record", "look what else writes to this key"],
        ),
        (
            |place| fs::rename(place.path("locks/a"), place.path("away")).unwrap(),
            ["the lock's object was deleted", "look who deletes objects there"],
        ),
    ];
    for (change, words) in cases {
        let place = Place::new();
        let running = leader(&place, &[]);
        change(&place);
        assert_last(running, &words);
    }
}

#[test]
fn a_process_that_was_frozen_says_so() {
    let place = Place::new();
    let pipe = Pipe::new(&place);
    let command = "exec 4>\"$0\" >/dev/null 2>&1; echo up >&4; exec sleep 300";
    let running = Running::start(&run(&place.lock("a"), &TIMINGS, &["sh", "-c", command, &pipe.path]));
    pipe.wait_for_start();
    let mut next = Running::start(&run(&place.lock("a"), &TIMINGS, &["echo", "led"]));
    next.wait_for_note("leads");
    running.signal(Signal::STOP);
    next.wait_for("led");
    running.signal(Signal::CONT);
    let words =
        ["could not be renewed before the renew deadline", "this process stood still", "the command was killed"];
    assert_last(running, &words);
}

/// An S3 with one object, which takes every write until it refuses all of them.
async fn s3_that_refuses(refusal: Arc<OnceLock<&'static str>>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("s3://bucket/lock?endpoint=http://{}", listener.local_addr().unwrap());
    let object = Arc::new(Mutex::new((0, Bytes::new())));
    let answer = async move |method: Method, body: Bytes| {
        let mut object = object.lock().unwrap();
        match (method, refusal.get()) {
            (Method::PUT, Some(code)) => {
                let status = if *code == "ExpiredToken" { StatusCode::BAD_REQUEST } else { StatusCode::FORBIDDEN };
                return (status, format!("<Error><Code>{code}</Code></Error>")).into_response();
            }
            (Method::PUT, None) => *object = (object.0 + 1, body),
            _ if object.0 == 0 => {
                return (StatusCode::NOT_FOUND, "<Error><Code>NoSuchKey</Code></Error>").into_response();
            }
            _ => {}
        }
        ([("etag", format!("\"{}\"", object.0))], object.1.clone()).into_response()
    };
    tokio::spawn(async { axum::serve(listener, Router::new().fallback(answer)).await });
    url
}

#[test]
fn a_store_that_refuses_is_named_with_its_reason() {
    let runtime = Runtime::new().unwrap();
    for (code, reason) in
        [("AccessDenied", "allow s3:PutObject"), ("ExpiredToken", "the credentials have expired; renew them")]
    {
        let refusal = Arc::new(OnceLock::new());
        let lock = runtime.block_on(s3_that_refuses(Arc::clone(&refusal)));
        let mut running = Running::of(with_keys(leaderelect(run(&lock, &TIMINGS, &["sh", "-c", WAITS]))));
        running.wait_for("up");
        refusal.set(code).unwrap();
        assert_last(running, &["could not be renewed before the renew deadline: the store refuses: ", reason]);
    }
}

#[test]
#[cfg(target_os = "linux")]
fn a_full_disk_is_named() {
    use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};

    let place = Place::new();
    let disk = place.path("locks");
    fs::create_dir(&disk).unwrap();
    if let Err(error) = mount("tmpfs", &disk, "tmpfs", MountFlags::empty(), c"size=1m") {
        println!("skipped: no file system can be mounted: {error}");
        return;
    }
    let running = leader(&place, &[]);
    // The file takes what is left, also what a renewal gives back.
    let mut file = fs::File::create(disk.join("full")).unwrap();
    while std::io::Write::write_all(&mut file, &[0; 512]).is_ok() {}
    assert_last(
        running,
        &[
            "could not be renewed before the renew deadline: the store cannot be used now: ",
            "the file system is full: free some space",
        ],
    );
    unmount(&disk, UnmountFlags::DETACH).unwrap();
}
