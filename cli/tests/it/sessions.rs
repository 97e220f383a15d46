//! Locks that sessions hold, and the sessions themselves, under the eyes of operators.

use serde_json::{Value, json};

use crate::support::{Place, Running, end};
use crate::terminal::Terminal;

const TIME: &str = "2026-02-02T10:15:30.000Z";
const EARLIER: &str = "2026-02-02T10:15:00.000Z";

/// The record of a session.
fn session(holder: &str, lease: &str, write_id: &str) -> String {
    json!({
        "holderIdentity": holder, "leaseDuration": lease, "acquireTime": EARLIER, "renewTime": TIME,
        "leaderTransitions": 0, "writeId": write_id, "weight": 1, "released": 0,
    })
    .to_string()
}

/// The record of a lock that a session holds.
fn held(holder: &str, session: &str, token: u64) -> String {
    json!({
        "holderIdentity": holder, "session": session, "acquireTime": EARLIER, "leaderTransitions": token,
        "writeId": "w",
    })
    .to_string()
}

/// Two sessions, of which one leads two locks and the other has ended, and a lock with a lease of its own.
fn fleet() -> Place {
    let place = Place::new();
    place.put("sessions/s1", &session("node-1", "15s", "1"));
    place.put("sessions/s2", &session("", "1s", "2"));
    place.put("locks/a", &held("node-1", "s1", 7));
    place.put("locks/team/b", &held("node-1", "s1", 8));
    place.put("locks/c", &held("node-2", "s2", 9));
    place.overwrite("plain", &crate::support::record("node-3", "20s", 3, "3"));
    place
}

fn json_of(args: &[&str]) -> Vec<Value> {
    let ended = end(args);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    ended.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn rows(stdout: &str) -> Vec<Vec<&str>> {
    stdout.lines().map(|line| line.split("   ").map(str::trim).filter(|cell| !cell.is_empty()).collect()).collect()
}

#[test]
fn status_shows_the_session_of_a_lock_and_its_last_renewal() {
    let place = fleet();
    for name in ["a", "team/b"] {
        let ended = end(&["status", &place.lock(name)]);
        assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""), "{ended:?}");
        let lines: Vec<_> =
            ended.stdout.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
        assert_eq!(lines[0], place.lock(name));
        assert_eq!((lines[1].as_str(), lines[3].as_str()), ("status node-1 leads", "session s1"), "{lines:?}");
        assert!(lines[4].starts_with(&format!("since {EARLIER} (")), "{lines:?}");
        assert!(lines[5].starts_with(&format!("renewed {TIME} (")), "{lines:?}");
        assert_eq!(lines[6], "lease 15s");
        assert!(lines[7].starts_with("age ") && lines[7].ends_with("s by the store's clock"), "{lines:?}");
        assert!(lines[8].ends_with("--watch-for 15s"), "{lines:?}");
    }
    let expected = json!({
        "lock": place.lock("a"), "state": "held", "standing": "held", "holder": "node-1", "fencingToken": 7, "leaseDurationSeconds": null,
        "byHoldersClock": { "acquireTime": EARLIER, "renewTime": null },
        "session": {
            "id": "s1", "holder": "node-1", "url": place.file("sessions/s1"), "state": "open",
            "leaseDurationSeconds": 15.0, "byHoldersClock": { "acquireTime": EARLIER, "renewTime": TIME },
        },
    });
    let mut seen = json_of(&["status", "-o", "json", &place.lock("a")]);
    assert!(seen[0].as_object_mut().unwrap().remove("storeAgeSeconds").is_some_and(|age| age.is_f64()), "{seen:?}");
    assert_eq!(seen, [expected]);
}

#[test]
fn a_session_that_is_over_holds_nothing() {
    let place = fleet();
    place.put("locks/d", &held("node-4", "deleted", 9));
    for (name, holder, state) in [("c", "node-2", "ended"), ("d", "node-4", "gone")] {
        let ended = end(&["status", &place.lock(name)]);
        assert!(ended.stdout.contains(&format!("nobody leads: the session of {holder} has ended")), "{ended:?}");
        let seen = json_of(&["status", "-o", "json", &place.lock(name)]);
        assert_eq!((&seen[0]["state"], &seen[0]["holder"]), (&json!("free"), &Value::Null), "{seen:?}");
        assert_eq!(seen[0]["session"]["state"], state, "{seen:?}");
    }
}

