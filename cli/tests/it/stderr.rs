//! Standard error that takes nothing: a full disk, a reader that is gone, a pipe that nobody reads.

use std::fs::{File, OpenOptions};
use std::io::{self, PipeReader, PipeWriter, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Command, Stdio};

use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::process::Signal;

use crate::support::{LONG, Lines, Place, Running, end_of_with_stderr, leaderelect, record, run};

/// Fills a pipe until nothing more fits.
pub(crate) fn fill(writer: &mut PipeWriter) {
    let flags = fcntl_getfl(&*writer).unwrap();
    fcntl_setfl(&*writer, flags | OFlags::NONBLOCK).unwrap();
    while writer.write(&[b'.'; 4096]).is_ok() {}
    while writer.write(b".").is_ok() {}
    fcntl_setfl(&*writer, flags).unwrap();
}

/// A pipe that stays full as long as nobody reads from the reader.
fn full_pipe() -> (PipeReader, PipeWriter) {
    let (reader, mut writer) = io::pipe().unwrap();
    fill(&mut writer);
    (reader, writer)
}

fn deaf_pipe() -> PipeWriter {
    let (reader, writer) = io::pipe().unwrap();
    drop(reader);
    writer
}

fn full_disk() -> File {
    OpenOptions::new().write(true).open("/dev/full").unwrap()
}

/// `run`, with a log of every request on `stderr`.
fn logging(place: &Place, options: &[&str], command: &[&str], stderr: impl Into<Stdio>) -> Command {
    let lock = place.lock("a");
    let mut leaderelect = leaderelect(run(&lock, &[&LONG[..], &["-vv"], options].concat(), command));
    leaderelect.stderr(stderr);
    leaderelect
}

#[test]
fn a_stderr_that_fails_ends_nothing_and_changes_no_exit_code() {
    for stderr in [Stdio::from(full_disk()), deaf_pipe().into()] {
        let place = Place::new();
        let status = logging(&place, &[], &["sh", "-c", "exit 3"], stderr).status().unwrap();
        assert_eq!(status.code(), Some(3));
        assert!(place.record("a").is_released());
    }
}

#[test]
fn a_command_that_cannot_be_run_has_its_code_even_if_nobody_can_be_told() {
    let place = Place::new();
    let path = place.path("not-executable");
    std::fs::write(&path, "").unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
    let status = logging(&place, &[], &[path.to_str().unwrap()], full_disk()).status().unwrap();
    assert_eq!(status.code(), Some(126));
}

/// A leader whose standard error takes nothing, and whose command has begun.
fn leader(place: &Place, stderr: PipeWriter) -> (std::process::Child, Lines) {
    let mut command = logging(place, &[], &["sh", "-c", "echo up; exec sleep 1000"], stderr);
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut stdout = Lines::of(child.stdout.take().unwrap());
    stdout.wait_for(|line| (line == "up").then_some(())).unwrap();
    (child, stdout)
}

#[test]
fn a_leader_whose_stderr_is_full_renews_on_and_ends_when_it_is_told_to() {
    let place = Place::new();
    let (_reader, writer) = full_pipe();
    let (mut child, mut stdout) = leader(&place, writer);
    let mut watch = Running::start(&["watch", "--renewals", "--interval", "20ms", &place.lock("a")]);
    // Each renewal is logged, so one that waited for the log would be the last.
    for _ in 0..20 {
        watch.wait_for_line("renewed the lease");
    }
    rustix::process::kill_process(rustix::process::Pid::from_child(&child), Signal::TERM).unwrap();
    stdout.rest();
    assert_eq!(child.wait().unwrap().code(), Some(128 + 15));
    assert_eq!((place.record("a").is_released(), place.record("a").leader_transitions), (true, 1));
}

#[test]
fn a_command_is_told_to_stop_even_if_nobody_reads_that_it_is() {
    let place = Place::new();
    let (_reader, writer) = full_pipe();
    let (mut child, mut stdout) = leader(&place, writer);
    place.overwrite("a", &record("thief", "1h", 7, "1"));
    stdout.rest();
    assert_eq!(child.wait().unwrap().code(), Some(79));
}

#[test]
fn what_was_said_before_somebody_reads_is_not_lost() {
    let place = Place::new();
    let (reader, writer) = full_pipe();
    let (mut child, mut stdout) = leader(&place, writer);
    let mut watch = Running::start(&["watch", "--renewals", "--interval", "20ms", &place.lock("a")]);
    watch.wait_for_line("renewed the lease");
    let mut lines = Lines::of(reader);
    // What was written before is all there.
    lines.wait_for(|line| line.contains("leading with fencing token 1").then_some(())).unwrap();
    rustix::process::kill_process(rustix::process::Pid::from_child(&child), Signal::TERM).unwrap();
    stdout.rest();
    child.wait().unwrap();
    assert!(lines.rest().contains("released the lease"));
}

#[test]
fn an_error_is_told_before_the_end() {
    let place = Place::new();
    place.overwrite("a", "no record");
    let ended = end_of_with_stderr(leaderelect(["release", "--force", "--yes", &place.lock("a")]));
    assert_eq!(ended.code, Some(65), "{ended:?}");
    assert!(ended.stderr.starts_with("leaderelect: error: "), "{ended:?}");
}
