//! `run --slots`: several holders at a time, each with a number.

use std::collections::BTreeSet;
use std::fs::OpenOptions;
use std::time::Instant;

use rustix::process::Signal;
use serde_json::Value;

use crate::pipe::Pipe;
use crate::support::wait_until;
use crate::support::{LEASE, LONG, Lines, Place, Running, TIME_TO_KILL, TIMINGS, end, run};

/// A named pipe into which every command writes one line.
struct Board {
    path: String,
    lines: Lines,
}

/// The line of one command.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Started {
    name: String,
    slot: u32,
    token: u64,
    lock: String,
}

impl Board {
    fn new(place: &Place) -> Self {
        let path = place.path("board");
        rustix::fs::mkfifoat(rustix::fs::CWD, &path, rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR).unwrap();
        // With a writer of its own, the pipe never ends.
        let pipe = OpenOptions::new().read(true).write(true).open(&path).unwrap();
        Self { path: path.to_str().unwrap().to_owned(), lines: Lines::of(pipe) }
    }

    /// Starts a process that competes for one of the slots.
    fn start(&self, place: &Place, name: &str, more: &[&str]) -> Running {
        const WORK: &str = "echo $LEADERELECTION_IDENTITY $LEADERELECTION_SLOT $LEADERELECTION_FENCING_TOKEN \
                            $LEADERELECTION_LOCK > \"$0\"; exec sleep 1000";
        let options = [&["--identity", name][..], more].concat();
        Running::start(&run(&place.file("workers"), &options, &["sh", "-c", WORK, &self.path]))
    }

    fn next(&mut self) -> Started {
        let line = self.lines.wait_for(|line| Some(line.to_owned())).unwrap();
        let words: Vec<&str> = line.split(' ').collect();
        let [name, slot, token, lock] = words[..] else { panic!("{line}") };
        let (slot, token) = (slot.parse().unwrap(), token.parse().unwrap());
        Started { name: name.to_owned(), slot, token, lock: lock.to_owned() }
    }
}

#[test]
fn a_waiting_process_takes_the_slot_of_one_that_is_gone() {
    let place = Place::new();
    let mut board = Board::new(&place);
    let options = [&TIMINGS[..], &["--slots", "3"]].concat();
    let mut all: Vec<(String, Running)> = (0..5)
        .map(|number| {
            let name = format!("node-{number}");
            let running = board.start(&place, &name, &options);
            (name, running)
        })
        .collect();
    let mut held: Vec<Started> = (0..3).map(|_| board.next()).collect();
    assert_eq!(held.iter().map(|one| one.slot).collect::<BTreeSet<_>>(), BTreeSet::from([0, 1, 2]), "{held:?}");
    for one in &held {
        assert_eq!(one.lock, place.file(&format!("workers/locks/slot/{}", one.slot)));
    }
    let is_holder = |held: &[Started], name: &str| held.iter().any(|one| one.name == name);
    for (name, running) in &mut all {
        if !is_holder(&held, name) {
            running.wait_for_note("waiting: all slots are held by ");
        }
    }

    for signal in [Signal::KILL, Signal::TERM] {
        let gone = held.remove(0);
        let index = all.iter().position(|(name, _)| *name == gone.name).unwrap();
        let sent_at = Instant::now();
        all[index].1.signal(signal);
        let next = board.next();
        let took = sent_at.elapsed();
        assert_eq!(next.slot, gone.slot, "{gone:?} {next:?}");
        assert!(
            next.token > gone.token && next.name != gone.name && !is_holder(&held, &next.name),
            "{gone:?} {next:?}"
        );
        let limit = if signal == Signal::KILL { LEASE * 3 } else { LEASE };
        assert!(took < limit, "{signal:?}: {took:?}");
        let (_, running) = all.remove(index);
        let code = if signal == Signal::KILL { None } else { Some(143) };
        assert_eq!(running.end().code, code);
        held.push(next);
    }
}

