//! `status`.

use std::time::Duration;

use serde_json::{Value, json};

use crate::support::{LONG, Place, Running, end, record, run};

pub(crate) fn json(args: &[&str]) -> Vec<Value> {
    let ended = end(args);
    assert!(matches!(ended.code, Some(0 | 65)), "{ended:?}");
    ended.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn status_tells_who_leads_and_that_one_read_does_not_tell_all() {
    let place = Place::new();
    place.overwrite("a", &record("node-1", "15s", 7, "1"));
    let ended = end(&["status", &place.lock("a")]);
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""), "{ended:?}");
    let lines: Vec<_> =
        ended.stdout.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
    assert_eq!(lines[0], place.lock("a"));
    assert_eq!(lines[1..3], ["status node-1 holds the lease", "fencing token 7"]);
    assert!(lines[3].starts_with("since 2026-02-02T10:15:30.000Z ("), "{lines:?}");
    assert!(lines[3].ends_with("by the holder's clock)"), "{lines:?}");
    assert!(lines[6].starts_with("age ") && lines[6].ends_with("s by the store's clock"), "{lines:?}");
    assert_eq!([lines[5].as_str(), &lines[7]], ["lease 15s", "time left unknown after one read; use --watch-for 15s"]);
}

#[test]
fn status_as_json() {
    let place = Place::new();
    place.overwrite("a", &record("node-1", "1500ms", 7, "1"));
    let expected = json!({
        "lock": place.lock("a"), "state": "held", "standing": "held", "holder": "node-1", "fencingToken": 7, "leaseDurationSeconds": 1.5,
        "byHoldersClock": { "acquireTime": "2026-02-02T10:15:30.000Z", "renewTime": "2026-02-02T10:15:30.000Z" },
    });
    let mut seen = json(&["status", "--output", "json", &place.lock("a")]);
    assert!(seen[0].as_object_mut().unwrap().remove("storeAgeSeconds").is_some_and(|age| age.is_f64()), "{seen:?}");
    assert_eq!(seen, [expected]);
}

#[test]
fn status_shows_the_address_that_the_leader_advertises_in_this_term() {
    let place = Place::new();
    for (term, shown) in [(7, true), (6, false)] {
        let peer = format!(r#"{{"peer":{{"url":"https://10.0.1.42:8443/leader","term":{term}}},"#);
        place.overwrite("a", &record("node-1", "15s", 7, "1").replacen('{', &peer, 1));
        let text = end(&["status", &place.lock("a")]).stdout;
        assert_eq!(text.contains("  address        https://10.0.1.42:8443/leader\n"), shown, "{text}");
        let address = json(&["status", "-o", "json", &place.lock("a")])[0]["leaderAddress"].clone();
        assert_eq!(address, if shown { json!("https://10.0.1.42:8443/leader") } else { Value::Null });
    }
}

#[test]
fn status_of_locks_that_nobody_holds() {
    let place = Place::new();
    place.overwrite("free", &record("", "1s", 7, "1"));
    place.overwrite("photo", "somebody's photo");
    for (name, code, state, text) in [
        ("absent", 0, "absent", "the object does not exist"),
        ("free", 0, "free", "nobody leads: the lease is free"),
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
    assert!(ended.stdout.contains("unless renewed (last renewal seen"), "{ended:?}");
}

#[test]
fn status_watches_until_the_lease_is_seen_to_expire() {
    let place = Place::new();
    place.overwrite("a", &record("dead", "300ms", 7, "1"));
    let seen = json(&["status", "-o", "json", "--watch-for", "60s", &place.lock("a")]);
    let observed = &seen[0]["observed"];
    assert_eq!((&observed["expired"], &observed["leftSeconds"]), (&json!(true), &json!(0.0)), "{observed}");
    let ended = end(&["status", "--watch-for", "60s", &place.lock("a")]);
    assert!(ended.stdout.contains("none: the next candidate takes over"), "{ended:?}");
}

#[test]
fn status_that_watched_too_short_says_so() {
    let place = Place::new();
    place.overwrite("a", &record("node-1", "1h", 7, "1"));
    let ended = end(&["status", "--watch-for", "100ms", &place.lock("a")]);
    assert!(ended.stdout.contains("the lease is 1h; use a longer --watch-for"), "{ended:?}");
}

#[test]
fn status_takes_the_lock_as_an_option_too() {
    let place = Place::new();
    place.overwrite("a", &record("node-1", "1h", 7, "1"));
    let lock = place.lock("a");
    // The age is another at every poll.
    let shown = |args: &[&str]| json(args)[0]["lock"].clone();
    assert_eq!(shown(&["status", "-o", "json", "--lock", &lock]), shown(&["status", "-o", "json", &lock]));
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
    place.overwrite("old", &record("node-1", "1s", 7, "1"));
    place.set_written("locks/old", Duration::from_secs(3600));
    place.overwrite("photo", "somebody's photo");
    for (name, more, code) in [
        ("held", &[][..], 0),
        ("free", &[], 1),
        ("absent", &[], 1),
        ("photo", &[], 65),
        ("dead", &["--watch-for", "60s"], 1),
        ("old", &[], 1),
    ] {
        let ended = end(&[&["status", "--exit-code", &place.lock(name)], more].concat());
        assert_eq!(ended.code, Some(code), "{name}: {ended:?}");
        assert_ne!(end(&[&["status", &place.lock(name)], more].concat()).code, Some(1), "{name}");
    }
}