#[test]
fn status_watches_a_session_until_its_leader_is_known_to_live() {
    let place = fleet();
    let arguments = ["status", "-o", "json", "-vv", "--watch-for", "60s", &place.lock("a")];
    let mut status = Running::start(&arguments);
    status.wait_for_note("locks/a");
    status.wait_for_note("the store answered request=\"get\" object=\"file:");
    // The read of the session may be in flight, and shows one of both versions. The next read shows the other one.
    status.wait_for_note("the store answered request=\"get\" object=\"file:");
    place.put("sessions/s1", &session("node-1", "15s", "2"));
    let seen: Value = serde_json::from_str(&status.wait_for("")).unwrap();
    assert_eq!(seen["observed"]["expired"], false, "{seen}");
    assert!(seen["observed"]["leftSeconds"].as_f64().unwrap() > 10.0, "{seen}");

    place.put("sessions/s1", &session("node-1", "300ms", "3"));
    let ended = end(&["status", "--watch-for", "60s", &place.lock("a")]);
    assert!(ended.stdout.contains("nobody leads: the session of node-1 has expired"), "{ended:?}");
    let seen = json_of(&["status", "-o", "json", "--watch-for", "60s", &place.lock("a")]);
    assert_eq!(seen[0]["observed"]["expired"], true, "{seen:?}");
}

#[test]
fn watch_tells_the_renewals_and_the_end_of_the_session() {
    let place = fleet();
    let mut watch = Running::start(&["watch", "-o", "json", "--renewals", "--interval", "20ms", &place.lock("a")]);
    let mut text = Running::start(&["watch", "--interval", "20ms", &place.lock("a")]);
    let mut next = |event: &str| {
        let line: Value = serde_json::from_str(&watch.wait_for("")).unwrap();
        assert_eq!(line["event"], event, "{line}");
        line
    };
    assert_eq!(next("leading")["session"]["id"], "s1");
    text.wait_for_line("node-1 leads (fencing token 7, session s1, lease 15s)");
    place.put("sessions/s1", &session("node-1", "300ms", "2"));
    next("renewed");
    next("expired");
    text.wait_for_line("nobody leads: the session of node-1 has expired (fencing token 7, session s1, lease 300ms)");
    place.put("sessions/s1", &session("", "1s", "3"));
    let ended = next("sessionEnded");
    assert_eq!((&ended["holder"], &ended["session"]["state"]), (&Value::Null, &json!("ended")), "{ended}");
    text.wait_for_line("nobody leads: the session of node-1 has ended (last fencing token 7)");
    place.put("sessions/s3", &session("node-3", "15s", "1"));
    place.put("locks/a", &held("node-3", "s3", 8));
    assert_eq!(next("leading")["holder"], "node-3");
    text.wait_for_line("node-3 leads (fencing token 8, session s3");
}

#[test]
fn the_long_work_of_a_process_is_shown_with_its_session() {
    let place = fleet();
    let progress = json!({ "leads": 340, "taking": 16, "handingOver": 3, "waiting": 2211, "seconds": 83 });
    let mut busy: Value = serde_json::from_str(&session("node-1", "15s", "2")).unwrap();
    busy["progress"] = progress.clone();
    place.put("sessions/s1", &busy.to_string());
    let words = "leads 340, takes 16, hands over 3, 2211 wait, for 1m 23s";
    let table = end(&["list", "--sessions", &place.file("")]).stdout;
    let table = rows(&table);
    assert_eq!((table[0].last(), table[1].last(), table[2].last()), (Some(&"WORK"), Some(&words), Some(&"-")));
    assert_eq!(json_of(&["list", "--sessions", "-o", "json", &place.file("")])[0]["progress"], progress);
    let ended = end(&["status", &place.lock("a")]);
    assert!(ended.stdout.contains(&format!("session's work {words}")), "{ended:?}");
    // What is no such field is not shown, and does no harm.
    busy["progress"] = json!({ "leads": "many" });
    place.put("sessions/s1", &busy.to_string());
    assert!(!end(&["list", "--sessions", &place.file("")]).stdout.contains("WORK"));
}

