use std::process::Command;

use leaderelection_integration_tests::program::Program;

/// No test waits for the end of such a lease.
const TIMING: [&str; 6] = [
    "--leader-elect-lease-duration",
    "60s",
    "--leader-elect-renew-deadline",
    "40s",
    "--leader-elect-retry-period",
    "400ms",
];

fn job(args: &[&str]) -> Program {
    Program::start(Command::new(env!("CARGO_BIN_EXE_job")).args(args))
}

#[test]
fn a_second_job_begins_when_the_first_is_done() {
    let directory = tempfile::tempdir().unwrap();
    let lock = format!("file://{}/nightly", directory.path().display());
    let args = [&[lock.as_str(), "--steps", "3", "--step", "200ms"], TIMING.as_slice()].concat();
    let mut first = job(&args);
    first.wait_for_line("begun with fencing token 1");
    let mut second = job(&args);
    first.wait_for_line("done 3 of 3 steps");
    second.wait_for_line("begun with fencing token 2");
    second.wait_for_line("done 3 of 3 steps");
    assert!(first.wait().success());
    assert!(second.wait().success());
}

#[test]
fn a_job_that_is_told_to_stop_says_how_far_it_came_and_makes_way() {
    let directory = tempfile::tempdir().unwrap();
    let lock = format!("file://{}/nightly", directory.path().display());
    let args = [&[lock.as_str(), "--steps", "1", "--step", "1h"], TIMING.as_slice()].concat();
    let mut first = job(&args);
    first.wait_for_line("begun with fencing token 1");
    first.terminate();
    first.wait_for_line("done 0 of 1 steps");
    assert!(!first.wait().success());
    job(&args).wait_for_line("begun with fencing token 2");
}
