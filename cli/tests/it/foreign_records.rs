//! Records that somebody else has written, and that once ended or swamped the programs that read them.

use std::path::Path;
use std::process::Command;

use leaderelection_integration_tests::servers::seaweedfs::SeaweedFs;
use rustix::process::Signal;
use serde_json::Value;
use tokio::runtime::Runtime;

use crate::dashboard::dashboard;
use crate::serve::process::eventually;
use crate::serve::sidecar::{Sidecar, serve};
use crate::support::{Ended, LONG, Place, Running, end, end_of, leaderelect, record, run};

/// A sum that overflows, although each part of it fits.
const OVERFLOWS: &str = r#"{"holderIdentity":"x","leaseDuration":"18446744073709551615s1000ms","leaderTransitions":7}"#;

/// The words of every program about that record.
const PROBLEM: &str = r#"leaseDuration: "18446744073709551615s1000ms" is not a duration"#;

/// A bucket of a real server.
struct Bucket {
    server: SeaweedFs,
    runtime: Runtime,
}

impl Bucket {
    fn new() -> Self {
        let server = SeaweedFs::start(Path::new(env!("CARGO_TARGET_TMPDIR")));
        let runtime = Runtime::new().unwrap();
        runtime.block_on(server.create_bucket("bucket"));
        Self { server, runtime }
    }

    fn url(&self, key: &str) -> String {
        format!("s3://bucket/{key}?endpoint={}", self.server.url())
    }

    fn put(&self, key: &str, body: &str) {
        let body = body.as_bytes().to_vec().into();
        let put = self.server.client().put_object().bucket("bucket").key(key).body(body);
        self.runtime.block_on(put.send()).unwrap();
    }

    fn with_keys(&self, mut command: Command) -> Command {
        command.envs(self.server.environment());
        command
    }

    fn start(&self, args: &[&str]) -> Running {
        Running::of(self.with_keys(leaderelect(args)))
    }

    fn end(&self, args: &[&str]) -> Ended {
        end_of(self.with_keys(leaderelect(args)))
    }

    /// Starts a command that serves a page.
    fn serve(&self, command: Command) -> Sidecar {
        self.runtime.block_on(async { Sidecar::spawn(&mut self.with_keys(command)).await })
    }

    /// Waits until the page at `path` contains `text`.
    fn shows(&self, sidecar: &Sidecar, path: &str, text: &str) {
        let look = async || sidecar.ask(path).await.1.replace("&#34;", "\"").contains(text).then_some(());
        self.runtime.block_on(eventually(&format!("the page shows {text:?}"), look));
    }
}

