//! `run --job-id`: a job that has to succeed once, on any number of hosts.

#[cfg(feature = "all-tests")]
mod nights;
#[cfg(feature = "all-tests")]
mod on_s3;

use std::fs;
use std::process::Command;

use serde_json::Value;

use crate::support::{LONG, Place, Running, TIMINGS, end, record, run};

/// The options of a host for the job `name`.
fn job<'a>(timings: &[&'a str], name: &'a str) -> Vec<&'a str> {
    [timings, &["--job-id", name]].concat()
}

#[test]
fn a_job_that_failed_is_run_by_the_next_host() {
    let place = Place::new();
    let lock = place.lock("nightly");
    let options = job(&LONG, "today");
    let failed = end(&[&["-q"], &run(&lock, &options, &["sh", "-c", "exit 3"])[..]].concat());
    // cron mails what is written, and a failed job without a line would be no mail.
    let last = format!(
        "leaderelect: error: job today of {lock} failed: the command ended with exit code 3; it is not recorded as done, so the \
         next host that leads runs it\n"
    );
    assert_eq!((failed.code, failed.stderr), (Some(3), last));
    let next = end(&run(&lock, &options, &["echo", "ran"]));
    assert_eq!((next.code, next.stdout.as_str()), (Some(0), "ran\n"), "{next:?}");
    let last = end(&run(&lock, &options, &["echo", "ran"]));
    assert_eq!((last.code, last.stdout.as_str()), (Some(0), ""), "{last:?}");
    // The lock remembers earlier jobs, too.
    assert_eq!(end(&run(&lock, &job(&LONG, "tomorrow"), &["true"])).code, Some(0));
    assert_eq!(end(&run(&lock, &options, &["false"])).code, Some(0));
}

#[test]
fn a_job_whose_host_dies_in_the_middle_is_run_by_the_next_host() {
    let place = Place::new();
    let lock = place.lock("nightly");
    let mut first = Running::start(&run(&lock, &job(&TIMINGS, "today"), &["sh", "-c", "echo begun; exec sleep 1000"]));
    first.wait_for("begun");
    first.signal(rustix::process::Signal::KILL);
    // The wait is that of the dead host's lease.
    let next = end(&run(&lock, &job(&LONG, "today"), &["echo", "ran"]));
    assert_eq!((next.code, next.stdout.as_str()), (Some(0), "ran\n"), "{next:?}");
    assert_eq!(place.record("nightly").leader_transitions, 2);
    assert!(
        next.stderr.contains("held the lease and did not record that job today is done; running the command"),
        "{next:?}"
    );
}

#[test]
fn a_job_whose_host_died_before_it_began_is_run_by_the_next_host() {
    let place = Place::new();
    place.overwrite("nightly", &record("first", "1s", 4, "w"));
    let next = end(&run(&place.lock("nightly"), &job(&LONG, "today"), &["echo", "ran"]));
    assert_eq!((next.code, next.stdout.as_str()), (Some(0), "ran\n"), "{next:?}");
    assert!(next.stderr.contains("first held the lease and did not record that job today is done"), "{next:?}");
}

#[test]
fn a_host_that_waited_tells_who_led_last() {
    let place = Place::new();
    let (lock, pipe) = (place.lock("nightly"), place.path("pipe"));
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let named = |name| [&job(&LONG, "today")[..], &["--identity", name]].concat();
    let command = format!("echo begun; read end <{}", pipe.display());
    let mut first = Running::start(&run(&lock, &named("first"), &["sh", "-c", &command]));
    first.wait_for("begun");
    let mut second = Running::start(&run(&lock, &named("second"), &["false"]));
    second.wait_for_note("waiting: first leads");
    fs::write(&pipe, "\n").unwrap();
    assert_eq!(first.end().code, Some(0));
    let second = second.end();
    assert_eq!(second.code, Some(0), "{second:?}");
    assert!(second.stderr.contains("today is already done; the command was not run; first led last"), "{second:?}");
}

