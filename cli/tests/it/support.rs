//! Processes that do not outlive the tests, and locks for them.

use std::fs;
use std::io::{BufRead as _, BufReader, Read};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::LazyLock;
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::{Duration, Instant};

use leaderelection::LeaderElectionRecord;
use leaderelection::implement::MAX_BODY_BYTES;
use rustix::fs::{CWD, RenameFlags, renameat_with};
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_leaderelect");

/// For what must not take long, and would otherwise hang the test.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// The lease of [`TIMINGS`].
pub(crate) const LEASE: Duration = Duration::from_secs(9);

/// Short, and yet no lease is lost on a machine whose disk stands still for some seconds.
pub(crate) const TIMINGS: [&str; 6] = ["--lease-duration", "9s", "--renew-deadline", "6s", "--retry-period", "200ms"];

/// For a command that must be killed before another candidate leads: `run` has 4 s for that, and the watchdog has 2 s.
pub(crate) const TIME_TO_KILL: [&str; 6] =
    ["--lease-duration", "12s", "--renew-deadline", "4s", "--retry-period", "200ms"];

/// The lease of [`TIME_TO_KILL`].
pub(crate) const LEASE_WITH_TIME_TO_KILL: Duration = Duration::from_secs(12);

/// For tests that wait for nothing to expire: a machine that is stuck for a while loses no lease.
pub(crate) const LONG: [&str; 6] = ["--lease-duration", "60s", "--renew-deadline", "40s", "--retry-period", "200ms"];

/// The client of whoever asks over a connection of its own. A client for each question would decode the certificates of all
/// authorities each time.
pub(crate) static CLIENT: LazyLock<reqwest::Client> =
    LazyLock::new(|| reqwest::Client::builder().pool_max_idle_per_host(0).build().unwrap());

/// A directory with locks.
pub(crate) struct Place(TempDir);

impl Place {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub(crate) fn lock(&self, name: &str) -> String {
        format!("file://{}/locks/{name}", self.0.path().display())
    }

    /// A lock in a directory that exists.
    pub(crate) fn file(&self, name: &str) -> String {
        format!("file://{}/{name}", self.0.path().display())
    }

    pub(crate) fn prefix(&self) -> String {
        format!("file://{}/locks/", self.0.path().display())
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Puts a file in the place of a directory, so that a store in the directory refuses. The two change places at once:
    /// readers would take a directory that is missing for a deletion, and a writer would create the directory again.
    pub(crate) fn cut_off(&self, directory: &str) {
        fs::write(self.aside(directory), "").unwrap();
        self.put_back(directory);
    }

    /// Puts the directory back that was cut off.
    pub(crate) fn put_back(&self, directory: &str) {
        let (here, aside) = (self.path(directory), self.aside(directory));
        renameat_with(CWD, here, CWD, aside, RenameFlags::EXCHANGE).unwrap();
    }

    fn aside(&self, directory: &str) -> PathBuf {
        self.path(&format!("{directory}.aside"))
    }

    fn generations(&self, key: &str) -> PathBuf {
        self.0.path().join(key).join("@")
    }

    /// The newest body of an object.
    fn newest(&self, key: &str) -> Option<(u64, Vec<u8>)> {
        let entries = fs::read_dir(self.generations(key)).ok()?;
        let names = entries.filter_map(|entry| entry.unwrap().file_name().to_str()?.parse::<u64>().ok());
        let newest = names.max()?;
        Some((newest, fs::read(self.generations(key).join(newest.to_string())).ok()?))
    }

    /// Returns `true` if there is an object at `key`.
    pub(crate) fn has(&self, key: &str) -> bool {
        self.newest(key).is_some()
    }

    /// The content of the object at `key`.
    pub(crate) fn body(&self, key: &str) -> Vec<u8> {
        // A newer one may take its place while it is read.
        let (_, body) = (0..100).find_map(|_| self.newest(key)).expect("no object");
        assert!(body.len() < MAX_BODY_BYTES);
        body
    }

    pub(crate) fn record(&self, name: &str) -> LeaderElectionRecord {
        LeaderElectionRecord::from_json(&self.body(&format!("locks/{name}")), Duration::MAX).unwrap()
    }

    /// Waits until nobody holds the lock any more.
    pub(crate) fn wait_until_free(&self, name: &str) {
        let mut watch = Running::start(&["watch", "-o", "json", "--interval", "20ms", &self.lock(name)]);
        while !watch.wait_for("").contains(r#""event":"free""#) {}
    }

    /// Puts something in the place of the lock's object, whoever holds it.
    pub(crate) fn overwrite(&self, name: &str, body: &str) {
        self.put(&format!("locks/{name}"), body);
    }

    /// Makes the object at `key` older.
    pub(crate) fn set_written(&self, key: &str, age: Duration) {
        let (newest, _) = self.newest(key).unwrap();
        let file = fs::File::options().write(true).open(self.generations(key).join(newest.to_string())).unwrap();
        file.set_modified(std::time::SystemTime::now() - age).unwrap();
    }

    /// Puts an object at `key`, whatever was there.
    pub(crate) fn put(&self, key: &str, body: &str) {
        fs::create_dir_all(self.generations(key)).unwrap();
        for _ in 0..1000 {
            let next = self.newest(key).map_or(0, |(newest, _)| newest) + 1;
            let scratch = self.0.path().join("scratch");
            fs::write(&scratch, body).unwrap();
            let linked = fs::hard_link(&scratch, self.generations(key).join(next.to_string()));
            // Or the next one would write over it.
            fs::remove_file(&scratch).unwrap();
            if linked.is_ok() {
                return;
            }
        }
        panic!("somebody else always writes first");
    }
}

/// Returns the record of a held lock.
pub(crate) fn record(holder: &str, lease: &str, token: u64, write_id: &str) -> String {
    let time = "2026-02-02T10:15:30.000000Z";
    format!(
        r#"{{"holderIdentity":"{holder}","leaseDuration":"{lease}","acquireTime":"{time}","renewTime":"{time}",
        "leaderTransitions":{token},"writeId":"{write_id}"}}"#
    )
}

