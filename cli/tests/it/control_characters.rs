//! Names that would forge lines and titles if they were printed as they are.

use serde_json::Value;

use crate::support::{LONG, Place, Running, end, record, run};

/// As JSON has it in a record.
const NAME: &str = r"x\u001b[2K\u001b]0;owned\u0007\r\nforged\u202etxt\u009b1A";
const SHOWN: &str = r"x\u{1b}[2K\u{1b}]0;owned\u{7}\r\nforged\u{202e}txt\u{9b}1A";

fn is_harmless(text: &str) {
    let bad = |c: char| (c.is_control() && c != '\n') || matches!(c, '\u{202e}');
    assert!(!text.contains(bad) && !text.contains("\nforged"), "{text:?}");
}

#[test]
fn no_command_prints_them() {
    let place = Place::new();
    let held = record(NAME, "1h", 7, "1").replacen('{', &format!(r#"{{"preferredHolder":"{NAME}2","#), 1);
    place.overwrite("a", &held);
    let lock = place.lock("a");
    let not_waiting = [&LONG[..], &["--no-wait"]].concat();
    for args in [
        &["status", &lock][..],
        &["list", &place.prefix()],
        &run(&lock, &not_waiting, &["true"]),
        &["transfer", "--yes", "--to", "b", &lock],
    ] {
        let ended = end(args);
        let text = ended.stdout + &ended.stderr;
        is_harmless(&text);
        assert!(text.contains(SHOWN), "{args:?}: {text:?}");
    }
    let mut watch = Running::start(&["watch", &lock]);
    let line = watch.wait_for("");
    is_harmless(&line);
    assert!(line.contains(SHOWN), "{line:?}");
}

#[test]
fn json_escapes_them_and_keeps_the_name() {
    let place = Place::new();
    place.overwrite("a", &record(NAME, "1h", 7, "1"));
    let ended = end(&["status", "-o", "json", &place.lock("a")]);
    is_harmless(&ended.stdout);
    let view: Value = serde_json::from_str(&ended.stdout).unwrap();
    let name: Value = serde_json::from_str(&format!("\"{NAME}\"")).unwrap();
    assert_eq!(view["holder"], name);
}

#[test]
fn no_error_of_usage_repeats_them() {
    let name = "x\u{1b}[2K\u{9b}1A\r\u{202e}txt";
    let long = format!("--{name}");
    for args in
        [&[name][..], &["status", &long], &["run", "--lease-duration", name], &["status", name], &["list", "--", name]]
    {
        let ended = end(args);
        assert_eq!(ended.code, Some(64), "{ended:?}");
        is_harmless(&ended.stderr);
    }
}

#[test]
fn neither_messages_nor_the_log_have_them() {
    let place = Place::new();
    place.overwrite("a", &record(NAME, "1h", 7, "1"));
    let lock = place.lock("a");
    let mut waiting = Running::start(&run(&lock, &[&LONG[..], &["-vv"]].concat(), &["true"]));
    waiting.wait_for_note("leads");
    waiting.signal(rustix::process::Signal::TERM);
    let ended = waiting.end();
    is_harmless(&ended.stderr);
    assert!(ended.stderr.contains(&format!("waiting: {SHOWN} leads")), "{ended:?}");
    assert!(ended.stderr.contains("leader changed"), "{ended:?}");
}
