//! `list`.

use axum::http::{Method, StatusCode, Uri};
use serde_json::{Value, json};

use crate::fake_s3::{FakeS3, with_keys};
use crate::status::json;
use crate::support::{Place, Running, end, end_of, leaderelect, record};

#[test]
fn list_is_a_table_of_all_locks_and_of_what_is_none() {
    let place = Place::new();
    place.overwrite("a", &record("node-1", "15s", 7, "1"));
    place.set_written("locks/a", std::time::Duration::from_secs(60));
    place.overwrite("team/b", &record("", "1s", 12, "1"));
    place.overwrite("photo", "somebody's photo");
    place.overwrite("team/leaderelection-probe/0198c0de/creators-7", "left behind by a probe");
    let ended = end(&["list", &place.prefix()]);
    assert_eq!((ended.code, ended.stderr.lines().count()), (Some(0), 2), "{ended:?}");
    assert!(
        ended
            .stderr
            .contains("/photo: nobody can lead: the object is not a record: not a leader election record: body: "),
        "{ended:?}"
    );
    let rows: Vec<Vec<_>> = ended.stdout.lines().map(|line| line.split("   ").map(str::trim).collect()).collect();
    let rows: Vec<Vec<_>> =
        rows.into_iter().map(|row| row.into_iter().filter(|cell| !cell.is_empty()).collect()).collect();
    assert_eq!(rows[0], ["LOCK", "STATE", "HOLDER", "TOKEN", "LEASE", "SINCE", "RENEWED"]);
    assert_eq!(rows[1][..5], ["a", "expired", "node-1", "7", "15s"]);
    assert!(rows[1][5].ends_with(" ago"), "{rows:?}");
    assert_eq!(rows[2], ["photo", "not a record", "-", "-", "-", "-", "-"]);
    assert_eq!(rows[3], ["team/b", "free", "-", "12", "-", "-", "-"]);

    let seen = json(&["list", "-o", "json", &place.prefix()]);
    let expected = [("a", "held"), ("photo", "unreadable"), ("team/b", "free")];
    let found: Vec<_> = seen.iter().map(|view| (view["lock"].clone(), view["state"].clone())).collect();
    assert_eq!(found, expected.map(|(name, state)| (json!(place.lock(name)), json!(state))));
}

#[test]
fn list_explains_a_trouble_once_and_counts_the_locks_that_have_it() {
    let place = Place::new();
    for name in ["photo-1", "photo-2", "photo-3"] {
        place.overwrite(name, "somebody's photo");
    }
    let ended = end(&["list", &place.prefix()]);
    assert_eq!((ended.code, ended.stderr.lines().count()), (Some(0), 1), "{ended:?}");
    assert!(ended.stderr.contains("/photo-1: nobody can lead"), "{ended:?}");
    assert!(ended.stderr.ends_with("; 2 other locks have the same trouble\n"), "{ended:?}");
}

#[test]
fn list_hides_a_history_and_no_lock_with_the_name_of_one() {
    let place = Place::new();
    let with_terms = record("node-4", "15s", 7, "1").replacen('{', r#"{"terms":[],"#, 1);
    for (key, body) in [
        ("a", record("node-1", "15s", 7, "1")),
        ("a.history", r#"{"terms":[]}"#.to_owned()),
        ("b", record("node-2", "15s", 7, "1")),
        ("b.history", record("node-3", "15s", 7, "1")),
        ("b.history.history", with_terms),
    ] {
        place.overwrite(key, &body);
    }
    let seen = json(&["list", "-o", "json", &place.prefix()]);
    let found: Vec<_> = seen.iter().map(|view| (view["lock"].clone(), view["holder"].clone())).collect();
    let expected = [("a", "node-1"), ("b", "node-2"), ("b.history", "node-3"), ("b.history.history", "node-4")];
    assert_eq!(found, expected.map(|(name, holder)| (json!(place.lock(name)), json!(holder))));
}

#[test]
fn a_listing_without_an_end_ends() {
    // Each page names the next by the same token.
    const PAGE: &str = "<ListBucketResult><Contents><Key>locks/a</Key></Contents><IsTruncated>true</IsTruncated>\
                <NextContinuationToken>next</NextContinuationToken></ListBucketResult>";
    let s3 = FakeS3::start(|_, _| (StatusCode::OK, PAGE));
    let ended = end_of(with_keys(leaderelect(["list", &s3.url("locks/")])));
    assert!(ended.code != Some(0) && ended.stderr.contains("a place that comes again"), "{ended:?}");
}

#[test]
fn list_tells_what_one_read_shows_and_what_only_a_watch_shows() {
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
    place.overwrite("dead", &fresh("node-1", "5s", "1").to_string());
    place.overwrite("free", &record("", "1s", 12, "1"));
    place.overwrite("fresh", &fresh("node-2", "1h", "1").to_string());
    place.overwrite("old", &record("node-3", "1h", 7, "1"));
    place.set_written("locks/old", std::time::Duration::from_secs(2 * 3600));
    let standings = |args: &[&str]| -> Vec<_> {
        json(&[&["list", "-o", "json", &place.prefix()], args].concat())
            .into_iter()
            .map(|lock| (lock["standing"].as_str().unwrap().to_owned(), lock["observed"]["expired"].as_bool()))
            .collect()
    };
    let expected = ["handingOver", "held", "free", "held", "expired"].map(|standing| (standing.to_owned(), None));
    assert_eq!(standings(&[]), expected, "after a watch of less than a lease");
    let listed = end(&["list", &place.prefix()]);
    for word in ["handing over", "held", "free", "expired"] {
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
        short.stdout.lines().any(|line| line.starts_with("old     held")),
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
    for (ended, code, unreadable, notes) in [(some, 0, 1, 2), (none, 69, 2, 1)] {
        assert_eq!(ended.code, Some(code), "{ended:?}");
        assert_eq!(ended.stdout.matches("cannot be read").count(), unreadable, "{ended:?}");
        assert_eq!(ended.stderr.lines().count(), notes, "{ended:?}");
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
fn every_command_that_reads_logs_its_requests_if_it_is_asked_to() {
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
    assert_eq!(rows[1], ["a", "held", "node-1"], "{ended:?}");
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
    let missing = place.path("locks").display().to_string();
    assert!(ended.stderr.ends_with(&format!("no locks under {}: directory {missing} not found\n", place.prefix())));
    // The first directory that is missing is the one with the typing error.
    let ended = end(&["list", &place.file("lokcs/team/")]);
    assert!(ended.stderr.ends_with(&format!("directory {} not found\n", place.path("lokcs").display())), "{ended:?}");
    std::fs::create_dir(place.path("locks")).unwrap();
    let ended = end(&["list", &place.prefix()]);
    assert!(ended.stderr.ends_with(&format!("no locks under {}\n", place.prefix())), "{ended:?}");
}

#[test]
fn list_takes_several_slashes_at_the_end_for_one() {
    let place = Place::new();
    place.overwrite("a", &record("node-1", "15s", 7, "1"));
    let listed = |prefix: &str| {
        let stdout = end(&["list", "-o", "json", prefix]).stdout;
        let mut lock: serde_json::Value = serde_json::from_str(&stdout).expect("one lock");
        // The age grows from one poll to the next.
        lock.as_object_mut().unwrap().remove("storeAgeSeconds");
        lock
    };
    assert_eq!(listed(&format!("{}//", place.prefix())), listed(&place.prefix()));
    assert_eq!(listed(&place.prefix())["holder"], "node-1");
}
