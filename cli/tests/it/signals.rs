//! Signals on their path through `run`.

use std::process::Command;
use std::time::Duration;

use rustix::process::Signal;

use crate::support::{LONG, Place, Running, TIMINGS, run};

/// Tells of every signal, and ends on SIGTERM.
const TELLS: &str = "trap 'echo HUP' HUP; trap 'echo INT' INT; trap 'echo QUIT' QUIT; trap 'echo USR1' USR1; \
                     trap 'echo USR2' USR2; trap 'echo WINCH' WINCH; trap 'echo TERM; exit 5' TERM; \
                     echo up; while :; do sleep 0.02; done";

#[test]
fn each_reaches_the_command_whose_end_is_waited_for() {
    let place = Place::new();
    let mut running = Running::start(&run(&place.lock("a"), &LONG, &["sh", "-c", TELLS]));
    running.wait_for("up");
    for (signal, name) in [
        (Signal::USR1, "USR1"),
        (Signal::HUP, "HUP"),
        (Signal::INT, "INT"),
        (Signal::QUIT, "QUIT"),
        (Signal::USR2, "USR2"),
        (Signal::WINCH, "WINCH"),
    ] {
        running.signal(signal);
        running.wait_for(name);
    }
    assert!(!place.record("a").is_released());
    running.signal(Signal::TERM);
    let ended = running.end();
    assert_eq!(ended.code, Some(5), "{ended:?}");
    assert!(ended.stdout.ends_with("TERM"), "{ended:?}");
    assert!(place.record("a").is_released());
}

#[test]
fn the_lease_is_renewed_while_the_command_takes_its_time_to_stop() {
    let place = Place::new();
    let slow = "trap 'sleep 10; echo cleaned up; exit 6' TERM; echo up; while :; do sleep 0.02; done";
    let lock = place.lock("a");
    let patient = [&TIMINGS[..], &["--kill-after", "1h"]].concat();
    let mut running = Running::start(&run(&lock, &patient, &["sh", "-c", slow]));
    running.wait_for("up");
    let mut next = Running::start(&run(&lock, &TIMINGS, &["sh", "-c", "echo led"]));
    running.signal(Signal::TERM);
    running.wait_for("cleaned up");
    assert_eq!(place.record("a").leader_transitions, 1, "the lease expired meanwhile");
    assert_eq!(running.end().code, Some(6));
    next.wait_for("led");
}

#[test]
fn sigterm_ends_a_campaign_with_the_commands_code() {
    let place = Place::new();
    let options = [&LONG[..], &["--campaign"]].concat();
    let mut running = Running::start(&run(&place.lock("a"), &options, &["sh", "-c", TELLS]));
    running.wait_for("up");
    running.signal(Signal::TERM);
    let ended = running.end();
    assert_eq!(ended.code, Some(5), "{ended:?}");
    assert!(place.record("a").is_released());
}

#[test]
fn sigterm_ends_a_campaign_that_waits() {
    let place = Place::new();
    let options = [&LONG[..], &["--campaign"]].concat();
    let mut running = Running::start(&run(&place.lock("a"), &options, &["sh", "-c", "echo worked; exit 4"]));
    running.wait_for("worked");
    // After a term that ended by itself, the others go first for a lease, which is longer than the patience.
    place.wait_until_free("a");
    running.signal(Signal::TERM);
    let ended = running.end();
    assert_eq!(ended.code, Some(143), "{ended:?}");
}

#[test]
fn sighup_is_for_the_command_and_ends_no_campaign() {
    let place = Place::new();
    let options = [&TIMINGS[..], &["--campaign"]].concat();
    let mut running = Running::start(&run(&place.lock("a"), &options, &["sh", "-c", "echo up; exec sleep 1000"]));
    running.wait_for("up");
    running.signal(Signal::HUP);
    running.wait_for("up");
    assert_eq!(place.record("a").leader_transitions, 2);
}

/// Ignores SIGTERM, as does its child, which holds standard output open.
const DEAF: &str = "trap '' TERM INT QUIT; sleep 1000 & echo up; while :; do sleep 1; done";

#[test]
fn a_command_that_does_not_end_is_killed() {
    let (place, short) = (Place::new(), Duration::from_millis(300));
    let usual = (Signal::TERM, &[][..], Duration::from_secs(10));
    let asked = [Signal::TERM, Signal::INT, Signal::QUIT].map(|signal| (signal, &["--kill-after", "300ms"][..], short));
    for (signal, more, patience) in asked.into_iter().chain([usual]) {
        let options = [&LONG[..], more].concat();
        let mut running = Running::start(&run(&place.lock("a"), &options, &["sh", "-c", DEAF]));
        running.wait_for("up");
        let told = std::time::Instant::now();
        running.signal(signal);
        let ended = running.end();
        assert_eq!(ended.code, Some(128 + 9), "{ended:?}");
        assert!(told.elapsed() >= patience, "{ended:?}");
        // A busy machine may take seconds to end what was killed, and `run` names it meanwhile.
        let (told_of_it, left_it) = ("is still running after SIGTERM", "the lease was not released");
        assert!(ended.stderr.contains(told_of_it) && !ended.stderr.contains(left_it), "{ended:?}");
        assert!(place.record("a").is_released(), "it did not end gracefully");
    }
}

#[test]
fn a_command_that_ends_in_time_is_not_killed() {
    let place = Place::new();
    let options = [&LONG[..], &["--kill-after", "1h"]].concat();
    let mut running = Running::start(&run(&place.lock("a"), &options, &["sh", "-c", TELLS]));
    running.wait_for("up");
    // A service rereads its settings at this one.
    running.signal(Signal::HUP);
    running.wait_for("HUP");
    running.signal(Signal::TERM);
    let ended = running.end();
    assert_eq!(ended.code, Some(5), "{ended:?}");
}

#[test]
fn no_other_signal_is_followed_by_sigkill() {
    let place = Place::new();
    let options = [&LONG[..], &["--kill-after", "0s"]].concat();
    let mut running = Running::start(&run(&place.lock("a"), &options, &["sh", "-c", TELLS]));
    running.wait_for("up");
    for (signal, name) in [(Signal::HUP, "HUP"), (Signal::USR1, "USR1"), (Signal::WINCH, "WINCH")] {
        running.signal(signal);
        running.wait_for(name);
    }
    running.signal(Signal::TERM);
    let code = running.end().code;
    assert!([Some(5), Some(128 + 9)].contains(&code), "{code:?}");
}

#[test]
#[cfg(target_os = "linux")]
fn the_signals_that_end_containers_are_like_sigterm() {
    for signal in ["PWR", "37"] {
        let place = Place::new();
        let mut running = Running::start(&run(&place.lock("a"), &LONG, &["sh", "-c", TELLS]));
        running.wait_for("up");
        let pid = running.pid().to_string();
        assert!(Command::new("kill").args([format!("-{signal}"), pid]).status().unwrap().success());
        running.wait_for("TERM");
        let ended = running.end();
        assert_eq!(ended.code, Some(5), "{ended:?}");
        assert!(place.record("a").is_released());
    }
}
