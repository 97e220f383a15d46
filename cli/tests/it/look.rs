//! `status`, `watch` and `list`.

use std::io::{BufRead as _, BufReader};
use std::process::Stdio;

use axum::http::{Method, StatusCode, Uri};
use serde_json::{Value, json};

use crate::fake_s3::{FakeS3, with_keys};
use crate::support::{LONG, Lines, PATIENCE, Place, Running, end, end_of, leaderelect, record, run};

fn json(args: &[&str]) -> Vec<Value> {
    let ended = end(args);
    assert!(matches!(ended.code, Some(0 | 65)), "{ended:?}");
    ended.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn status_tells_who_leads_and_that_one_look_does_not_tell_all() {
    let place = Place::new();
    place.overwrite("a", &record("node-1", "15s", 7, "1"));
    let ended = end(&["status", &place.lock("a")]);
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""), "{ended:?}");
    let lines: Vec<_> =
        ended.stdout.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
    assert_eq!(lines[0], place.lock("a"));
    assert_eq!(lines[1..3], ["leader node-1", "fencing token 7"]);
    assert!(lines[3].starts_with("since 2026-02-02T10:15:30.000Z ("), "{lines:?}");
    assert!(lines[3].ends_with("by the holder's clock)"), "{lines:?}");
    assert_eq!(lines[5..], ["lease 15s", "time left one look does not tell; an observer must watch: --watch-for 15s"]);
}

#[test]
fn status_as_json() {
    let place = Place::new();
    place.overwrite("a", &record("node-1", "1500ms", 7, "1"));
    let expected = json!({
        "lock": place.lock("a"), "state": "held", "holder": "node-1", "fencingToken": 7, "leaseDurationSeconds": 1.5,
        "byHoldersClock": { "acquireTime": "2026-02-02T10:15:30.000Z", "renewTime": "2026-02-02T10:15:30.000Z" },
    });
    assert_eq!(json(&["status", "--output", "json", &place.lock("a")]), [expected]);
}

#[test]
fn status_of_locks_that_nobody_holds() {
    let place = Place::new();
    place.overwrite("free", &record("", "1s", 7, "1"));
    place.overwrite("photo", "somebody's photo");
    for (name, code, state, text) in [
        ("absent", 0, "absent", "there is no such object"),
        ("free", 0, "free", "nobody: the lease is free"),
        ("photo", 65, "unreadable", "not a record"),
    ] {
        let ended = end(&["status", &place.lock(name)]);
        assert_eq!(ended.code, Some(code), "{ended:?}");
        assert!(ended.stdout.contains(text), "{ended:?}");
        assert_eq!(json(&["status", "-o", "json", &place.lock(name)])[0]["state"], state);
    }
}

#[test]
fn status_watches_until_a_renewal_is_seen() {
    let place = Place::new();
    let mut leader = Running::start(&run(&place.lock("a"), &LONG, &["sh", "-c", "echo up; exec sleep 1000"]));
    leader.wait_for("up");
    let seen = json(&["status", "-o", "json", "--watch-for", "60s", &place.lock("a")]);
    let observed = &seen[0]["observed"];
    assert_eq!(observed["expired"], false, "{observed}");
    assert!((50.0..=60.0).contains(&observed["leftSeconds"].as_f64().unwrap()), "{observed}");
    let ended = end(&["status", "--watch-for", "60s", &place.lock("a")]);
    assert!(ended.stdout.contains("unless it is renewed: a renewal was seen"), "{ended:?}");
}

#[test]
fn status_watches_until_the_lease_is_seen_to_expire() {
    let place = Place::new();
    place.overwrite("a", &record("dead", "300ms", 7, "1"));
    let seen = json(&["status", "-o", "json", "--watch-for", "60s", &place.lock("a")]);
    let observed = &seen[0]["observed"];
    assert_eq!((&observed["expired"], &observed["leftSeconds"]), (&json!(true), &Value::Null), "{observed}");
    let ended = end(&["status", "--watch-for", "60s", &place.lock("a")]);
    assert!(ended.stdout.contains("so the next candidate takes over"), "{ended:?}");
}

