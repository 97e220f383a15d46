//! `run` in few words, and for a limited time.

use rustix::process::Signal;

use crate::support::wait_until;
use crate::support::{LONG, Place, Running, TIMINGS, end, record, run};

#[test]
fn the_lock_is_an_argument_as_it_is_for_the_other_commands() {
    let place = Place::new();
    let ended = end(&[&["run", &place.lock("a")][..], &LONG, &["--", "echo", "done"]].concat());
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(0), "done\n"), "{ended:?}");
    assert!(place.record("a").is_released());
    let ended = end(&["run", &place.lock("a"), "--lock", &place.lock("b"), "--", "true"]);
    assert_eq!(ended.code, Some(64), "{ended:?}");
    assert!(ended.stderr.contains("names the lock more than once"), "{ended:?}");
}

#[test]
fn without_a_command_the_lock_is_held_until_a_signal() {
    let place = Place::new();
    let lock = place.lock("a");
    for token in 1..3 {
        let mut running = Running::start(&[&["run", &lock][..], &LONG].concat());
        running.wait_for_line(&token.to_string());
        assert!(!place.record("a").is_released());
        running.signal(Signal::INT);
        let ended = running.end();
        assert_eq!(ended.code, Some(128 + 2), "{ended:?}");
        assert!(place.record("a").is_released());
    }
}

#[test]
fn a_lock_that_is_held_without_a_command_can_be_lost() {
    // Who does not wait for the lock has got it.
    for more in [&[][..], &["--no-wait"]] {
        let place = Place::new();
        let mut running = Running::start(&[&["run", &place.lock("a")][..], &LONG, more].concat());
        running.wait_for_line("1");
        place.overwrite("a", &record("thief", "1h", 7, "1"));
        let ended = running.end();
        assert_eq!(ended.code, Some(79), "{ended:?}");
        assert!(ended.stderr.contains(r#"the lease was taken over by "thief""#), "{ended:?}");
        assert!(ended.stderr.contains("the lock is no longer held"), "{ended:?}");
    }
}

#[test]
fn a_job_or_a_slot_needs_a_command() {
    let place = Place::new();
    for option in [["--job-id", "today"], ["--slots", "2"]] {
        let ended = end(&[&["run", &place.lock("a")][..], &option].concat());
        assert_eq!(ended.code, Some(64), "{ended:?}");
        assert!(ended.stderr.contains("<COMMAND>"), "{ended:?}");
    }
}

#[test]
fn a_command_that_runs_too_long_is_ended() {
    let stubborn = "trap '' TERM; echo begun; while :; do sleep 0.1; done";
    let cases = [(&[][..], "echo begun; exec sleep 1000", false), (&["--kill-after", "100ms"], stubborn, true)];
    for (more, command, killed) in cases {
        let options = [&LONG[..], &["--max-runtime", "500ms"], more].concat();
        // A slow machine may end a command before its first word.
        wait_until("the command has begun", || {
            let place = Place::new();
            let ended = end(&run(&place.lock("a"), &options, &["sh", "-c", command]));
            assert_eq!(ended.code, Some(124), "{ended:?}");
            assert!(ended.stderr.contains("ran longer than --max-runtime 500ms"), "{ended:?}");
            assert!(place.record("a").is_released());
            let begun = ended.stdout == "begun\n";
            assert!(!begun || ended.stderr.contains("killing it") == killed, "{ended:?}");
            begun
        });
    }
}

#[test]
fn a_command_that_ends_in_time_has_its_own_code() {
    let place = Place::new();
    let options = [&LONG[..], &["--max-runtime", "1h"]].concat();
    assert_eq!(end(&run(&place.lock("a"), &options, &["sh", "-c", "exit 3"])).code, Some(3));
}

#[test]
fn a_campaign_goes_on_after_a_command_that_ran_too_long() {
    let place = Place::new();
    let options = [&TIMINGS[..], &["--campaign", "--max-runtime", "300ms"]].concat();
    let lock = place.lock("a");
    let command = ["sh", "-c", "echo term $LEADERELECTION_FENCING_TOKEN; exec sleep 1000"];
    let mut running = Running::start(&run(&lock, &options, &command));
    // A slow machine may end a command before its first word.
    let [first, second] = [(); 2].map(|()| running.wait_for("term ").parse::<u64>().unwrap());
    assert!(first < second, "{first}, then {second}");
}

#[test]
fn a_job_that_ran_too_long_is_not_done() {
    let place = Place::new();
    let (lock, job) = (place.lock("a"), ["--job-id", "today"]);
    let options = [&LONG[..], &job, &["--max-runtime", "300ms"]].concat();
    // It ends with 0 after SIGTERM.
    let command = "trap 'exit 0' TERM; while :; do sleep 0.1; done";
    assert_eq!(end(&run(&lock, &options, &["sh", "-c", command])).code, Some(124));
    assert!(place.record("a").completed_jobs().is_empty());
    let ended = end(&run(&lock, &[&LONG[..], &job].concat(), &["echo", "again"]));
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(0), "again\n"), "{ended:?}");
}
