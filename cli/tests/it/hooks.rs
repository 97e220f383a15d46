//! `run --on-failure` and `--on-loss`: lines of a shell for the end of a term that went wrong.

use rustix::process::Signal;

use crate::support::wait_until;
use crate::support::{LONG, Place, Running, TIMINGS, end, end_of, leaderelect, record, run};

/// Tells the variables of a hook on standard output.
const TELL: &str = "echo hook $LEADERELECTION_EVENT $LEADERELECTION_REASON $LEADERELECTION_EXIT_CODE \
                    $LEADERELECTION_FENCING_TOKEN ${LEADERELECTION_LOCK##*/} $LEADERELECTION_IDENTITY; \
                    echo \"says $LEADERELECTION_MESSAGE\"";

const BOTH: [&str; 6] = ["--on-failure", TELL, "--on-loss", TELL, "--identity", "node-1"];

fn hooked<'a>(lock: &'a str, more: &[&'a str], command: &[&'a str]) -> Vec<&'a str> {
    run(lock, &[&LONG[..], &BOTH, more].concat(), command)
}

#[test]
fn a_failure_of_the_command_is_told_after_it_and_changes_no_code() {
    for (command, told, code) in [
        (&["sh", "-c", "exit 3"][..], "hook failure failed 3 1 a node-1\nsays exit code 3\n", 3),
        (&["sh", "-c", "kill -9 $$"], "hook failure failed 137 1 a node-1\nsays exit code 137\n", 137),
        (&["/etc/passwd"], "hook failure not_started 126 1 a node-1\nsays cannot run /etc/passwd: ", 126),
    ] {
        let place = Place::new();
        let ended = end(&hooked(&place.lock("a"), &[], command));
        assert!(ended.code == Some(code) && ended.stdout.starts_with(told), "{ended:?}");
        assert!(!ended.stderr.contains("the line of --on-failure"), "{ended:?}");
        assert!(place.record("a").is_released());
    }
    let place = Place::new();
    let ended = end(&hooked(&place.lock("a"), &["--max-runtime", "100ms"], &["sleep", "1000"]));
    assert_eq!(ended.code, Some(124), "{ended:?}");
    assert!(ended.stdout.starts_with("hook failure ran_too_long 124 1 a node-1\n"), "{ended:?}");
}

#[test]
fn success_and_an_end_that_a_signal_asked_for_are_no_failures() {
    let place = Place::new();
    let ended = end(&hooked(&place.lock("a"), &[], &["echo", "done"]));
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(0), "done\n"), "{ended:?}");
    let lock = place.lock("a");
    let mut running = Running::start(&hooked(&lock, &[], &["sh", "-c", "echo up; exec sleep 1000"]));
    running.wait_for("up");
    running.signal(Signal::TERM);
    let ended = running.end();
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(143), "up"), "{ended:?}");
    let mut running = Running::start(&[&["run", &lock][..], &LONG, &["--on-loss", TELL]].concat());
    running.wait_for_line("3");
    running.signal(Signal::TERM);
    let ended = running.end();
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(143), "3"), "{ended:?}");
}

#[test]
fn a_loss_is_told_with_its_reason_when_nothing_of_the_command_is_left() {
    let place = Place::new();
    let lock = place.lock("a");
    let slow = "trap 'sleep 0.3; echo cleaned up; exit 5' TERM; echo up; while :; do sleep 0.02; done";
    let mut running = Running::start(&hooked(&lock, &[], &["sh", "-c", slow]));
    running.wait_for("up");
    place.overwrite("a", &record("thief", "1h", 7, "1"));
    let ended = running.end();
    assert_eq!(ended.code, Some(79), "{ended:?}");
    let told = "up\ncleaned up\nhook loss taken_over 79 1 a node-1\nsays leadership was lost: the lease was taken over by \"thief\"";
    assert!(ended.stdout.starts_with(told), "{ended:?}");
}

#[test]
fn a_loss_is_told_whatever_the_name_of_the_next_holder_is() {
    let place = Place::new();
    let lock = place.lock("a");
    let mut running = Running::start(&hooked(&lock, &[], &["sh", "-c", "echo up; exec sleep 1000"]));
    running.wait_for("up");
    // Each of these characters takes eight in a message.
    place.overwrite("a", &record(&"\u{200b}".repeat(15_500), "1h", 7, "1"));
    let ended = running.end();
    assert!(
        ended.stdout.starts_with("up\nhook loss taken_over 79 1 a node-1\nsays leadership was lost: "),
        "{ended:?}"
    );
}