#[test]
fn status_that_watched_too_short_says_so() {
    let place = Place::new();
    place.overwrite("a", &record("node-1", "1h", 7, "1"));
    let ended = end(&["status", "--watch-for", "100ms", &place.lock("a")]);
    assert!(ended.stdout.contains("the lease is 1h; watch longer"), "{ended:?}");
}

#[test]
fn status_takes_the_lock_as_an_option_too() {
    let place = Place::new();
    place.overwrite("a", &record("node-1", "1h", 7, "1"));
    let lock = place.lock("a");
    assert_eq!(json(&["status", "-o", "json", "--lock", &lock]), json(&["status", "-o", "json", &lock]));
    for wrong in [&["status"][..], &["status", "--lock", &lock, &lock]] {
        assert_eq!(end(wrong).code, Some(64), "{wrong:?}");
    }
}

#[test]
fn scripts_learn_from_the_exit_code_of_status_whether_somebody_leads() {
    let place = Place::new();
    place.overwrite("dead", &record("node-1", "300ms", 7, "1"));
    place.overwrite("free", &record("", "1s", 7, "1"));
    place.overwrite("held", &record("node-1", "1h", 7, "1"));
    place.overwrite("photo", "somebody's photo");
    for (name, more, code) in [
        ("held", &[][..], 0),
        ("free", &[], 1),
        ("absent", &[], 1),
        ("photo", &[], 65),
        ("dead", &[], 0),
        ("dead", &["--watch-for", "60s"], 1),
    ] {
        let ended = end(&[&["status", "--exit-code", &place.lock(name)], more].concat());
        assert_eq!(ended.code, Some(code), "{name}: {ended:?}");
        assert_ne!(end(&[&["status", &place.lock(name)], more].concat()).code, Some(1), "{name}");
    }
}

#[test]
fn watch_runs_a_command_for_every_change() {
    let place = Place::new();
    place.overwrite("a", &record("node-1", "1h", 7, "1"));
    let lock = place.lock("a");
    let hook = r#"echo "hook $LEADERELECTION_EVENT,$LEADERELECTION_LEADER,$LEADERELECTION_FENCING_TOKEN,$LEADERELECTION_LOCK"
                  test "$LEADERELECTION_EVENT" != free || exit 3"#;
    let mut watch = Running::start(&["watch", "--interval", "20ms", &lock, "--", "sh", "-c", hook]);
    watch.wait_for_line("node-1 leads (fencing token 7");
    assert_eq!(watch.wait_for("hook "), format!("leading,node-1,7,{lock}"));
    place.overwrite("a", &record("", "1s", 7, "2"));
    assert_eq!(watch.wait_for("hook "), format!("free,,7,{lock}"));
    watch.wait_for_note("the command for free failed: it ended with code 3");
    place.overwrite("a", &record("node-2", "1h", 8, "3"));
    assert_eq!(watch.wait_for("hook "), format!("leading,node-2,8,{lock}"));

    let ended = end(&["watch", &lock, "--", "no-such-command-anywhere"]);
    assert_eq!(ended.code, Some(127), "{ended:?}");
    assert!(ended.stderr.contains("check the command after `--`"), "{ended:?}");
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
    assert_eq!(text, "node-1 leads (fencing token 7, lease 1h)");
    place.overwrite("a", &record("node-1", "1h", 7, "2"));
    assert!(watch.wait_for("").ends_with("  node-1 renewed the lease"));
}

#[test]
fn list_is_a_table_of_all_locks_and_of_what_is_none() {
    let place = Place::new();
    place.overwrite("a", &record("node-1", "15s", 7, "1"));
    place.overwrite("team/b", &record("", "1s", 12, "1"));
    place.overwrite("photo", "somebody's photo");
    place.overwrite("team/leaderelection-probe/0198c0de/creators-7", "left behind by a probe");
    let ended = end(&["list", &place.prefix()]);
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""), "{ended:?}");
    let rows: Vec<Vec<_>> = ended.stdout.lines().map(|line| line.split("   ").map(str::trim).collect()).collect();
    let rows: Vec<Vec<_>> =
        rows.into_iter().map(|row| row.into_iter().filter(|cell| !cell.is_empty()).collect()).collect();
    assert_eq!(rows[0], ["LOCK", "STATE", "HOLDER", "TOKEN", "LEASE", "SINCE", "RENEWED"]);
    assert_eq!(rows[1][..5], ["a", "stale?", "node-1", "7", "15s"]);
    assert!(rows[1][5].ends_with(" ago"), "{rows:?}");
    assert_eq!(rows[2], ["photo", "not a record", "-", "-", "-", "-", "-"]);
    assert_eq!(rows[3], ["team/b", "free", "-", "12", "-", "-", "-"]);

    let seen = json(&["list", "-o", "json", &place.prefix()]);
    let expected = [("a", "held"), ("photo", "unreadable"), ("team/b", "free")];
    let found: Vec<_> = seen.iter().map(|view| (view["lock"].clone(), view["state"].clone())).collect();
    assert_eq!(found, expected.map(|(name, state)| (json!(place.lock(name)), json!(state))));
}

