//! The log, and the other lines of standard error.

use std::fs;

use rustix::process::Signal;
use serde_json::Value;

use crate::support::{LONG, Place, Running, TIMINGS, end, end_of, leaderelect, run};

/// The lines of standard error, each of which is a JSON object.
fn objects(stderr: &str) -> Vec<Value> {
    let objects = stderr.lines().map(|line| {
        let object: Value = serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
        assert!(object["time"].is_string() && object["level"].is_string() && object["message"].is_string(), "{line}");
        object
    });
    objects.collect()
}

/// A leader whose store fails for ten seconds. Returns the lines of standard error from the failure on.
fn outage(format: &str) -> (Vec<String>, i32) {
    let place = Place::new();
    let lock = place.lock("a");
    // The first write may be slow, because it syncs many directories.
    let more = ["--request-timeout", "2900ms", "--campaign", "--identity", "node-1", "--log-format", format];
    let options = [&TIMINGS[..], &more].concat();
    let mut leader = Running::start(&run(&lock, &options, &["sh", "-c", "echo up; exec sleep 1000"]));
    leader.wait_for("up");
    place.cut_off("locks");
    // This line comes ten seconds after the first.
    leader.wait_for_note(" times in 1");
    leader.signal(Signal::TERM);
    let ended = leader.end();
    let before = ended.stderr.lines().position(|line| line.contains("leading with")).unwrap() + 1;
    let failed = |line: &&str| line.contains("a request to the lock failed");
    let expected = ended.stderr.lines().take(before).filter(|line| !failed(line)).collect::<Vec<_>>();
    assert!(expected.len() == 2 && expected[0].contains("competing"), "{ended:?}");
    let lines = ended.stderr.lines().skip(before);
    // What follows is told after the ten seconds.
    let count = lines.clone().position(|line| line.contains(" times in 1")).unwrap() + 1;
    // A line for each request that fails, one for the loss, and one for the end of the release.
    assert!(count <= 6, "{ended:?}");
    let lines = if format == "json" {
        ended.stderr.lines().map(str::to_owned).collect()
    } else {
        lines.map(str::to_owned).collect()
    };
    (lines, ended.code.unwrap())
}

#[test]
fn a_store_that_fails_for_ten_seconds_makes_few_lines() {
    let (lines, _) = outage("text");
    for line in lines {
        let url = line.matches("file://").count();
        // Paths of tests are long.
        assert!(url <= 1 && line.len() < 300, "{line}");
    }
}

#[test]
fn each_of_them_is_json_if_asked_for() {
    let (lines, _) = outage("json");
    let objects = objects(&lines.join("\n"));
    let failed = objects.iter().find(|object| object["level"] == "warn" || object["level"] == "error").unwrap();
    assert_eq!(failed["identity"], "node-1");
    assert!(failed["lock"].as_str().unwrap().starts_with("file://") && failed["error"].is_string(), "{failed}");
}

#[test]
fn every_end_is_told_in_json() {
    let place = Place::new();
    let (lock, text) = (place.lock("a"), place.path("text"));
    fs::write(&text, "no program").unwrap();
    let json = ["--log-format", "json"];
    for (args, code) in [
        (run(&lock, &[&LONG[..], &json].concat(), &[text.to_str().unwrap()]), 126),
        (run(&lock, &[&LONG[..], &json].concat(), &["no-such-command"]), 127),
        (run("s3://bucket", &json, &["true"]), 64),
        (vec!["--log-format=json", "no-such-command"], 64),
        (vec!["release", "--log-format", "json", &lock], 64),
        (vec!["status", "--log-format", "json", "file:///nonexistent/a"], 64),
        (vec!["status", "--log-format", "json", &lock], 0),
    ] {
        let ended = end(&args);
        assert_eq!(ended.code, Some(code), "{ended:?}");
        let objects = objects(&ended.stderr);
        let told = objects.last().is_some_and(|object| object["level"] == "error");
        assert_eq!(told, code != 0, "{ended:?}");
    }
    let mut command = leaderelect(["-vv", "list", &place.prefix()]);
    command.env("LEADERELECT_LOG_FORMAT", "json");
    let ended = end_of(command);
    assert!(
        ended.code == Some(0) && objects(&ended.stderr).iter().any(|object| object["level"] == "debug"),
        "{ended:?}"
    );
}
