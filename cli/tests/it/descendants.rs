//! Processes of the command that leave its process group, its session, or its parents.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;
use std::time::Instant;

use rustix::process::{Signal, getuid};

use crate::pipe::Pipe;
use crate::support::{LEASE_WITH_TIME_TO_KILL, LONG, Place, Running, TIME_TO_KILL, run};

// None goes on forever, should the test find that nobody ends it.

/// Ignores SIGTERM.
pub(crate) const STUBBORN: &str = "trap '' TERM; echo up >&4; for i in $(seq 300); do sleep 1; done";

/// Takes its time to end.
const SLOW: &str = "trap 'sleep 0.5; exit' TERM; echo up >&4; for i in $(seq 3000); do sleep 0.1; done";

/// Ways to start what `$1` says beyond the reach of a signal to the command's process group.
pub(crate) fn ways() -> Vec<&'static str> {
    let mut ways = vec![
        "timeout 300 sh -c \"$1\"; true",
        "setsid sh -c \"$1\" & wait",
        "set -m; sh -c \"$1\" & wait",
        "(setsid sh -c \"(sh -c '(sh -c \\\"\\$0\\\" \\\"\\$0\\\" &)' \\\"\\$0\\\" &)\" \"$1\" &); sleep 300",
        "setsid sh -c 'setsid sh -c \"$0\" & sleep 300' \"$1\" & wait",
    ];
    if getuid().is_root() {
        ways.push("setsid setpriv --reuid 65534 --clear-groups sh -c \"$1\" & wait");
    } else {
        println!("not as root: no process of another user");
    }
    ways
}

/// A leader whose command is at work, and has started `inner` in the given way.
fn leader(place: &Place, pipe: &Pipe, options: &[&str], way: &str, inner: &str) -> Running {
    let command = format!("exec 4>\"$0\" 5>\"$0.held\" >/dev/null 2>&1; flock 5; {way}");
    let lock = place.lock("a");
    let running = Running::start(&run(&lock, options, &["bash", "-c", &command, &pipe.path, inner]));
    pipe.wait_for_start();
    running
}

struct Case {
    way: &'static str,
    place: Place,
    pipe: Pipe,
    running: Running,
}

fn leaders(options: &[&str], inner: &str) -> Vec<Case> {
    let case = |way| {
        let place = Place::new();
        let pipe = Pipe::new(&place);
        let running = leader(&place, &pipe, options, way, inner);
        Case { way, place, pipe, running }
    };
    ways().into_iter().map(case).collect()
}

#[test]
fn all_are_told_to_end_and_waited_for_before_the_release() {
    for Case { way, place, pipe, running } in leaders(&LONG, SLOW) {
        let mut next = Running::start(&run(&place.lock("a"), &LONG, &pipe.next()));
        next.wait_for_note("leads");
        running.signal(Signal::TERM);
        let next = next.end();
        assert_eq!(next.stdout, "led", "{way}: a process outlived the lease: {next:?}");
        pipe.wait_for_end();
        let ended = running.end();
        // `timeout` passes the signal on, and says so by its code.
        assert!(matches!(ended.code, Some(0 | 124 | 143)), "{way}: {ended:?}");
    }
}

#[test]
fn whoever_ignores_that_is_killed() {
    let mut leaders = leaders(&LONG, STUBBORN);
    for case in &leaders {
        case.running.signal(Signal::TERM);
    }
    for Case { way, place, pipe, running } in leaders.drain(..) {
        pipe.wait_for_end();
        let ended = running.end();
        assert!(ended.code.is_some(), "{way}: {ended:?}");
        assert!(place.record("a").is_released(), "{way}: {ended:?}");
    }
}

#[test]
fn none_outlives_a_run_that_is_killed() {
    for Case { pipe, running, .. } in leaders(&LONG, STUBBORN) {
        running.signal(Signal::KILL);
        pipe.wait_for_end();
        assert_eq!(running.end().code, None);
    }
}