#[test]
fn the_same_is_seen_from_outside() {
    let place = Place::new();
    let mut board = Board::new(&place);
    let options = [&LONG[..], &["--slots", "2"]].concat();
    let first = board.start(&place, "node-1", &options);
    let one = board.next();
    let _second = board.start(&place, "node-2", &options);
    let two = board.next();
    // On a slow machine, the first process may win the second slot before the first one.
    assert_eq!((one.name.as_str(), two.name.as_str(), one.slot + two.slot), ("node-1", "node-2", 1));

    let ended = end(&["list", "-o", "json", &place.file("workers/")]);
    let locks: Vec<Value> = ended.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let of = |started: &Started| locks.iter().find(|lock| lock["lock"] == started.lock.as_str()).unwrap();
    assert_eq!((locks.len(), &of(&one)["holder"], &of(&two)["holder"]), (2, &"node-1".into(), &"node-2".into()));
    let session = of(&one)["session"]["url"].as_str().unwrap().to_owned();

    let ended = end(&["status", "-o", "json", "--watch-for", "60s", &one.lock]);
    let status: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!((&status["holder"], &status["observed"]["expired"]), (&"node-1".into(), &false.into()), "{status}");

    // The end of a living session: its command is ended, and the exit code says that leadership was lost.
    let ended = end(&["release", "--force", "--yes", &session]);
    assert!(ended.code == Some(0) && ended.stderr.contains("leads 1 lock"), "{ended:?}");
    let ended = first.end();
    assert_eq!(ended.code, Some(79), "{ended:?}");
    let note = format!("holding slot {} with fencing token {}", one.slot, one.token);
    assert!(ended.stderr.contains(&note), "{ended:?}");
}

#[test]
fn a_slot_is_handed_over_by_an_operator() {
    let place = Place::new();
    let mut board = Board::new(&place);
    // The holder reads its slot once in a lease.
    let timings = ["--lease-duration", "10s", "--renew-deadline", "8s", "--retry-period", "200ms"];
    let options = [&timings[..], &["--slots", "1", "--campaign"]].concat();
    let _first = board.start(&place, "node-1", &options);
    let one = board.next();
    let mut second = board.start(&place, "node-2", &options);
    second.wait_for_note("waiting: the slot is held by node-1");
    let ended = end(&["transfer", "--yes", "--to", "node-2", "--wait-for", "60s", &one.lock]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let two = board.next();
    assert_eq!((two.name.as_str(), two.slot, two.token), ("node-2", 0, one.token + 1));
}

#[test]
fn who_does_not_wait_takes_a_free_slot_or_gives_up() {
    let place = Place::new();
    let mut board = Board::new(&place);
    let url = place.file("workers");
    let options = [&LONG[..], &["--slots", "2"]].concat();
    let _first = board.start(&place, "node-1", &options);
    let other = 1 - board.next().slot;
    let no_wait = [&options[..], &["--no-wait"]].concat();
    let ended = end(&run(&url, &no_wait, &["sh", "-c", "echo slot $LEADERELECTION_SLOT"]));
    assert_eq!((ended.code, ended.stdout), (Some(0), format!("slot {other}\n")), "{}", ended.stderr);
    let _second = board.start(&place, "node-2", &options);
    board.next();
    let ended = end(&run(&url, &no_wait, &["echo", "led"]));
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(75), ""), "{ended:?}");
    let names = ["node-1", "node-2"].map(|name| ended.stderr.contains(name));
    assert!(ended.stderr.contains("all 2 slots of ") && names == [true; 2], "{ended:?}");
    assert!(ended.stderr.contains("--wait-timeout 2m instead of --no-wait"), "{ended:?}");
    let patient = [&options[..], &["--wait-timeout", "1s"]].concat();
    // The code is 69 while the time is over before the first poll of the slots.
    wait_until("the slots are seen in time", || {
        let ended = end(&run(&url, &patient, &["echo", "led"]));
        assert!(matches!(ended.code, Some(69 | 75)) && ended.stdout.is_empty(), "{ended:?}");
        assert!(ended.stderr.contains("timed out after 1s") || ended.code == Some(69), "{ended:?}");
        ended.code == Some(75)
    });
}

#[test]
fn a_command_that_ends_frees_its_slot_and_its_code_is_that_of_run() {
    let place = Place::new();
    let options = [&LONG[..], &["--slots", "1"]].concat();
    for token in 1..3 {
        let ended =
            end(&run(&place.file("workers"), &options, &["sh", "-c", "echo $LEADERELECTION_FENCING_TOKEN; exit 7"]));
        assert_eq!((ended.code, ended.stdout), (Some(7), format!("{token}\n")), "{}", ended.stderr);
    }
}