#[test]
fn list_shows_locks_with_their_sessions_and_no_session_as_a_lock() {
    let place = fleet();
    let ended = end(&["list", "-vv", &place.file("")]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let table = rows(&ended.stdout);
    assert_eq!(table[0], ["LOCK", "STATE", "HOLDER", "SESSION", "TOKEN", "LEASE", "SINCE", "RENEWED"]);
    assert_eq!(table[1][..6], ["locks/a", "held", "node-1", "s1", "7", "15s"]);
    assert!(table[1][7].ends_with(" ago"), "{table:?}");
    assert_eq!(table[2], ["locks/c", "free", "-", "s2 (ended)", "9", "-", "-", "-"]);
    assert_eq!(table[3][..6], ["locks/plain", "held", "node-3", "-", "3", "20s"]);
    assert_eq!(table[4][..4], ["locks/team/b", "held", "node-1", "s1"]);
    assert_eq!(table.len(), 5, "{table:?}");
    // One listing, and one read of each object.
    let answers = |request: &str| ended.stderr.matches(&format!("the store answered request=\"{request}\"")).count();
    assert_eq!((answers("list"), answers("get")), (1, 6), "{ended:?}");

    // The sessions are not under this prefix.
    let seen = json_of(&["list", "-o", "json", &place.prefix()]);
    let found: Vec<_> = seen.iter().map(|view| (&view["holder"], &view["session"]["id"])).collect();
    let (one, s1) = (json!("node-1"), json!("s1"));
    let expected = [(&one, &s1), (&Value::Null, &json!("s2")), (&json!("node-3"), &Value::Null), (&one, &s1)];
    assert_eq!(found, expected);
    assert_eq!(rows(&end(&["list", &place.prefix()]).stdout)[1][..4], ["a", "held", "node-1", "s1"]);
}

#[test]
fn list_shows_sessions_with_the_number_of_their_locks() {
    let place = fleet();
    let ended = end(&["list", "--sessions", &place.file("")]);
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""), "{ended:?}");
    let table = rows(&ended.stdout);
    assert_eq!(table[0], ["SESSION", "HOLDER", "LOCKS", "LEASE", "SINCE", "RENEWED"]);
    assert_eq!(table[1][..4], ["s1", "node-1", "2", "15s"]);
    assert_eq!(table[2], ["s2", "(ended)", "1", "-", "-", "-"]);
    let seen = json_of(&["list", "--sessions", "-o", "json", &place.file("")]);
    let expected = json!({
        "id": "s1", "holder": "node-1", "url": place.file("sessions/s1"), "state": "open", "locks": 2,
        "leaseDurationSeconds": 15.0, "byHoldersClock": { "acquireTime": EARLIER, "renewTime": TIME },
    });
    assert_eq!((seen.len(), &seen[0]), (2, &expected));
    let none = end(&["list", "--sessions", &place.file("nothing/")]);
    assert!(none.code == Some(0) && none.stderr.contains("no sessions under"), "{none:?}");
}

#[test]
fn a_plain_lock_in_a_folder_of_that_name_is_a_lock() {
    let place = Place::new();
    place.put("sessions/web", &crate::support::record("node-1", "15s", 7, "1"));
    let ended = end(&["list", &place.file("")]);
    assert_eq!(rows(&ended.stdout)[1][..4], ["sessions/web", "held", "node-1", "7"], "{ended:?}");
    let ended = end(&["release", "--force", "--yes", &place.file("sessions/web")]);
    assert!(ended.stdout.contains("the next candidate that polls takes over"), "{ended:?}");
}