/// The environment variables that change colour, logs and stores. In CI even a dumb terminal is taken to have
/// colours.
pub(crate) const TELLING: [&str; 6] =
    ["RUST_LOG", "NO_COLOR", "CLICOLOR_FORCE", "CLICOLOR", "CI", "STORAGE_EMULATOR_HOST"];

/// The program with the signals that a shell gives it. These tests may themselves run under `nohup`, and a signal that is
/// ignored there stays ignored.
fn program() -> Command {
    if cfg!(target_os = "linux") {
        let mut command = Command::new("env");
        command.args(["--default-signal=HUP,INT,QUIT,TERM", PROGRAM]);
        return command;
    }
    Command::new(PROGRAM)
}

/// The program, without what this process's environment tells it.
pub(crate) fn leaderelect<S: AsRef<std::ffi::OsStr>>(args: impl IntoIterator<Item = S>) -> Command {
    // It dies with the thread of its test, however that ends.
    let mut command = program();
    command.args(["__start", "--parent", &std::process::id().to_string(), "--", PROGRAM]).args(args);
    for name in TELLING {
        command.env_remove(name);
    }
    command.env("TERM", "xterm").stdin(Stdio::null());
    command
}

/// Arguments of `run`.
pub(crate) fn run<'a>(lock: &'a str, more: &[&'a str], command: &[&'a str]) -> Vec<&'a str> {
    [&["run", "--lock", lock], more, &["--"], command].concat()
}

/// The exit code and the output of a process that has ended.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

pub(crate) fn end_of(mut command: Command) -> Ended {
    let output = command.output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    Ended { code: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr) }
}

/// Runs the program to its end.
pub(crate) fn end(args: &[&str]) -> Ended {
    end_of(leaderelect(args))
}

/// A program that runs. Killed when dropped.
pub(crate) struct Running {
    child: Child,
    stdout: Lines,
    stderr: Lines,
}

impl Running {
    pub(crate) fn start(args: &[&str]) -> Self {
        Self::of(leaderelect(args))
    }

    pub(crate) fn of(mut command: Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let stdout = Lines::of(child.stdout.take().unwrap());
        let stderr = Lines::of(child.stderr.take().unwrap());
        Self { child, stdout, stderr }
    }

    /// Waits for a line of standard output, which is all of the rest of the line behind `beginning`.
    pub(crate) fn wait_for(&mut self, beginning: &str) -> String {
        match self.stdout.wait_for(|line| line.strip_prefix(beginning).map(str::to_owned)) {
            Ok(rest) => rest,
            Err(lines) => panic!("no {beginning:?} in {lines:?}; standard error: {:?}", self.stderr.so_far()),
        }
    }

    /// Waits for a line of standard output that contains `text`.
    pub(crate) fn wait_for_line(&mut self, text: &str) {
        self.wait_for_line_of(&[text]);
    }