#[test]
fn list_tells_what_one_look_shows_and_what_only_a_watch_shows() {
    let place = Place::new();
    let now = || chrono::Utc::now().to_rfc3339();
    let fresh = |holder: &str, lease: &str, write_id: &str| {
        json!({
            "holderIdentity": holder, "leaseDuration": lease, "acquireTime": now(), "renewTime": now(),
            "leaderTransitions": 7, "writeId": write_id,
        })
    };
    let mut asked = fresh("node-4", "1h", "1");
    asked["preferredHolder"] = json!("node-5");
    place.overwrite("asked", &asked.to_string());
    place.overwrite("dead", &fresh("node-1", "1s", "1").to_string());
    place.overwrite("free", &record("", "1s", 12, "1"));
    place.overwrite("fresh", &fresh("node-2", "1h", "1").to_string());
    place.overwrite("old", &record("node-3", "1h", 7, "1"));
    let standings = |args: &[&str]| -> Vec<_> {
        json(&[&["list", "-o", "json", &place.prefix()], args].concat())
            .into_iter()
            .map(|lock| (lock["standing"].as_str().unwrap().to_owned(), lock["observed"]["expired"].as_bool()))
            .collect()
    };
    let expected = ["handingOver", "held", "free", "held", "doubtful"].map(|standing| (standing.to_owned(), None));
    assert_eq!(standings(&[]), expected, "after a look of less than a second");
    let listed = end(&["list", &place.prefix()]);
    for word in ["handing over", "held", "free", "stale?"] {
        assert!(listed.stdout.contains(&format!("   {word}   ")), "{word}: {listed:?}");
    }

    let mut list = Running::start(&["list", "-vv", "-o", "json", "--watch-for", "60s", &place.prefix()]);
    for _ in 0..2 {
        list.wait_for_note("the store answered request=\"list\"");
    }
    asked["writeId"] = json!("2");
    place.overwrite("asked", &asked.to_string());
    place.overwrite("fresh", &fresh("node-2", "1h", "2").to_string());
    place.overwrite("old", &record("node-3", "1h", 7, "2"));
    let ended = list.end();
    let seen = ended.stdout.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let seen: Vec<_> = seen.map(|lock| (lock["standing"].clone(), lock["observed"]["expired"].clone())).collect();
    let (alive, dead, none) = (json!(false), json!(true), Value::Null);
    let expected = [("handingOver", &alive), ("expired", &dead), ("free", &none), ("alive", &alive), ("alive", &alive)];
    assert_eq!(seen, expected.map(|(standing, expired)| (json!(standing), expired.clone())), "{ended:?}");

    let short = end(&["list", "--watch-for", "100ms", &place.prefix()]);
    assert!(
        short.stdout.lines().any(|line| line.starts_with("old     stale?")),
        "a watch that is too short knows no more: {short:?}"
    );
}

#[test]
fn list_says_why_a_lock_cannot_be_read() {
    let end = |readable: &str| {
        let server = FakeS3::start(match readable {
            "locks/b" => |method, uri| answer(method, uri, "/bucket/locks/b"),
            _ => |method, uri| answer(method, uri, ""),
        });
        end_of(with_keys(leaderelect(["list", &server.url("locks/")])))
    };
    let (some, none) = (end("locks/b"), end(""));
    for (ended, code, unreadable) in [(some, 0, 1), (none, 69, 2)] {
        assert_eq!(ended.code, Some(code), "{ended:?}");
        assert_eq!(ended.stdout.matches("cannot be read").count(), unreadable, "{ended:?}");
        assert_eq!(ended.stderr.lines().count(), 1, "{ended:?}");
        assert!(
            ended.stderr.contains("s3://bucket/locks/a") && ended.stderr.contains("allow s3:GetObject"),
            "{ended:?}"
        );
    }
}