#[test]
fn transfer_asks_the_leader_of_a_session_s_lock_and_says_when_it_is_read() {
    let place = fleet();
    let ended = end(&["transfer", &place.lock("a"), "--to", "node-2", "--yes"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(ended.stdout.contains("node-1 leads (fencing token 7, session s1, lease 15s)\n"), "{ended:?}");
    assert!(ended.stdout.contains("hands over at its next scan, at most 30s later"), "{ended:?}");
    let written: Value = serde_json::from_slice(&place.body("locks/a")).unwrap();
    assert_eq!((&written["preferredHolder"], &written["session"]), (&json!("node-2"), &json!("s1")), "{written}");
    assert_eq!((&written["leaderTransitions"], &written["writeId"]), (&json!(7), &json!("w")), "{written}");
    assert!(written.get("leaseDuration").is_none(), "{written}");

    assert!(
        ended.stderr.contains("no open session has the identity \"node-2\"; check the name"),
        "no session is of node-2: {ended:?}"
    );

    let ended = end(&["transfer", &place.lock("c"), "--to", "node-1", "--yes"]);
    assert!(!ended.stderr.contains("check the name"), "{ended:?}");
    assert!(ended.stdout.contains("if \"node-1\" competes, it takes over at its next poll"), "{ended:?}");

    let before = place.body("sessions/s1");
    let ended = end(&["transfer", &place.file("sessions/s1"), "--to", "node-2", "--yes"]);
    assert_eq!(ended.code, Some(64), "{ended:?}");
    assert!(ended.stderr.contains("transfer the locks that it holds"), "{ended:?}");
    assert_eq!(place.body("sessions/s1"), before);
}

#[test]
fn one_lock_is_released_and_the_session_stays() {
    let place = fleet();
    let before = (place.body("locks/a"), place.body("sessions/s1"));
    let ended = end(&["release", "--force", &place.lock("a")]);
    assert!(ended.code == Some(64) && ended.stderr.contains("add --yes"), "{ended:?}");
    assert_eq!(place.body("locks/a"), before.0);
    let said = json_of(&["release", "--force", "--yes", "-o", "json", &place.lock("a")]).remove(0);
    assert_eq!((&said["before"]["session"]["id"], &said["after"]["holder"]), (&json!("s1"), &Value::Null), "{said}");
    assert_eq!(said["changed"], true, "{said}");
    let record = place.record("a");
    assert!(record.is_released() && record.session.is_none() && record.leader_transitions == 7, "{record:?}");
    assert_eq!(place.body("sessions/s1"), before.1);
    let ended = end(&["release", "--force", "--yes", &place.lock("team/b")]);
    assert!(ended.stdout.contains("the next member that scans takes over"), "{ended:?}");
}

#[test]
fn a_whole_session_is_ended_after_its_locks_were_named() {
    let place = fleet();
    let url = place.file("sessions/s1");
    let before = place.body("sessions/s1");
    let ended = end(&["release", "--force", &url]);
    assert!(ended.code == Some(64) && ended.stderr.contains("add --yes"), "{ended:?}");
    let named = format!("leads 2 locks: {}, {}", place.lock("a"), place.lock("team/b"));
    assert!(ended.stderr.contains(&named), "{ended:?}");
    assert_eq!(place.body("sessions/s1"), before);

    let ended = end(&["release", "--force", "--yes", "-o", "json", &url]);
    assert!(ended.code == Some(0) && ended.stderr.contains(&named), "{ended:?}");
    let said: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!((&said["before"]["state"], &said["after"]["state"]), (&json!("open"), &json!("ended")), "{said}");
    assert_eq!((&said["changed"], said["locks"].as_array().unwrap().len()), (&json!(true), 2), "{said}");
    let written: Value = serde_json::from_slice(&place.body("sessions/s1")).unwrap();
    assert_eq!((&written["holderIdentity"], &written["released"]), (&json!(""), &json!(0)), "{written}");
    let seen = json_of(&["status", "-o", "json", &place.lock("a")]);
    assert_eq!((&seen[0]["state"], &seen[0]["session"]["state"]), (&json!("free"), &json!("ended")), "{seen:?}");

    let ended = end(&["release", "--force", &url]);
    assert!(ended.code == Some(0) && ended.stdout.contains("nothing was changed"), "{ended:?}");
}

#[test]
fn the_questions_say_what_a_release_and_a_transfer_mean() {
    let place = fleet();
    let (lock, session) = (place.lock("a"), place.file("sessions/s1"));
    for (args, texts) in [
        (
            &["release", "--force", &lock][..],
            &["through the session s1, which keeps its other locks", "at most 30s later", "two leaders are possible"][..],
        ),
        (
            &["release", "--force", &session],
            &[
                "the session s1 of \"node-1\" leads 2 locks",
                "until its next renewal",
                "two leaders of each are possible",
            ],
        ),
        (
            &["transfer", "--to", "node-2", &lock],
            &["\"node-1\" leads", "through the session s1", "nobody leads for one lease duration (now 15s)"],
        ),
    ] {
        let before = (place.body("locks/a"), place.body("sessions/s1"));
        let mut terminal = Terminal::start(args, &[]);
        texts.iter().for_each(|text| terminal.wait_for(text));
        terminal.wait_for("[y/N]");
        terminal.press("n\r");
        let (code, screen) = terminal.end();
        assert!(code == 75 && screen.contains("nothing was changed"), "{screen:?}");
        assert_eq!((place.body("locks/a"), place.body("sessions/s1")), before);
    }
}
