//! `--trust-store-clock`, and the age that `status` shows.

use std::time::Duration;

use crate::support::{Place, end, record, run};

#[test]
fn beside_the_record_of_a_dead_leader_the_command_runs_at_once() {
    let place = Place::new();
    place.overwrite("a", &record("dead", "30m", 7, "1"));
    place.set_written("locks/a", Duration::from_secs(3600));
    let seen = end(&["status", &place.lock("a")]);
    assert!(seen.stdout.contains("nobody leads: the lease of dead has expired"), "{seen:?}");
    // The lease is so long that the command would not run while this test waits.
    let options = ["--lease-duration", "30m", "--wait-timeout", "10m", "--trust-store-clock", "2s"];
    let ended = end(&run(&place.lock("a"), &options, &["sh", "-c", "echo $LEADERELECTION_FENCING_TOKEN"]));
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(0), "8\n"), "{ended:?}");
}

#[test]
fn a_slack_below_the_grain_and_slots_are_refused() {
    let place = Place::new();
    let options = ["--trust-store-clock", "200ms"];
    let ended = end(&run(&place.lock("a"), &options, &["true"]));
    assert_eq!(ended.code, Some(64), "{ended:?}");
    let expected =
        "--trust-store-clock (200ms) must not be less than 1s, the resolution of the times that stores report";
    assert!(ended.stderr.contains(expected), "{ended:?}");
    let options = ["--trust-store-clock", "2s", "--slots", "3"];
    let ended = end(&run(&place.lock("a"), &options, &["true"]));
    assert!(ended.stderr.contains("cannot be used with"), "{ended:?}");
}
