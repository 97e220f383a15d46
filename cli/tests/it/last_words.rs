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
use crate::support::{LONG, Place, Running, TIMINGS, end, leaderelect, record, run};

/// Waits until it is told to end.
const WAITS: &str = "echo up; while :; do sleep 0.05; done";

/// Asserts that the process has ended because of a loss. Returns its last line.
fn last_line(running: Running) -> String {
    let ended = running.end();
    assert_eq!(ended.code, Some(79), "{ended:?}");
    let last = ended.stderr.lines().last().unwrap_or_default();
    assert!(last.starts_with("leaderelect: error: leadership of ") && last.contains("; the command was "), "{last}");
    last.to_owned()
}

fn assert_words(last: &str, words: &[&str]) {
    for words in words {
        assert!(last.contains(words), "{words:?} is not in {last:?}");
    }
}

/// Asserts that the last line of a leader has these words, which are the error of its store. A leader that notices its deadline
/// late tells that instead of the error, and one that was slow has not loaded its credentials anew so far. Then the next leader is
/// asked.
fn assert_store_is_named(mut leader: impl FnMut() -> Running, words: &[&str]) {
    let is_late =
        |last: &str| last.contains("this process stood still") || last.contains("credentials are loaded anew");
    let mut lines = std::iter::repeat_with(|| last_line(leader())).take(5);
    let last = lines.find(|last| !is_late(last)).expect("each leader was late");
    assert_words(&last, words);
}

/// A leader of the lock `a` whose command is at work.
fn leader(place: &Place, timings: &[&str], more: &[&str]) -> Running {
    let options = [timings, &["--identity", "node-1"], more].concat();
    let mut running = Running::start(&run(&place.lock("a"), &options, &["sh", "-c", WAITS]));
    running.wait_for("up");
    running
}

#[test]
fn a_hand_over_is_no_loss() {
    let place = Place::new();
    let lock = place.lock("a");
    let handed = "was handed over to \"node-2\", as requested by `leaderelect transfer` or a candidate with --failback";
    let running = leader(&place, &LONG, &["--rank", "9"]);
    let mut next = Running::start(&run(&lock, &[&LONG[..], &["--identity", "node-2"]].concat(), &["sh", "-c", WAITS]));
    next.wait_for_note("node-1 leads");
    assert_eq!(end(&["transfer", &lock, "--to", "node-2", "--yes"]).code, Some(0));
    assert_words(&last_line(running), &[handed]);
    drop(next);

    let place = Place::new();
    let running = leader(&place, &TIMINGS, &["--rank", "9"]);
    let better = [&TIMINGS[..], &["--identity", "node-2", "--failback"]].concat();
    let mut next = Running::start(&run(&place.lock("a"), &better, &["sh", "-c", WAITS]));
    assert_words(&last_line(running), &[handed]);
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
            ["the lease was taken over by \"node-1\"", "give every process its own --identity"],
        ),
        (
            |place| place.overwrite("a", &record("thief", "1h", 7, "1")),
            ["the lease was taken over by \"thief\"", "check whether somebody forced a release"],
        ),
        (
            released,
            ["the lease was released by somebody else", "check whether somebody ran `leaderelect release --force`"],
        ),
        (
            |place| place.overwrite("a", "somebody's photo"),
            ["the lock's object was replaced by something that is not a record", "check what else writes to this key"],
        ),
        (
            |place| fs::rename(place.path("locks/a"), place.path("away")).unwrap(),
            ["the lock's object was deleted", "check who deletes objects there"],
        ),
    ];
    for (change, words) in cases {
        let place = Place::new();
        let running = leader(&place, &LONG, &[]);
        change(&place);
        assert_words(&last_line(running), &words);
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
    // If the watchdog is late, `run` ends the command, and tells another end.
    pipe.wait_for_end();
    running.signal(Signal::CONT);
    let words =
        ["could not be renewed before the renew deadline", "this process stood still", "the command was killed"];
    assert_words(&last_line(running), &words);
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
        let refused = || {
            let refusal = Arc::new(OnceLock::new());
            let lock = runtime.block_on(s3_that_refuses(Arc::clone(&refusal)));
            let mut running = Running::of(with_keys(leaderelect(run(&lock, &TIMINGS, &["sh", "-c", WAITS]))));
            running.wait_for("up");
            refusal.set(code).unwrap();
            running
        };
        let words = ["could not be renewed before the renew deadline: the store rejects requests: ", reason];
        assert_store_is_named(refused, &words);
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
    let on_a_full_disk = || {
        // Left by a leader before.
        let _ = fs::remove_file(disk.join("full"));
        let running = leader(&place, &TIMINGS, &[]);
        // The file takes what is left, also what a renewal gives back.
        let mut file = fs::File::create(disk.join("full")).unwrap();
        while std::io::Write::write_all(&mut file, &[0; 512]).is_ok() {}
        running
    };
    let words = [
        "could not be renewed before the renew deadline: the store is unavailable: ",
        "the file system is full: free some space",
    ];
    assert_store_is_named(on_a_full_disk, &words);
    unmount(&disk, UnmountFlags::DETACH).unwrap();
}
