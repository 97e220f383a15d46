//! `run --once-for`: a job that has to succeed once, on any number of hosts.

use std::fs;
use std::process::Command;

use crate::support::{LONG, Place, Running, TIMINGS, end, leaderelect, run};

/// The options of a host for the job `name`.
fn job<'a>(timings: &[&'a str], name: &'a str) -> Vec<&'a str> {
    [timings, &["--once-for", name]].concat()
}

/// A host that starts a while after the others.
fn late(seconds: f64, lock: &str, name: &str, command: &str) -> Command {
    let program = leaderelect(run(lock, &job(&TIMINGS, name), &["sh", "-c", command]));
    let mut shell = Command::new("sh");
    shell.args(["-c", r#"sleep "$0"; exec "$@""#, &seconds.to_string()]);
    shell.arg(program.get_program()).args(program.get_args());
    for (variable, value) in program.get_envs() {
        match value {
            Some(value) => shell.env(variable, value),
            None => shell.env_remove(variable),
        };
    }
    shell
}

#[test]
fn ten_hosts_run_a_job_once_in_each_night() {
    let place = Place::new();
    let (lock, log) = (place.lock("nightly"), place.path("log"));
    let command = format!("echo ran >>{}; sleep 0.2", log.display());
    for night in 0..5_u32 {
        let name = format!("night-{night}");
        // Some hosts come when the job is done.
        let hosts: Vec<_> = (0..10_u32)
            .map(|host| Running::of(late(f64::from((host * 7 + night * 3) % 10) / 15.0, &lock, &name, &command)))
            .collect();
        let ends: Vec<_> = hosts.into_iter().map(Running::end).collect();
        assert!(ends.iter().all(|end| end.code == Some(0)), "{ends:?}");
        let idle = ends.iter().filter(|end| end.stderr.contains("was done before; the command was not run"));
        assert_eq!(idle.count(), 9, "{ends:?}");
        assert_eq!(fs::read_to_string(&log).unwrap().lines().count(), night as usize + 1);
    }
    assert_eq!(place.record("nightly").completed_jobs()[0], "night-4");
}

#[test]
fn a_job_that_failed_is_run_by_the_next_host() {
    let place = Place::new();
    let lock = place.lock("nightly");
    let options = job(&LONG, "today");
    assert_eq!(end(&run(&lock, &options, &["sh", "-c", "exit 3"])).code, Some(3));
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
    let next = end(&run(&lock, &job(&TIMINGS, "today"), &["echo", "ran"]));
    assert_eq!((next.code, next.stdout.as_str()), (Some(0), "ran\n"), "{next:?}");
    assert_eq!(place.record("nightly").leader_transitions, 1);
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
    let next = end(&run(&lock, &job(&TIMINGS, "today"), &["echo", "ran"]));
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