#[test]
fn status_shows_the_jobs_that_are_done() {
    let place = Place::new();
    let lock = place.lock("nightly");
    for night in ["monday", "tuesday"] {
        assert_eq!(end(&run(&lock, &job(&LONG, night), &["true"])).code, Some(0));
    }
    let text = end(&["status", &lock]).stdout;
    assert!(text.contains("  jobs done      tuesday, monday\n"), "{text}");
    let json: Value = serde_json::from_str(&end(&["status", "-o", "json", &lock]).stdout).unwrap();
    assert_eq!(json["completedJobs"], serde_json::json!(["tuesday", "monday"]));
}

#[test]
fn a_job_whose_host_dies_between_success_and_mark_is_run_again() {
    let place = Place::new();
    let (lock, pipe) = (place.lock("nightly"), place.path("pipe"));
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    // The host is gone before it sees the success of the command.
    let command = format!("echo begun; read host <{}; kill -KILL $host; exit 0", pipe.display());
    let mut first = Running::start(&run(&lock, &job(&TIMINGS, "today"), &["sh", "-c", &command]));
    first.wait_for("begun");
    fs::write(&pipe, format!("{}\n", first.pid().as_raw_nonzero())).unwrap();
    first.wait();
    assert!(place.record("nightly").completed_jobs().is_empty());
    let next = end(&run(&lock, &job(&LONG, "today"), &["echo", "ran"]));
    assert_eq!((next.code, next.stdout.as_str()), (Some(0), "ran\n"), "{next:?}");
}

#[test]
fn an_unrecorded_success_has_its_own_code_and_the_job_reruns() {
    let place = Place::new();
    let lock = place.lock("nightly");
    let pipe = place.path("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let command = format!("echo begun; read end <{}", pipe.display());
    let timings = ["--lease-duration", "7s", "--renew-deadline", "6s", "--retry-period", "200ms"];
    let mut first = Running::start(&run(&lock, &job(&timings, "today"), &["sh", "-c", &command]));
    first.wait_for("begun");
    // The store is away when the command succeeds, and stays away until the lease is over.
    place.cut_off("locks");
    fs::write(&pipe, "\n").unwrap();
    let ended = first.end();
    assert_eq!(ended.code, Some(79), "{ended:?}");
    assert!(ended.stderr.contains("the command succeeded, but"), "{ended:?}");
    assert!(ended.stderr.contains("another host may run \"today\" again"), "{ended:?}");
    place.put_back("locks");
    let next = end(&run(&lock, &job(&LONG, "today"), &["echo", "ran"]));
    assert_eq!((next.code, next.stdout.as_str()), (Some(0), "ran\n"), "{next:?}");
}

#[test]
fn a_host_that_does_not_wait_can_be_silent() {
    let place = Place::new();
    let lock = place.lock("nightly");
    let mut first = Running::start(&run(&lock, &job(&LONG, "today"), &["sh", "-c", "echo begun; exec sleep 1000"]));
    first.wait_for("begun");
    let impatient = [&job(&LONG, "today")[..], &["--no-wait"]].concat();
    assert_eq!(end(&run(&lock, &impatient, &["true"])).code, Some(75));
    let skipping = [&impatient[..], &["--skip-exit-code", "0"]].concat();
    let skipped = end(&run(&lock, &skipping, &["true"]));
    assert_eq!(skipped.code, Some(0), "{skipped:?}");
    assert!(skipped.stderr.contains("skipped: "), "{skipped:?}");
    let broken = end(&run(&place.lock("other"), &skipping, &["no-such-command"]));
    assert_eq!(broken.code, Some(127), "{broken:?}");
    let silent = end(&[&["-q"][..], &run(&lock, &skipping, &["true"])].concat());
    assert_eq!((silent.code, silent.stderr.as_str()), (Some(0), ""), "{silent:?}");
}

#[test]
fn a_job_needs_a_name_and_one_lock() {
    let place = Place::new();
    let lock = place.lock("nightly");
    let nameless = end(&run(&lock, &job(&LONG, ""), &["true"]));
    assert_eq!(nameless.code, Some(64), "{nameless:?}");
    assert!(nameless.stderr.contains("is empty"), "{nameless:?}");
    for other in [&["--campaign"][..], &["--slots", "2"]] {
        let refused = end(&run(&lock, &[&job(&LONG, "today")[..], other].concat(), &["true"]));
        assert_eq!(refused.code, Some(64), "{refused:?}");
    }
}
