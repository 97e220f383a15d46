//! The watchdog by itself, and what it is told.

use std::io::{IoSlice, Read as _};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::process::{Command, Stdio};
use std::time::Duration;

use leaderelection::clock::{Clock as _, LocalInstant, SystemClock};
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
use rustix::process::Signal;

use crate::pipe::Pipe;
use crate::support::{Ended, PATIENCE, PROGRAM, Place, Running, run};

/// A watchdog whose `run` says nothing.
fn watchdog(start_until: LocalInstant, live_until: LocalInstant, command: &[&str]) -> (Running, UnixStream) {
    let (ours, theirs) = UnixStream::pair().unwrap();
    ours.set_read_timeout(Some(PATIENCE)).unwrap();
    let nothing = std::fs::File::open("/dev/null").unwrap();
    let passed = [nothing.as_fd()];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut message = SendAncillaryBuffer::new(&mut space);
    assert!(message.push(SendAncillaryMessage::ScmRights(&passed)));
    sendmsg(&ours, &[IoSlice::new(&[0])], &mut message, SendFlags::empty()).unwrap();
    let words: String = command.iter().map(|word| format!("{}:{word}", word.len())).collect();
    let mut watchdog = Command::new(PROGRAM);
    watchdog
        .args(["__watchdog", "--start-until", &start_until.as_nanos().to_string()])
        .args(["--live-until", &live_until.as_nanos().to_string()])
        .env("LEADERELECT_COMMAND_0", words)
        .stdin(Stdio::from(OwnedFd::from(theirs)))
        .process_group(0);
    (Running::of(watchdog), ours)
}

fn end_of((running, mut run): (Running, UnixStream)) -> Ended {
    // The socket closes with the watchdog.
    run.read_to_end(&mut Vec::new()).unwrap();
    running.end()
}

#[test]
fn a_command_that_comes_too_late_is_not_run() {
    let now = SystemClock.now();
    let hour = now + Duration::from_secs(3600);
    let ended = end_of(watchdog(now, hour, &["echo", "led"]));
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(0), ""), "{ended:?}");
    let ended = end_of(watchdog(hour, hour, &["echo", "led"]));
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(0), "led"), "{ended:?}");
}

#[test]
fn the_first_deadline_counts_even_if_nobody_ever_says_a_word() {
    let place = Place::new();
    let pipe = Pipe::new(&place);
    let soon = SystemClock.now() + Duration::from_secs(5);
    let command = "exec 4>\"$0\" >/dev/null 2>&1; trap '' TERM; echo up >&4; for i in $(seq 300); do sleep 1; done";
    let watchdog = watchdog(soon, soon, &["sh", "-c", command, &pipe.path]);
    pipe.wait_for_start();
    pipe.wait_for_end();
    let ended = end_of(watchdog);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let told = ended.stderr.split_once("killed the command: its term was not renewed in time deadline=\"20");
    assert!(told.is_some_and(|(_, times)| times.contains("Z\" killed=\"20") && times.contains(" took=")), "{ended:?}");
}

#[test]
fn a_signal_to_everybody_does_not_end_it() {
    let hour = SystemClock.now() + Duration::from_secs(3600);
    let (mut running, run) = watchdog(hour, hour, &["sh", "-c", "echo up; exec sleep 300"]);
    running.wait_for("up");
    for signal in [Signal::TERM, Signal::INT, Signal::HUP, Signal::QUIT, Signal::USR1] {
        running.signal(signal);
    }
    drop(run);
    let ended = running.end();
    assert_eq!(ended.code, Some(0), "{ended:?}");
}

#[test]
fn a_renewal_counts_at_once() {
    let place = Place::new();
    let lock = place.lock("a");
    let timings = ["--lease-duration", "10s", "--renew-deadline", "9s", "--retry-period", "5s"];
    let mut running = Running::start(&run(&lock, &timings, &["sh", "-c", "echo up; sleep 11; echo done"]));
    running.wait_for("up");
    // The renewal after 5 s fails and is soon repeated. The renewal that follows comes after the old deadline of the watchdog,
    // which is at 9.75 s.
    place.cut_off("locks");
    running.wait_for_note("trying again");
    place.put_back("locks");
    let ended = running.end();
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(0), "up\ndone"), "{ended:?}");
}
