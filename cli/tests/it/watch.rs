//! `watch`.

use std::io::{BufRead as _, BufReader};
use std::process::Stdio;

use serde_json::Value;

use crate::support::{Lines, PATIENCE, Place, Running, end, leaderelect, record};

#[test]
fn watch_runs_a_command_for_every_change() {
    let place = Place::new();
    place.overwrite("a", &record("node-1", "1h", 7, "1"));
    let lock = place.lock("a");
    let hook = r#"echo "hook $LEADERELECTION_EVENT,$LEADERELECTION_LEADER,$LEADERELECTION_FENCING_TOKEN,$LEADERELECTION_LOCK"
                  test "$LEADERELECTION_EVENT" != free || exit 3"#;
    let mut watch = Running::start(&["watch", "--interval", "20ms", &lock, "--", "sh", "-c", hook]);
    watch.wait_for_line("node-1 holds the lease (fencing token 7");
    assert_eq!(watch.wait_for("hook "), format!("leading,node-1,7,{lock}"));
    place.overwrite("a", &record("", "1s", 7, "2"));
    assert_eq!(watch.wait_for("hook "), format!("free,,7,{lock}"));
    watch.wait_for_note("the command for free failed: exit code 3");
    place.overwrite("a", &record("node-2", "1s", 8, "3"));
    assert_eq!(watch.wait_for("hook "), format!("leading,node-2,8,{lock}"));
    assert_eq!(watch.wait_for("hook "), format!("expired,,8,{lock}"), "nobody leads");

    let ended = end(&["watch", &lock, "--", "no-such-command-anywhere"]);
    assert_eq!(ended.code, Some(127), "{ended:?}");
    assert!(ended.stderr.contains("check the command after `--`"), "{ended:?}");
}

#[test]
fn the_command_of_watch_gets_no_secret_and_a_valid_name() {
    let place = Place::new();
    place.overwrite("a", &record(&"\\u0000".repeat(10_000), "1h", 7, "1"));
    let hook = r#"echo "hook $(env | grep -c SECRET),${#LEADERELECTION_LEADER},$LEADERELECTION_FENCING_TOKEN""#;
    let mut command = leaderelect(["watch", &place.lock("a"), "--", "sh", "-c", hook]);
    command.env("LEADERELECT_POST", "http://127.0.0.1:1/SECRET").env("LEADERELECTION_HTTP_TOKEN", "SECRET-of-servers");
    // The shell counts bytes, and the ellipsis has three.
    assert_eq!(Running::of(command).wait_for("hook "), "0,1026,7");
}

#[test]
fn watch_tells_every_change_as_json() {
    let place = Place::new();
    place.overwrite("a", &record("node-1", "300ms", 7, "1"));
    let mut watch = Running::start(&["watch", "-o", "json", "--interval", "20ms", &place.lock("a")]);
    let mut next = |event: &str| {
        let line: Value = serde_json::from_str(&watch.wait_for("")).unwrap();
        assert_eq!(line["event"], event, "{line}");
        assert!(line["time"].as_str().unwrap().ends_with('Z'), "{line}");
        line
    };
    assert_eq!(next("leading")["holder"], "node-1");
    next("expired");
    place.overwrite("a", &record("node-1", "1h", 7, "2"));
    assert_eq!(next("renewed")["holder"], "node-1", "a renewal after it had expired is news");
    place.overwrite("a", &record("node-1", "1h", 7, "3"));
    place.overwrite("a", &record("", "1s", 7, "4"));
    assert_eq!(next("free")["fencingToken"], 7);
    place.overwrite("a", &record("node-2", "1h", 8, "5"));
    assert_eq!(next("leading")["holder"], "node-2");
    let asked = record("node-2", "1h", 8, "6").replacen('{', r#"{"preferredHolder":"node-1","#, 1);
    place.overwrite("a", &asked);
    assert_eq!(next("handoverRequested")["preferredHolder"], "node-1");
    place.overwrite("a", "somebody's photo");
    next("unreadable");
    std::fs::rename(place.path("locks"), place.path("away")).unwrap();
    next("absent");
    std::fs::write(place.path("locks"), "").unwrap();
    next("unreachable");
    std::fs::remove_file(place.path("locks")).unwrap();
    next("reachable");
}

#[test]
fn watch_tells_people_too_and_renewals_if_asked() {
    let place = Place::new();
    place.overwrite("a", &record("node-1", "1h", 7, "1"));
    let mut watch = Running::start(&["watch", "--renewals", "--interval", "20ms", &place.lock("a")]);
    let (time, text) = watch.wait_for("").split_once("  ").map(|(a, b)| (a.to_owned(), b.to_owned())).unwrap();
    assert!(time.ends_with('Z') && time.contains('T'), "{time}");
    assert_eq!(text, "node-1 holds the lease (fencing token 7, lease 1h)");
    place.overwrite("a", &record("node-1", "1h", 7, "2"));
    assert!(watch.wait_for("").ends_with("  node-1 renewed the lease"));
}

#[test]
fn a_reader_that_has_seen_enough_is_no_failure() {
    let place = Place::new();
    place.overwrite("a", &record("node-1", "1h", 7, "1"));
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let mut command = leaderelect(["list", &place.prefix()]);
    command.stdout(writer);
    let ended = crate::support::end_of_with_stderr(command);
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""), "{ended:?}");
}

#[test]
fn watch_ends_when_nobody_reads_any_more() {
    let place = Place::new();
    place.overwrite("a", &record("node-1", "1h", 7, "1"));
    let (reader, writer) = std::io::pipe().unwrap();
    let mut command = leaderelect(["watch", &place.lock("a")]);
    let mut child = command.stdout(writer).stderr(Stdio::piped()).spawn().unwrap();
    // It holds the other end of the pipe.
    drop(command);
    let mut reader = BufReader::new(reader);
    let mut line = String::new();
    reader.read_line(&mut line).unwrap();
    assert!(line.contains("node-1 holds the lease"), "{line}");
    drop(reader);
    assert_eq!(Lines::of(child.stderr.take().unwrap()).rest(), "");
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn watch_goes_on_in_a_file() {
    let place = Place::new();
    place.overwrite("a", &record("node-1", "1h", 7, "1"));
    let file = place.path("output");
    let mut command = leaderelect(["watch", "--interval", "20ms", &place.lock("a")]);
    let mut child = command.stdout(std::fs::File::create(&file).unwrap()).spawn().unwrap();
    let deadline = std::time::Instant::now() + PATIENCE;
    for status in ["node-1 holds the lease", "node-2 leads"] {
        while !std::fs::read_to_string(&file).unwrap().contains(status) {
            assert!(child.try_wait().unwrap().is_none() && std::time::Instant::now() < deadline, "it does not follow");
            std::thread::yield_now();
        }
        place.overwrite("a", &record("node-2", "1h", 8, "2"));
    }
    child.kill().unwrap();
    child.wait().unwrap();
}
