//! `history`, and locks with one object per write.

use std::fs;

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::status::json;
use crate::support::{LONG, Place, Running, TIMINGS, end, run};

fn record(holder: &str, token: u64, rest: &str) -> String {
    let times = r#""acquireTime":"2026-02-02T10:15:30Z","renewTime":"2026-02-02T10:16:00Z""#;
    format!(r#"{{"holderIdentity":"{holder}","leaderTransitions":{token},"leaseDuration":"15s",{times}{rest}}}"#) + "\n"
}

#[test]
fn history_tells_who_led_when_and_why_each_term_ended() {
    let directory = tempfile::tempdir().unwrap();
    fs::create_dir(directory.path().join("lock")).unwrap();
    let url = format!("sequenced+file://{}/lock", directory.path().display());
    for (number, content) in [
        (1, record("node-1", 0, "")),
        (2, record("", 0, r#","preferredHolder":"node-2""#)),
        (3, record("node-2", 1, "")),
        (4, record("node-3", 2, "")),
        (5, record("node-3", 2, "")),
    ] {
        fs::write(directory.path().join(format!("lock/{number:020}")), content).unwrap();
    }
    let ended = end(&["history", "-q", &url]);
    let rows: Vec<Vec<_>> = ended
        .stdout
        .lines()
        .map(|line| line.split("  ").map(str::trim).filter(|cell| !cell.is_empty()).collect())
        .collect();
    let (since, renewed) = ("2026-02-02T10:15:30Z", "2026-02-02T10:16:00Z");
    let expected = [
        vec!["HOLDER", "TOKEN", "SINCE", "UNTIL", "ENDED", "RESULT"],
        vec!["node-1", "0", since, renewed, "the lease is handed over to \"node-2\""],
        vec!["node-2", "1", since, renewed, "the lease expired, and was taken over by \"node-3\""],
        vec!["node-3", "2", since, renewed, "-"],
    ];
    assert_eq!((ended.code, rows.as_slice()), (Some(0), expected.as_slice()), "{ended:?}");

    let terms = json(&["history", "-o", "json", &url]);
    assert_eq!(terms.len(), 3);
    assert_eq!(terms[1]["ended"], json!({"why": "expired", "next": "node-3"}));
    assert_eq!((&terms[2]["firstVersion"], &terms[2]["lastVersion"]), (&json!(4), &json!(5)));
}

#[test]
fn history_says_what_it_needs_of_a_lock_that_keeps_none() {
    let directory = tempfile::tempdir().unwrap();
    let ended = end(&["history", &format!("file://{}/lock", directory.path().display())]);
    assert_eq!(ended.code, Some(64), "{ended:?}");
    assert!(
        ended.stderr.contains("no history was recorded; start its candidates with --keep-history 100"),
        "{ended:?}"
    );
}

/// Real candidates of a plain lock: one that is killed, and jobs that succeed and fail.
#[test]
fn a_plain_lock_keeps_who_led_and_what_ran() {
    let place = Place::new();
    let lock = place.lock("nightly");
    let with = |timings: &[&'static str], name| [timings, &["--keep-history", "3", "--identity", name]].concat();
    let host = |name| with(&LONG, name);
    let job = |name, job| [&host(name)[..], &["--job-id", job]].concat();
    // The next one waits for the end of this lease.
    let mut dead = Running::start(&run(&lock, &with(&TIMINGS, "node-1"), &["sh", "-c", "echo begun; exec sleep 1000"]));
    dead.wait_for("begun");
    dead.signal(Signal::KILL);
    assert_eq!(end(&run(&lock, &job("node-2", "monday"), &["true"])).code, Some(0));
    assert_eq!(end(&run(&lock, &job("node-3", "tuesday"), &["sh", "-c", "exit 3"])).code, Some(3));
    let told = |term: &Value| {
        let text = |name: &str| term[name].as_str().unwrap_or("-").to_owned();
        (text("holder"), term["ended"]["why"].as_str().unwrap_or("-").to_owned(), text("job"), text("result"))
    };
    let terms = json(&["history", "-o", "json", &lock]);
    let of = |holder: &str, why: &str, job: &str, result: &str| (holder.into(), why.into(), job.into(), result.into());
    assert_eq!(
        terms.iter().map(told).collect::<Vec<_>>(),
        [
            of("node-1", "expired", "-", "-"),
            of("node-2", "stepped_down", "monday", "exit code 0"),
            of("node-3", "stepped_down", "tuesday", "exit code 3"),
        ]
    );
    // The oldest goes, and the one that leads comes last.
    assert_eq!(end(&run(&lock, &host("node-4"), &["true"])).code, Some(0));
    let mut leader = Running::start(&run(&lock, &host("node-5"), &["sh", "-c", "echo begun; exec sleep 1000"]));
    leader.wait_for("begun");
    let table = end(&["history", "-q", &lock]).stdout;
    let holders: Vec<&str> = table.lines().skip(1).map(|line| line.split_whitespace().next().unwrap()).collect();
    assert_eq!(holders, ["node-2", "node-3", "node-4", "node-5"], "{table}");
    assert!(table.contains("tuesday: exit code 3"), "{table}");
    // The history is no lock.
    let listed = json(&["list", "-o", "json", &place.prefix()]);
    assert_eq!(listed.len(), 1, "{listed:?}");
}

/// A term of a real candidate, and the probe of such a store.
#[test]
fn a_command_runs_under_a_sequenced_lock_and_its_term_is_kept() {
    let directory = tempfile::tempdir().unwrap();
    let url = format!("sequenced+file://{}/lock?keep=100", directory.path().display());
    let ran = end(&["run", "--identity", "node-1", "--lock", &url, "--", "true"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let terms = json(&["history", "-o", "json", &url]);
    assert_eq!(terms.len(), 1, "{terms:?}");
    assert_eq!((&terms[0]["holder"], &terms[0]["ended"]), (&json!("node-1"), &json!({"why": "released"})));

    let probed = json(&["probe", "-o", "json", &url]);
    assert_eq!((&probed[0]["verdict"], &probed[0]["kind"]), (&json!("fit"), &json!("createOnly")), "{probed:?}");
}
