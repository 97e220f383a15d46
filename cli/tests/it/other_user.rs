//! Processes that may not be signalled, because they are another user's.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Command, Stdio};

use rustix::process::{Pid, Signal, getuid, kill_process};

use crate::pipe::Pipe;
use crate::support::{LONG, PROGRAM, Place, Running, TELLING, TIMINGS, record, run};

/// A user without rights.
const NOBODY: &str = "65534";

/// A directory where nobody can work, and a program with which nobody becomes root.
struct Rights {
    place: Place,
    becomes_root: String,
}

impl Rights {
    /// `None`, with a word about it, if the tests run without rights themselves.
    fn new() -> Option<Self> {
        if !getuid().is_root() {
            println!("skipped: only root can make a program that gains rights");
            return None;
        }
        let place = Place::new();
        fs::set_permissions(place.path(""), fs::Permissions::from_mode(0o777)).unwrap();
        let program = place.path("becomes-root");
        fs::copy("/usr/bin/setpriv", &program).unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o4755)).unwrap();
        let becomes_root = program.to_str().unwrap().to_owned();
        Some(Self { place, becomes_root })
    }

    /// A leader without rights, whose command runs `script`. `$1` becomes root, and `$0` is a pipe.
    fn leader(&self, pipe: &Pipe, options: &[&str], script: &str) -> Running {
        fs::set_permissions(&pipe.path, fs::Permissions::from_mode(0o666)).unwrap();
        let lock = self.place.lock("a");
        let mut command = Command::new("setpriv");
        let parent = std::process::id().to_string();
        command.args(["--reuid", NOBODY, "--regid", NOBODY, "--clear-groups", "--inh-caps=-all"]);
        command.args([PROGRAM, "__start", "--parent", &parent, "--", PROGRAM]).stdin(Stdio::null());
        for name in TELLING {
            command.env_remove(name);
        }
        // Another process keeps the outputs open for longer than the program.
        let script = format!("exec 4>\"$0\" >/dev/null 2>&1; {script}");
        command.args(run(&lock, options, &["sh", "-c", &script, &pipe.path, &self.becomes_root]));
        let running = Running::of(command);
        pipe.wait_for_start();
        running
    }
}

/// Leaves a process of root's behind, in a session of its own.
const LEAVES: &str = "setsid \"$1\" --reuid 0 --clear-groups sh -c 'echo up >&4; exec sleep 300' & wait";

/// The text of a message before it names processes.
const CANNOT_END: &str = "cannot kill processes of the command; the lease is kept";

/// Ends the process that a message names first.
fn end_named(note: &str) {
    let (before, rest) = note.split_once(" (").unwrap();
    assert!(rest.contains(", user root)"), "{note}");
    let (_, pid) = before.rsplit_once(|letter: char| !letter.is_ascii_digit()).unwrap_or(("", before));
    let pid = Pid::from_raw(pid.parse().unwrap()).unwrap();
    kill_process(pid, Signal::KILL).unwrap();
}

#[test]
fn the_lease_is_kept_while_they_run() {
    let Some(rights) = Rights::new() else { return };
    let pipe = Pipe::new(&rights.place);
    let mut running = rights.leader(&pipe, &LONG, LEAVES);
    running.signal(Signal::TERM);
    let note = running.wait_for_note(CANNOT_END);
    assert!(!rights.place.record("a").is_released());
    end_named(&note);
    pipe.wait_for_end();
    let ended = running.end();
    assert_eq!(ended.code, Some(143), "{ended:?}");
    assert!(rights.place.record("a").is_released());
}

#[test]
fn whoever_leaves_them_behind_does_not_release_and_has_a_code_of_its_own() {
    let Some(rights) = Rights::new() else { return };
    let pipe = Pipe::new(&rights.place);
    let mut running = rights.leader(&pipe, &LONG, LEAVES);
    running.signal(Signal::TERM);
    let note = running.wait_for_note(CANNOT_END);
    running.signal(Signal::TERM);
    let error = running.wait_for_note("error: cannot kill ");
    assert!(error.contains(", user root); the lease was not released"), "{error}");
    assert_eq!(running.wait().code(), Some(80));
    assert!(!rights.place.record("a").is_released());
    end_named(&note);
    pipe.wait_for_end();
}

fn a_loss_that_leaves_them_has_the_same_code(options: &[&str]) {
    let Some(rights) = Rights::new() else { return };
    let pipe = Pipe::new(&rights.place);
    let mut running = rights.leader(&pipe, options, LEAVES);
    rights.place.overwrite("a", &record("thief", "1s", 7, "1"));
    let error = running.wait_for_note("error: cannot kill ");
    assert_eq!(running.wait().code(), Some(80));
    assert_eq!(rights.place.record("a").holder_identity, "thief");
    end_named(&error);
    pipe.wait_for_end();
}

#[test]
fn a_loss_that_leaves_them_has_the_same_code_in_one_term() {
    a_loss_that_leaves_them_has_the_same_code(&TIMINGS);
}

#[test]
fn a_loss_that_leaves_them_has_the_same_code_in_a_campaign() {
    a_loss_that_leaves_them_has_the_same_code(&[&TIMINGS[..], &["--campaign"]].concat());
}

#[test]
fn a_command_that_cannot_be_signalled_keeps_the_lease_until_it_ends() {
    let Some(rights) = Rights::new() else { return };
    let pipe = Pipe::new(&rights.place);
    let becomes = "exec \"$1\" --reuid 0 --clear-groups sh -c 'echo up >&4; exec sleep 300'";
    let mut running = rights.leader(&pipe, &LONG, becomes);
    running.signal(Signal::TERM);
    let note = running.wait_for_note("cannot forward a signal to the command; the lease is kept while it runs");
    assert!(!rights.place.record("a").is_released());
    end_named(&note);
    pipe.wait_for_end();
    let ended = running.end();
    assert_eq!(ended.code, Some(128 + 9), "{ended:?}");
    assert!(rights.place.record("a").is_released());
}

#[test]
fn a_command_that_cannot_be_signalled_is_left_behind_at_the_second_signal() {
    let Some(rights) = Rights::new() else { return };
    let pipe = Pipe::new(&rights.place);
    let becomes = "exec \"$1\" --reuid 0 --clear-groups sh -c 'echo up >&4; exec sleep 300'";
    let mut running = rights.leader(&pipe, &LONG, becomes);
    running.signal(Signal::TERM);
    running.wait_for_note("cannot forward a signal to the command");
    running.signal(Signal::TERM);
    let error = running.wait_for_note("error: cannot kill ");
    assert_eq!(running.wait().code(), Some(80));
    assert!(!rights.place.record("a").is_released());
    end_named(&error);
    pipe.wait_for_end();
}