#[test]
fn a_transfer_and_the_loss_of_a_lock_without_a_command_are_told() {
    let place = Place::new();
    let lock = place.lock("a");
    let mut running = Running::start(&hooked(&lock, &[], &["sh", "-c", "echo up; exec sleep 1000"]));
    running.wait_for("up");
    let mut next = Running::start(&[&["run", &lock][..], &LONG, &["--identity", "node-2", "--on-loss", TELL]].concat());
    next.wait_for_note("node-1 leads");
    let transfer = end(&["transfer", &lock, "--yes", "--to", "node-2"]);
    assert_eq!(transfer.code, Some(0), "{transfer:?}");
    let ended = running.end();
    assert!(
        ended.stdout.starts_with("up\nhook loss transferred 79 1 a node-1\nsays leadership was handed over"),
        "{ended:?}"
    );
    next.wait_for_line("2");
    place.overwrite("a", "a photo");
    let ended = next.end();
    assert!(ended.stdout.starts_with("2\nhook loss unreadable 79 2 a node-2\n"), "{ended:?}");
}

#[test]
fn a_hanging_hook_is_killed_with_its_children_after_the_release() {
    let place = Place::new();
    let hangs = "echo hangs; sleep 1000 & wait";
    let options = [&LONG[..], &["--on-failure", hangs, "--hook-timeout", "1h"]].concat();
    let lock = place.lock("a");
    let mut running = Running::start(&run(&lock, &options, &["false"]));
    running.wait_for("hangs");
    place.wait_until_free("a");
    running.signal(Signal::TERM);
    // The end of standard output shows that nothing holds it any more.
    assert_eq!(running.end().code, Some(1));

    let options = [&LONG[..], &["--on-failure", hangs, "--hook-timeout", "300ms"]].concat();
    // A slow machine may end a hook before its first word.
    wait_until("the hook has begun", || {
        let ended = end(&run(&lock, &options, &["false"]));
        assert_eq!(ended.code, Some(1), "{ended:?}");
        let killed = "the --on-failure hook timed out after 300ms (--hook-timeout) and was killed";
        assert!(ended.stderr.contains(killed), "{ended:?}");
        ended.stdout == "hangs\n"
    });
}

#[test]
fn a_failing_hook_runs_beside_the_next_term_and_is_reported() {
    let place = Place::new();
    let lock = place.lock("a");
    let hangs = "echo hook $LEADERELECTION_FENCING_TOKEN; exec sleep 1000";
    let options = [&TIMINGS[..], &["--campaign", "--on-failure", hangs]].concat();
    let mut running = Running::start(&run(&lock, &options, &["sh", "-c", "echo term; exit 4"]));
    for token in ["1", "2"] {
        running.wait_for("term");
        assert_eq!(running.wait_for("hook "), token);
    }
    drop(running);

    let ended = end(&run(&place.lock("b"), &[&LONG[..], &["--on-failure", "exit 9"]].concat(), &["false"]));
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(ended.stderr.contains("the --on-failure hook failed: exit status: 9"), "{ended:?}");
}

#[test]
fn renewals_that_fail_are_told_before_the_loss() {
    let tell = "echo hook $LEADERELECTION_EVENT $LEADERELECTION_FENCING_TOKEN; echo \"says $LEADERELECTION_MESSAGE\"";
    let options = [&TIMINGS[..], &["--on-renew-failure", tell, "--on-loss", "echo lost"]].concat();
    // A machine that stands still may lose the lease without a word.
    wait_until("the hook has run", || {
        let place = Place::new();
        let lock = place.lock("a");
        let mut running = Running::start(&run(&lock, &options, &["sh", "-c", "echo up; exec sleep 1000"]));
        running.wait_for("up");
        place.cut_off("locks");
        let ended = running.end();
        assert!(ended.code == Some(79) && ended.stdout.ends_with("lost"), "{ended:?}");
        let told = ended.stdout.split_once("up\nhook renew_failure 1\nsays leadership ends in ");
        told.is_some_and(|(_, said)| said.contains("s unless a renewal succeeds: the store "))
    });
}

#[test]
fn a_hook_gets_no_variable_of_an_option() {
    let place = Place::new();
    let mut command = leaderelect(run(&place.lock("a"), &LONG, &["false"]));
    command.env("LEADERELECT_ON_FAILURE", "env | sort").env("LEADERELECTION_HTTP_TOKEN", "opaque");
    let ended = end_of(command);
    assert!(ended.stdout.contains("LEADERELECTION_EVENT=failure\n"), "{ended:?}");
    assert!(!ended.stdout.contains("LEADERELECT_") && !ended.stdout.contains("opaque"), "{ended:?}");
}