    /// Waits for a line of standard output that contains all of these texts.
    pub(crate) fn wait_for_line_of(&mut self, texts: &[&str]) {
        if let Err(lines) = self.stdout.wait_for(|line| texts.iter().all(|text| line.contains(text)).then_some(())) {
            panic!("no {texts:?} in {lines:?}; standard error: {:?}", self.stderr.so_far());
        }
    }

    /// Waits for a line of standard error that contains `text`. Returns the rest of the line behind it.
    pub(crate) fn wait_for_note(&mut self, text: &str) -> String {
        match self.stderr.wait_for(|line| line.split_once(text).map(|(_, rest)| rest.to_owned())) {
            Ok(rest) => rest,
            Err(lines) => panic!("no {text:?} in {lines:?}; standard output: {:?}", self.stdout.so_far()),
        }
    }

    /// The lines of standard output that have come.
    pub(crate) fn so_far(&mut self) -> &[String] {
        self.stdout.so_far()
    }

    pub(crate) fn is_running(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }

    pub(crate) fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(self.pid(), signal).unwrap();
    }

    /// Waits for its end, whoever else holds its output.
    pub(crate) fn wait(mut self) -> ExitStatus {
        self.child.wait().unwrap()
    }

    /// Waits until no process holds its output any more, which all that it started inherit, and for its end.
    pub(crate) fn end(mut self) -> Ended {
        let stdout = self.stdout.rest();
        let stderr = self.stderr.rest();
        let status: ExitStatus = self.child.wait().unwrap();
        Ended { code: status.code(), stdout, stderr }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if thread::panicking() {
            println!("{}: {:?}, {:?}", self.child.id(), self.stdout.so_far(), self.stderr.so_far());
        }
        // Ended already where the test went well.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The lines of a stream, as they come.
pub(crate) struct Lines {
    lines: Receiver<String>,
    seen: Vec<String>,
}

impl Lines {
    pub(crate) fn of(stream: impl Read + Send + 'static) -> Self {
        let (sender, lines) = mpsc::channel();
        thread::spawn(move || {
            BufReader::new(stream).lines().map_while(Result::ok).try_for_each(|line| sender.send(line))
        });
        Self { lines, seen: Vec::new() }
    }

    pub(crate) fn wait_for<T>(&mut self, wanted: impl Fn(&str) -> Option<T>) -> Result<T, &[String]> {
        let deadline = Instant::now() + PATIENCE;
        while let Ok(line) = self.lines.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
            let found = wanted(&line);
            self.seen.push(line);
            if let Some(found) = found {
                return Ok(found);
            }
        }
        Err(&self.seen)
    }

    fn so_far(&mut self) -> &[String] {
        self.seen.extend(self.lines.try_iter());
        &self.seen
    }

    /// All of it, once nobody can write to it any more.
    pub(crate) fn rest(&mut self) -> String {
        let deadline = Instant::now() + PATIENCE;
        loop {
            match self.lines.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
                Ok(line) => self.seen.push(line),
                Err(mpsc::RecvTimeoutError::Disconnected) => return self.seen.join("\n"),
                Err(mpsc::RecvTimeoutError::Timeout) => panic!("a process goes on that should not: {:?}", self.seen),
            }
        }
    }
}

/// Runs a program whose standard output is somewhere else.
pub(crate) fn end_of_with_stderr(mut command: Command) -> Ended {
    let child = command.stderr(Stdio::piped()).spawn().unwrap();
    drop(command);
    let output = child.wait_with_output().unwrap();
    Ended { code: output.status.code(), stdout: String::new(), stderr: String::from_utf8(output.stderr).unwrap() }
}

/// Waits until something holds, for as long as the patience lasts.
pub(crate) fn wait_until(what: &str, holds: impl Fn() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !holds() {
        assert!(Instant::now() < deadline, "in vain: {what}");
        thread::sleep(Duration::from_millis(20));
    }
}

/// The command with this limit of open files, which it cannot raise.
pub(crate) fn with_files(inner: Command, files: u32) -> Command {
    with_limit(inner, &format!("-n {files}"))
}

/// The same with a limit of the shell, such as `-S -n 256`, which a program may raise.
pub(crate) fn with_limit(inner: Command, limit: &str) -> Command {
    let mut command = Command::new("sh");
    command.args(["-c", &format!("ulimit {limit}; exec \"$@\""), "sh"]).arg(inner.get_program());
    command.args(inner.get_args()).stdin(Stdio::null());
    for (name, value) in inner.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    command
}