/// Two locks, of which only one can be read, if any.
fn answer(_: &Method, uri: &Uri, readable: &str) -> (StatusCode, &'static str) {
    const LISTING: &str = "<ListBucketResult><Contents><Key>locks/a</Key></Contents>\
                           <Contents><Key>locks/b</Key></Contents></ListBucketResult>";
    match uri.path() {
        "/bucket" | "/bucket/" => (StatusCode::OK, LISTING),
        path if path == readable => (StatusCode::NOT_FOUND, "<Error><Code>NoSuchKey</Code></Error>"),
        _ => (StatusCode::FORBIDDEN, "<Error><Code>AccessDenied</Code></Error>"),
    }
}

#[test]
fn every_command_that_looks_logs_its_requests_if_it_is_asked_to() {
    let place = Place::new();
    place.overwrite("a", &record("node-1", "1h", 7, "1"));
    let (lock, prefix) = (place.lock("a"), place.prefix());
    for args in [
        &["status", &lock][..],
        &["list", &prefix],
        &["transfer", "--yes", "--to", "node-2", &lock],
        &["release", "--force", "--yes", &lock],
    ] {
        let ended = end(&[args, &["-vv"]].concat());
        assert!(ended.stderr.contains("the store answered request=\"get\""), "{args:?}: {ended:?}");
    }
    let mut watch = Running::start(&["watch", "-vv", &lock]);
    watch.wait_for_note("the store answered request=\"get\"");
    let ended = end(&["status", &lock]);
    assert!(!ended.stderr.contains("the store answered"), "{ended:?}");
}

#[test]
fn list_shows_the_other_locks_if_one_folder_cannot_be_read() {
    use std::os::unix::fs::PermissionsExt as _;
    use std::os::unix::process::CommandExt as _;

    let place = Place::new();
    for name in ["a", "b", "c/d"] {
        place.overwrite(name, &record("node-1", "1h", 7, "1"));
    }
    let closed = [place.path("locks/b"), place.path("locks/c")];
    let set_mode = |path: &std::path::Path, mode| {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    };
    closed.iter().for_each(|path| set_mode(path, 0));
    let list = |args: &[&str]| {
        let mut command = leaderelect(args);
        if rustix::process::geteuid().is_root() {
            // Nobody else may be kept out.
            set_mode(&place.path(""), 0o755);
            command.uid(65534).gid(65534);
        }
        end_of(command)
    };
    let ended = list(&["list", &place.prefix()]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let rows: Vec<Vec<_>> = ended.stdout.lines().map(|line| line.split_whitespace().take(3).collect()).collect();
    assert_eq!(rows[1], ["a", "stale?", "node-1"], "{ended:?}");
    assert_eq!(rows[2..], [["b", "cannot", "be"], ["c", "cannot", "be"]], "{ended:?}");
    assert!(ended.stderr.contains("locks/b: permission denied"), "{ended:?}");
    // What may be below such a folder is not called absent.
    let ended = list(&["list", &format!("{}c/", place.prefix())]);
    assert!(ended.code == Some(69) && ended.stderr.contains("permission denied"), "{ended:?}");
    closed.iter().for_each(|path| set_mode(path, 0o755));
}

#[test]
fn list_of_nothing_is_no_failure() {
    let place = Place::new();
    let ended = end(&["list", &place.prefix()]);
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(0), ""), "{ended:?}");
    assert!(ended.stderr.contains("no locks under"), "{ended:?}");
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
    assert!(line.contains("node-1 leads"), "{line}");
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
    for holder in ["node-1", "node-2"] {
        while !std::fs::read_to_string(&file).unwrap().contains(&format!("{holder} leads")) {
            assert!(child.try_wait().unwrap().is_none() && std::time::Instant::now() < deadline, "it does not follow");
            std::thread::yield_now();
        }
        place.overwrite("a", &record("node-2", "1h", 8, "2"));
    }
    child.kill().unwrap();
    child.wait().unwrap();
}
