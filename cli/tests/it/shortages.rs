//! A system that has no thread, no process, no descriptor or no room in its files for a while.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Command, Stdio};

use leaderelection_integration_tests::servers::racy_s3::RacyS3;
use rustix::process::{Resource, Signal, getrlimit, getuid};

use crate::fake_s3::with_keys;
use crate::metrics::ask;
use crate::support::wait_until;
use crate::support::{LONG, PROGRAM, Place, Running, TELLING, run};

/// A user whose processes are counted. Root may have any number.
const NOBODY: &str = "65534";

const UP: [&str; 3] = ["sh", "-c", "echo up; exec sleep 1000"];

/// A program, as a user who has limits.
fn as_nobody(program: &str) -> Command {
    if !getuid().is_root() {
        return Command::new(program);
    }
    let mut command = Command::new("setpriv");
    command.args(["--reuid", NOBODY, "--regid", NOBODY, "--clear-groups", "--inh-caps=-all", program]);
    command
}

fn limited(args: &[&str]) -> Command {
    let mut command = as_nobody(PROGRAM);
    command.args(["__start", "--parent", &std::process::id().to_string(), "--", PROGRAM]).args(args);
    for name in TELLING {
        command.env_remove(name);
    }
    command.stdin(Stdio::null());
    command
}

/// A directory in which that user may write.
fn open_place() -> Place {
    let place = Place::new();
    fs::set_permissions(place.path(""), fs::Permissions::from_mode(0o777)).unwrap();
    place
}

/// The limit on what a running process may have: nothing more than it has.
struct Shortage {
    option: &'static str,
    pid: String,
    before: String,
}

impl Shortage {
    fn of(option: &'static str, resource: Resource, running: &Running) -> Self {
        // Both have inherited it.
        let before = getrlimit(resource).current.map_or_else(|| "unlimited".to_owned(), |limit| limit.to_string());
        let shortage = Self { option, pid: running.pid().to_string(), before };
        shortage.set("0");
        shortage
    }

    /// Only the same user may set the limits of a process, and only the lower one in both directions.
    fn set(&self, limit: &str) {
        let limit = format!("--{}={limit}:", self.option);
        let mut command = as_nobody("prlimit");
        assert!(command.args(["--pid", &self.pid, &limit]).status().unwrap().success(), "{limit}");
    }

    fn ends(self) {
        self.set(&self.before);
    }
}

#[test]
fn a_leader_renews_over_a_new_connection_without_a_thread() {
    let server = RacyS3::closing();
    let lock = format!("s3://bucket/a?region=r&path_style=true&endpoint=http://localhost:{}", server.port());
    // The runtime ends a thread that has been idle for ten seconds, unless it is asked for more.
    let options =
        ["--lease-duration", "60s", "--renew-deadline", "40s", "--retry-period", "11s", "--request-timeout", "10s"];
    let mut running = Running::of(with_keys(limited(&run(&lock, &options, &UP))));
    running.wait_for("up");
    let shortage = Shortage::of("nproc", Resource::Nproc, &running);
    let object = format!("{}/bucket/a", server.url());
    let (_, before) = ask(&object);
    wait_until("a renewal", || ask(&object).1 != before);
    shortage.ends();
    running.signal(Signal::TERM);
    let ended = running.end();
    assert_eq!(ended.code, Some(128 + 15), "{ended:?}");
    assert!(!ended.stderr.contains("panicked"), "{ended:?}");
    assert!(ask(&object).1.contains(r#""holderIdentity":"""#), "{ended:?}");
}

#[test]
fn a_command_is_started_when_there_is_room_for_it_again() {
    for campaign in [&[][..], &["--campaign"]] {
        let place = open_place();
        let lock = place.lock("a");
        let mut holder = Running::of(limited(&run(&lock, &[&LONG[..], &["--identity", "node-1"]].concat(), &UP)));
        holder.wait_for("up");
        let mut next = Running::of(limited(&run(&lock, &[&LONG[..], campaign].concat(), &UP)));
        next.wait_for_note("node-1 leads");
        let shortage = Shortage::of("nproc", Resource::Nproc, &next);
        holder.signal(Signal::TERM);
        next.wait_for_note("cannot start the command; retrying");
        shortage.ends();
        next.wait_for("up");
        assert!(!place.record("a").is_released());
        next.signal(Signal::TERM);
        assert_eq!(next.end().code, Some(128 + 15));
    }
}

#[test]
fn a_request_without_a_descriptor_or_room_is_repeated() {
    for (option, resource, said) in
        [("nofile", Resource::Nofile, "too many files are open"), ("fsize", Resource::Fsize, "files of this size")]
    {
        let place = open_place();
        let lock = place.lock("a");
        let mut running = Running::of(limited(&run(&lock, &LONG, &UP)));
        running.wait_for("up");
        let shortage = Shortage::of(option, resource, &running);
        running.wait_for_note(said);
        shortage.ends();
        let failed = place.record("a").renew_time;
        wait_until("a renewal", || place.record("a").renew_time != failed);
        running.signal(Signal::TERM);
        assert_eq!(running.end().code, Some(128 + 15), "{said}");
    }
}

/// An allocation that fails ends a program. What it has started does not outlive it, and its lease ends by itself.
#[test]
fn a_program_without_memory_ends_with_its_command() {
    let place = open_place();
    let lock = place.lock("a");
    let mut running = Running::of(limited(&run(&lock, &LONG, &["sh", "-c", "echo up; exec sleep 1000"])));
    running.wait_for("up");
    let shortage = Shortage::of("as", Resource::As, &running);
    // The command holds this output.
    let ended = running.end();
    assert_eq!(ended.code, None, "ended by a signal: {ended:?}");
    assert!(ended.stderr.contains("killed the command: leaderelect died"), "{ended:?}");
    assert!(!place.record("a").is_released(), "{ended:?}");
    drop(shortage);
}
