//! The command when leadership is lost, or when `run` itself is gone.

use std::time::Instant;

use rustix::process::Signal;

use crate::pipe::Pipe;
use crate::support::{LEASE_WITH_TIME_TO_KILL, LONG, Place, Running, TIME_TO_KILL, end, record, run};

// None goes on forever, should the test find that nobody ends it.

/// A command that holds a pipe of its own open, with a process of its own that does so too.
const HOLDS: &str = "exec 4>\"$0\" 5>\"$0.held\" >/dev/null 2>&1; flock 5; \
                     (trap '' TERM; for i in $(seq 300); do sleep 1; done) & echo up >&4; wait";
const STUBBORN: &str =
    "exec 4>\"$0\" >/dev/null 2>&1; trap '' TERM; echo up >&4; for i in $(seq 300); do sleep 1; done";

/// A leader whose command is at work.
fn leader(place: &Place, pipe: &Pipe, options: &[&str], command: &str) -> Running {
    let lock = place.lock("a");
    let running = Running::start(&run(&lock, options, &["sh", "-c", command, &pipe.path]));
    pipe.wait_for_start();
    running
}

#[test]
fn nothing_of_the_command_outlives_a_run_that_is_killed() {
    let place = Place::new();
    let pipe = Pipe::new(&place);
    let running = leader(&place, &pipe, &LONG, HOLDS);
    running.signal(Signal::KILL);
    pipe.wait_for_end();
    assert_eq!(running.end().code, None);
}

#[test]
fn a_run_that_was_stopped_has_its_command_killed_before_another_leads() {
    let place = Place::new();
    let pipe = Pipe::new(&place);
    let running = leader(&place, &pipe, &TIME_TO_KILL, HOLDS);
    let mut next = Running::start(&run(&place.lock("a"), &TIME_TO_KILL, &pipe.next()));
    next.wait_for_note("leads");
    running.signal(Signal::STOP);
    let next = next.end();
    assert_eq!(next.stdout, "led", "the command outlived its lease: {next:?}");
    pipe.wait_for_end();
    running.signal(Signal::CONT);
    let ended = running.end();
    assert_eq!(ended.code, Some(79), "{ended:?}");
}

#[test]
fn a_command_is_ended_when_leadership_is_lost_and_the_code_says_so() {
    let place = Place::new();
    let lock = place.lock("a");
    let obedient = "trap 'echo told; exit 5' TERM; echo up; while :; do sleep 0.02; done";
    let mut running = Running::start(&run(&lock, &LONG, &["sh", "-c", obedient]));
    running.wait_for("up");
    place.overwrite("a", &record("thief", "1h", 7, "1"));
    let ended = running.end();
    assert_eq!(ended.code, Some(79), "{ended:?}");
    assert!(ended.stdout.ends_with("told"), "{ended:?}");
    assert!(ended.stderr.contains(r#"the lease was taken over by "thief""#), "{ended:?}");
    assert!(ended.stderr.contains("the command was terminated with SIGTERM"), "{ended:?}");
    assert_eq!(place.record("a").holder_identity, "thief");
}

#[test]
fn a_command_that_ignores_sigterm_is_killed_while_the_lease_lasts() {
    // Nobody gets more time than the lease has.
    let leaders = [&[][..], &["--kill-after", "1h"]].map(|patience| {
        let place = Place::new();
        let pipe = Pipe::new(&place);
        let running = leader(&place, &pipe, &[&TIME_TO_KILL[..], patience].concat(), STUBBORN);
        // The store is gone: the lease cannot be renewed, and for everybody else it lasts for one lease from now at most.
        place.cut_off("locks");
        (Instant::now(), place, pipe, running)
    });
    for (last_renewal, _place, pipe, running) in leaders {
        let gone = pipe.wait_for_end().saturating_duration_since(last_renewal);
        assert!(gone < LEASE_WITH_TIME_TO_KILL, "{gone:?}");
        let ended = running.end();
        assert_eq!(ended.code, Some(79), "{ended:?}");
        assert!(ended.stderr.contains("the command was killed"), "{ended:?}");
    }
}

#[test]
fn a_command_that_ignores_sigterm_is_killed_earlier_if_asked_for() {
    let place = Place::new();
    let pipe = Pipe::new(&place);
    let running = leader(&place, &pipe, &[&LONG[..], &["--kill-after", "100ms"]].concat(), STUBBORN);
    // Another leads at once, and the command would have had 50 s.
    let lost = Instant::now();
    place.overwrite("a", &record("thief", "1h", 7, "1"));
    let gone = pipe.wait_for_end();
    assert!(gone - lost < std::time::Duration::from_secs(30), "{:?}", gone - lost);
    let ended = running.end();
    assert_eq!(ended.code, Some(79), "{ended:?}");
    assert!(!ended.stderr.contains("is still running after SIGTERM"), "the loss was told already: {ended:?}");
}

#[test]
fn a_campaign_goes_on_after_a_loss() {
    let place = Place::new();
    let options = [&LONG[..], &["--campaign"]].concat();
    let lock = place.lock("a");
    let mut running = Running::start(&run(
        &lock,
        &options,
        &["sh", "-c", "echo term $LEADERELECTION_FENCING_TOKEN; exec sleep 1000"],
    ));
    running.wait_for("term 1");
    place.overwrite("a", &record("thief", "1s", 7, "1"));
    running.wait_for_note("thief leads");
    running.wait_for("term 8");
}

#[test]
fn a_record_with_our_name_that_another_wrote_is_anothers() {
    let place = Place::new();
    place.overwrite("a", &record("node-1", "1h", 7, "1"));
    let options = [&LONG[..], &["--identity", "node-1", "--no-wait"]].concat();
    let ended = end(&run(&place.lock("a"), &options, &["echo", "led"]));
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(75), ""), "{ended:?}");
}