#[test]
fn none_outlives_the_lease_of_a_run_that_is_stopped() {
    let cases: Vec<_> = leaders(&TIME_TO_KILL, STUBBORN)
        .into_iter()
        .map(|case| {
            let mut next = Running::start(&run(&case.place.lock("a"), &TIME_TO_KILL, &case.pipe.next()));
            next.wait_for_note("leads");
            case.running.signal(Signal::STOP);
            (case, next)
        })
        .collect();
    for (Case { way, pipe, running, .. }, next) in cases {
        let next = next.end();
        assert_eq!(next.stdout, "led", "{way}: a process outlived the lease: {next:?}");
        pipe.wait_for_end();
        running.signal(Signal::CONT);
        let ended = running.end();
        assert_eq!(ended.code, Some(79), "{way}: {ended:?}");
    }
}

#[test]
fn none_outlives_the_lease_that_is_lost() {
    let leaders = leaders(&TIME_TO_KILL, STUBBORN);
    for case in &leaders {
        case.place.cut_off("locks");
    }
    let lost = Instant::now();
    for Case { way, pipe, running, .. } in leaders {
        let gone = pipe.wait_for_end().saturating_duration_since(lost);
        assert!(gone < LEASE_WITH_TIME_TO_KILL, "{way}: {gone:?}");
        let ended = running.end();
        assert_eq!(ended.code, Some(79), "{way}: {ended:?}");
    }
}

#[test]
fn none_outlives_a_watchdog_that_is_killed() {
    let leaders = leaders(&LONG, STUBBORN);
    for case in &leaders {
        let kill = "pkill -KILL -P \"$(pgrep -P \"$0\")\" -f __watchdog";
        let killed = Command::new("sh").args(["-c", kill, &case.running.pid().to_string()]).status().unwrap();
        assert!(killed.success(), "there was no watchdog");
    }
    for Case { way, place, pipe, running } in leaders {
        pipe.wait_for_end();
        let ended = running.end();
        assert!(ended.stderr.contains("the watchdog died"), "{way}: {ended:?}");
        assert!(place.record("a").is_released(), "{way}: {ended:?}");
    }
}

#[test]
fn none_outlives_a_command_that_ends_by_itself() {
    let place = Place::new();
    let pipe = Pipe::new(&place);
    let command = "exec 4>\"$0\" 5>\"$0.held\" >/dev/null 2>&1; flock 5; mkfifo \"$0.2\"; \
                   setsid sh -c 'trap \"sleep 0.5; exit\" TERM; echo up >&4; echo on >\"$0.2\"; \
                   for i in $(seq 3000); do sleep 0.1; done' \"$0\" & read on <\"$0.2\"; exit 3";
    let lock = place.lock("a");
    let running = Running::start(&run(&lock, &LONG, &["sh", "-c", command, &pipe.path]));
    pipe.wait_for_start();
    let next = Running::start(&run(&lock, &LONG, &pipe.next())).end();
    assert_eq!(next.stdout, "led", "a process outlived the command: {next:?}");
    pipe.wait_for_end();
    assert_eq!(running.end().code, Some(3));
}

#[test]
fn not_even_one_that_is_never_the_same_process_for_long() {
    for signal in [Signal::KILL, Signal::TERM] {
        let place = Place::new();
        let pipe = Pipe::new(&place);
        // Each process starts the next one, in a session of its own, and ends. The chain breaks when the directory is gone.
        let script = place.path("hop");
        fs::write(&script, "#!/bin/sh\nsetsid \"$0\" &\n").unwrap();
        fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
        let inner = format!("echo up >&4; {}; exec sleep 300", script.display());
        let running = leader(&place, &pipe, &LONG, "sh -c \"$1\"", &inner);
        running.signal(signal);
        pipe.wait_for_end();
        running.end();
    }
}