#[test]
fn a_duration_that_overflows_is_named_by_every_program_and_ends_none() {
    let bucket = Bucket::new();
    let (lock, prefix) = (bucket.url("locks/bad"), bucket.url("locks/"));
    bucket.put("locks/good", &record("node-1", "1h", 7, "1"));
    bucket.put("locks/bad", &record("node-2", "1h", 7, "1"));
    let mut waiting = bucket.start(&run(&lock, &LONG, &["echo", "led"]));
    let key = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(key.path(), "0123456789abcdef0123456789abcdef").unwrap();
    let peer = ["--peer-key-file", key.path().to_str().unwrap(), "--peer-plain-http", "--peer-allow", "127.0.0.0/8"];
    let mut peer = bucket.start(&run(&lock, &[&LONG[..], &peer].concat(), &["echo", "led"]));
    for candidate in [&mut waiting, &mut peer] {
        candidate.wait_for_note("node-2 leads");
    }

    bucket.put("locks/bad", OVERFLOWS);
    bucket.put("fleet/sessions/bad", OVERFLOWS);
    for candidate in [&mut waiting, &mut peer] {
        assert!(candidate.wait_for_note("not a leader election record: ").starts_with("leaseDuration: "));
    }
    let status = bucket.end(&["status", &lock]);
    assert!(status.code == Some(65) && status.stdout.contains(PROBLEM), "{status:?}");
    let begun = bucket.end(&run(&lock, &LONG, &["true"]));
    assert!(begun.code == Some(65) && begun.stderr.contains("leaseDuration: "), "{begun:?}");
    let list = bucket.end(&["list", &prefix]);
    assert_eq!(list.code, Some(0), "{list:?}");
    assert!(list.stdout.contains("node-1") && list.stderr.contains(PROBLEM), "{list:?}");

    let dashboard = bucket.serve(dashboard(&prefix, "100ms"));
    // The page cuts long problems.
    bucket.shows(&dashboard, "/", r#"leaseDuration: "18446"#);
    bucket.shows(&dashboard, "/", "node-1");
    let mut watch = bucket.start(&["watch", "--interval", "100ms", &lock]);
    assert!(watch.wait_for("").contains(PROBLEM));
    let mut sidecar = bucket.serve(serve(&lock, "sidecar"));
    bucket.shows(&sidecar, "/", PROBLEM);
    assert!(!sidecar.has_ended());
    drop(sidecar);

    // The object of a session, which others would end if it were one.
    let slots = [&LONG[..], &["-v", "--slots", "2"]].concat();
    let mut member = bucket.start(&run(&bucket.url("fleet"), &slots, &["sh", "-c", "echo led; exec sleep 1000"]));
    member.wait_for("led");
    assert!(member.wait_for_note("not a leader election record: ").starts_with("leaseDuration: "));

    // Somebody puts the record right, and all go on.
    bucket.put("locks/bad", r#"{"holderIdentity":"","leaseDuration":"1s","leaderTransitions":7}"#);
    waiting.wait_for("led");
    peer.wait_for("led");
    watch.wait_for_line("leads");
    bucket.shows(&dashboard, "/", "token");
    member.signal(Signal::TERM);
    member.wait();
}

#[test]
fn a_holder_with_a_nul_does_not_end_the_watch() {
    let place = Place::new();
    place.overwrite("a", &record(r"x\u0000y", "1h", 7, "1"));
    let command = ["--", "sh", "-c", "printf 'told <%s>\\n' \"$LEADERELECTION_LEADER\""];
    let mut watch = Running::start(&[&["watch", "--interval", "20ms", &place.lock("a")], &command[..]].concat());
    watch.wait_for(r"told <x\0y>");
    place.overwrite("a", &record("z", "1h", 8, "2"));
    watch.wait_for("told <z>");
}

#[test]
fn long_names_do_not_make_a_long_table() {
    let place = Place::new();
    for number in 0..20 {
        place.overwrite(&number.to_string(), &record("node-1", "1h", 7, "1"));
    }
    place.overwrite("long", &record(&r"\u202e".repeat(5_000), "1h", 7, "1"));
    place.put("sessions/long", &record(&"n".repeat(30_000), "1h", 7, "1").replacen('{', r#"{"released":0,"#, 1));
    let list = end(&["list", &place.prefix()]);
    assert!(list.stdout.contains(r"\u{202e}") && list.stdout.len() < 21 * 600, "{}", list.stdout.len());
    let sessions = end(&["list", "--sessions", &place.file("")]);
    assert!(sessions.stdout.contains("nnn") && sessions.stdout.len() < 2 * 600, "{}", sessions.stdout.len());
    let json = end(&["status", "-o", "json", &place.lock("long")]);
    let view: Value = serde_json::from_str(&json.stdout).unwrap();
    assert_eq!(view["holder"].as_str().unwrap().chars().count(), 5_000, "a program gets all of it");
}

/// A lock may be named so that the folder of its sessions is not certain.
#[test]
fn a_lock_with_many_folders_costs_few_reads() {
    let place = Place::new();
    for number in 0..5 {
        let held = r#"{"holderIdentity":"x","session":"gone","leaderTransitions":7,"writeId":"w"}"#;
        place.put(&format!("{}{number}", "locks/".repeat(100)), held);
    }
    let list = end(&["-vv", "list", &place.file("")]);
    assert_eq!(list.code, Some(0), "{list:?}");
    let reads = list.stderr.matches("the store answered request=\"get\"").count();
    assert!((5..=30).contains(&reads), "{reads} reads");
}
