//! The file store between processes that are killed, stopped, or short of resources.

use std::collections::{BTreeMap, VecDeque};
use std::fs::{self, Permissions};
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

const COUNTER: &str = env!("CARGO_BIN_EXE_file_counter");

/// A time limit for steps that would otherwise hang the test.
const PATIENCE: Duration = Duration::from_secs(60);

const FOREVER: u64 = u64::MAX;

/// A counting process. Killed when dropped.
struct Counter {
    process: Child,
    counts: Receiver<u64>,
    last: u64,
}

impl Counter {
    fn start(directory: &Path, writer: &str, times: u64) -> Self {
        let mut process = Command::new(COUNTER)
            .args([directory.as_os_str(), writer.as_ref(), times.to_string().as_ref()])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (sender, counts) = mpsc::channel();
        let stdout = BufReader::new(process.stdout.take().unwrap());
        thread::spawn(move || {
            // A kill cut off a last line without an end, so the count in it was not acknowledged.
            stdout.lines().map_while(Result::ok).try_for_each(|line| sender.send(line.parse().unwrap()))
        });
        Self { process, counts, last: 0 }
    }

    /// Waits for this number of further acknowledged counts.
    fn wait_for(&mut self, more: usize) {
        for _ in 0..more {
            let count = self.counts.recv_timeout(PATIENCE).expect("a counter got nowhere");
            assert!(count > self.last, "it counted {} and then {count}", self.last);
            self.last = count;
        }
    }

    /// Discards the counts so far.
    fn catch_up(&mut self) {
        while let Ok(count) = self.counts.try_recv() {
            self.last = count;
        }
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.process), signal).unwrap();
    }

    /// Waits for the process to end, and returns the last count that it acknowledged.
    fn end(mut self) -> u64 {
        self.process.wait().unwrap();
        while let Ok(count) = self.counts.recv_timeout(PATIENCE) {
            self.last = count;
        }
        self.last
    }

    fn kill(self) -> u64 {
        self.signal(Signal::KILL);
        self.end()
    }
}