#[test]
fn a_campaign_runs_the_command_in_every_term() {
    let place = Place::new();
    let options = [&TIMINGS[..], &["--slots", "1", "--campaign"]].concat();
    // The second command goes on until it gets the signal.
    let work = "echo term $LEADERELECTION_FENCING_TOKEN slot $LEADERELECTION_SLOT
                [ $LEADERELECTION_FENCING_TOKEN = 1 ] || exec sleep 1000";
    // A clock that is read after the line may be read late.
    let began = Instant::now();
    let mut running = Running::start(&run(&place.file("workers"), &options, &["sh", "-c", work]));
    running.wait_for("term 1 slot 0");
    running.wait_for("term 2 slot 0");
    assert!(began.elapsed() > LEASE / 2, "the others go first for one lease");
    running.signal(Signal::TERM);
    assert_eq!(running.end().code, Some(143));
}

/// A command with a process of its own, which ignores SIGTERM.
const HOLDS: &str = "exec 4>\"$0\" 5>\"$0.held\" >/dev/null 2>&1; flock 5; \
                     (trap '' TERM; for i in $(seq 300); do sleep 1; done) & echo up >&4; wait";

#[test]
fn nothing_of_the_command_of_a_slot_outlives_a_run_that_is_killed() {
    let place = Place::new();
    let pipe = Pipe::new(&place);
    let options = [&LONG[..], &["--slots", "1"]].concat();
    let running = Running::start(&run(&place.file("workers"), &options, &["sh", "-c", HOLDS, &pipe.path]));
    pipe.wait_for_start();
    running.signal(Signal::KILL);
    pipe.wait_for_end();
    assert_eq!(running.end().code, None);
}

#[test]
fn a_stopped_run_has_its_command_killed_before_the_slot_moves() {
    let place = Place::new();
    let pipe = Pipe::new(&place);
    let options = [&TIME_TO_KILL[..], &["--slots", "1"]].concat();
    let url = place.file("workers");
    let running = Running::start(&run(&url, &options, &["sh", "-c", HOLDS, &pipe.path]));
    pipe.wait_for_start();
    let mut next = Running::start(&run(&url, &options, &pipe.next()));
    next.wait_for_note("waiting: the slot is held");
    running.signal(Signal::STOP);
    let next = next.end();
    assert_eq!(next.stdout, "led", "the command outlived its session: {next:?}");
    pipe.wait_for_end();
    running.signal(Signal::CONT);
    let ended = running.end();
    assert_eq!(ended.code, Some(79), "{ended:?}");
}

#[test]
fn the_work_ends_before_the_slot_is_free() {
    let place = Place::new();
    let pipe = Pipe::new(&place);
    let options = [&LONG[..], &["--slots", "1"]].concat();
    let url = place.file("workers");
    let running = Running::start(&run(&url, &options, &["sh", "-c", HOLDS, &pipe.path]));
    pipe.wait_for_start();
    let mut next = Running::start(&run(&url, &options, &pipe.next()));
    next.wait_for_note("waiting: the slot is held");
    running.signal(Signal::TERM);
    let next = next.end();
    assert_eq!(next.stdout, "led", "the slot was free before the work had ended: {next:?}");
    pipe.wait_for_end();
}

#[test]
fn a_plain_run_on_the_lock_of_a_slot_is_refused() {
    let place = Place::new();
    let mut board = Board::new(&place);
    let _first = board.start(&place, "node-1", &[&LONG[..], &["--slots", "1"]].concat());
    let one = board.next();
    let ended = end(&run(&one.lock, &LONG, &["echo", "led"]));
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(65), ""), "{ended:?}");
    assert!(ended.stderr.contains("through a session"), "{ended:?}");
}

#[test]
fn slots_that_cannot_be_are_refused() {
    let place = Place::new();
    for (count, text) in [("0", "--slots"), ("1001", "--slots"), ("x", "--slots")] {
        let ended = end(&run(&place.file("workers"), &["--slots", count], &["echo", "led"]));
        assert!(ended.code == Some(64) && ended.stderr.contains(text), "{ended:?}");
    }
}
