//! Commands on a disk that does not answer.

use std::fs;
use std::process::Command;
use std::time::{Duration, Instant};

#[cfg(target_os = "linux")]
use rustix::process::Signal;

use crate::support::{LONG, Place, end, run};
#[cfg(target_os = "linux")]
use crate::support::{Running, TIMINGS};
#[cfg(target_os = "linux")]
use crate::uninterruptible::Hung;

/// More than a busy machine needs, and less than a person waits.
const SOON: Duration = Duration::from_secs(30);

/// A pipe in the place of the lock's object: it would keep waiting whoever opens it as a file.
fn pipe_instead_of(place: &Place, name: &str) {
    let generations = place.path("locks").join(name).join("@");
    fs::create_dir_all(&generations).unwrap();
    assert!(Command::new("mkfifo").arg(generations.join("1")).status().unwrap().success());
}

#[test]
fn a_pipe_in_the_place_of_the_object_keeps_nobody_waiting() {
    let place = Place::new();
    pipe_instead_of(&place, "a");
    let lock = place.lock("a");
    let began = Instant::now();
    for ended in [end(&["status", &lock]), end(&run(&lock, &LONG, &["true"]))] {
        assert_eq!(ended.code, Some(65), "{ended:?}");
        let said = format!("{}{}", ended.stdout, ended.stderr);
        assert!(said.contains("/a/@/1 is not a file of at most 65536 bytes: move it away"), "{said}");
    }
    assert!(began.elapsed() < SOON, "{:?}", began.elapsed());
}

#[cfg(target_os = "linux")]
#[test]
fn a_disk_that_hangs_keeps_nobody_from_ending() {
    let place = Place::new();
    let lock = place.lock("a");
    let mut leader = Running::start(&run(&lock, &TIMINGS, &["sh", "-c", "echo up; exec sleep 1000"]));
    leader.wait_for("up");
    let Some(_hung) = Hung::at(place.path("locks")) else { return };
    leader.signal(Signal::TERM);
    let began = Instant::now();
    let ended = leader.end();
    assert_eq!(ended.code, Some(143), "{ended:?}");
    for ended in [
        end(&["status", "--request-timeout", "1s", &lock]),
        end(&["list", "--request-timeout", "1s", &place.prefix()]),
        end(&run(&lock, &TIMINGS, &["true"])),
    ] {
        assert_eq!(ended.code, Some(69), "{ended:?}");
        assert!(format!("{}{}", ended.stdout, ended.stderr).contains("no answer within "), "{ended:?}");
    }
    assert!(began.elapsed() < SOON, "{:?}", began.elapsed());
}