impl Drop for Counter {
    fn drop(&mut self) {
        // After a successful test, the process has already ended.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Returns the counts in the object. Every generation must be complete.
fn counts(directory: &Path) -> BTreeMap<String, u64> {
    // A writer may have put a newer generation in the place of the one that was found.
    let body = (0..100).find_map(|_| fs::read_to_string(newest(directory)).ok()).expect("a generation");
    body.lines()
        .map(|line| line.split_once('=').unwrap())
        .map(|(w, count)| (w.into(), count.parse().unwrap()))
        .collect()
}

/// Returns all files of the object.
fn files(directory: &Path) -> Vec<String> {
    let in_folder = |folder: &str| {
        let entries = fs::read_dir(directory.join(folder)).unwrap().map(Result::unwrap);
        let files = entries.filter(|entry| entry.file_type().unwrap().is_file());
        files.map(|entry| format!("{folder}/{}", entry.file_name().display())).collect::<Vec<_>>()
    };
    ["counter", "counter/@", "counter/@/tmp"].into_iter().flat_map(in_folder).collect()
}

fn newest(directory: &Path) -> PathBuf {
    let entries = fs::read_dir(directory.join("counter/@")).unwrap().map(|entry| entry.unwrap().file_name());
    let generations = entries.filter_map(|name| name.to_str().unwrap().parse::<u64>().ok());
    directory.join("counter/@").join(generations.max().unwrap().to_string())
}

#[test]
fn eight_processes_count_without_losing_one() {
    let directory = tempfile::tempdir().unwrap();
    let writers: Vec<String> = (0..8).map(|writer| format!("writer-{writer}")).collect();
    let counters: Vec<_> = writers.iter().map(|writer| Counter::start(directory.path(), writer, 100)).collect();
    for counter in counters {
        assert_eq!(counter.end(), 100);
    }
    assert_eq!(counts(directory.path()), writers.into_iter().map(|writer| (writer, 100)).collect());
    assert_eq!(newest(directory.path()).file_name().unwrap(), "800", "a write that was not counted took a number");
}

#[test]
fn processes_that_are_killed_lose_at_most_the_write_they_were_at() {
    let directory = tempfile::tempdir().unwrap();
    let start = |writer: String| (Counter::start(directory.path(), &writer, FOREVER), writer);
    let mut counters: VecDeque<_> = (0..4).map(|writer| start(writer.to_string())).collect();
    for round in 0..40 {
        let (mut counter, writer) = counters.pop_front().unwrap();
        // Counts were read shortly before, so the kill can hit any point of a write.
        counter.wait_for(1 + round % 7);
        let acknowledged = counter.kill();
        let written = counts(directory.path())[&writer];
        assert!((acknowledged..=acknowledged + 1).contains(&written), "{acknowledged} acknowledged, {written} written");
        counters.push_back(start(writer));
    }
}

#[test]
fn a_stopped_process_stops_nobody_else() {
    let directory = tempfile::tempdir().unwrap();
    let names = ["a", "b", "c"];
    let mut counters = names.map(|writer| Counter::start(directory.path(), writer, FOREVER));
    for round in 0..30 {
        let stopped = round % counters.len();
        counters[stopped].wait_for(1 + round % 5);
        counters[stopped].signal(Signal::STOP);
        for other in (0..counters.len()).filter(|other| *other != stopped) {
            counters[other].catch_up();
            counters[other].wait_for(5);
        }
        counters[stopped].catch_up();
        counters[stopped].signal(Signal::CONT);
        counters[stopped].wait_for(1);
    }
    let acknowledged = counters.map(Counter::kill);
    let written = counts(directory.path());
    for (writer, acknowledged) in names.into_iter().zip(acknowledged) {
        let written = written[writer];
        assert!((acknowledged..=acknowledged + 1).contains(&written), "{acknowledged} acknowledged, {written} written");
    }
}

/// A file size limit is the closest to a full disk that needs no permission to mount one: the write fails
/// half-way.
#[test]
fn a_write_that_does_not_fit_leaves_the_object_alone() {
    let directory = tempfile::tempdir().unwrap();
    assert_eq!(Counter::start(directory.path(), "a", 1).end(), 1);
    let error = fails(starved("trap '' XFSZ; ulimit -f 0", &[directory.path().to_str().unwrap(), "a", "1"]));
    assert!(error.contains("Rejected: cannot write file:///") && error.contains("raise its limit"), "{error}");
    assert_eq!(files(directory.path()), ["counter/@/1"]);
    assert_eq!(counts(directory.path())["a"], 1);
}

#[test]
fn a_process_without_files_to_spare_is_told_so() {
    let directory = tempfile::tempdir().unwrap();
    let error = fails(starved("ulimit -n 32", &[directory.path().to_str().unwrap(), "a", "1", "hoard"]));
    assert!(error.contains("too many files are open: raise the limit (ulimit -n)"), "{error}");
}

#[test]
fn a_read_only_directory_is_fatal_and_named() {
    // Permissions do not stop root. As root, the test runs the counter as the user nobody, who has no access to
    // root's folders.
    let directory = tempfile::tempdir().unwrap();
    let program = directory.path().join("file-counter");
    fs::copy(COUNTER, &program).unwrap();
    let store = directory.path().join("store");
    assert_eq!(Counter::start(&store, "a", 1).end(), 1);
    for path in ["", "store", "store/counter", "store/counter/@", "store/counter/@/tmp"] {
        fs::set_permissions(directory.path().join(path), Permissions::from_mode(0o555)).unwrap();
    }
    let mut command = Command::new(program);
    command.args([store.to_str().unwrap(), "a", "1"]);
    if rustix::process::geteuid().is_root() {
        command.uid(65_534);
    }
    let error = fails(command);
    assert!(error.contains("Fatal: cannot write file:///") && error.contains("permission denied"), "{error}");
    assert_eq!(counts(&store)["a"], 1);
}

/// The counter, started by a shell that first reduces a resource limit.
fn starved(limits: &str, arguments: &[&str]) -> Command {
    let mut command = Command::new("sh");
    command.args(["-c", &format!("{limits}; exec \"$0\" \"$@\""), COUNTER]).args(arguments);
    command
}

/// Runs a counter that must fail, and returns its error message.
fn fails(mut command: Command) -> String {
    let output = command.output().unwrap();
    let error = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{error}");
    assert_eq!(output.stdout, b"", "nothing was counted");
    error
}
