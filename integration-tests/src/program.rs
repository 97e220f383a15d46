//! A running program and its output.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

/// A time limit far above the duration of any step of these tests.
const PATIENCE: Duration = Duration::from_secs(60);

/// Short timings that still suffice for a busy machine.
pub const TIMING: [&str; 6] = [
    "--leader-elect-lease-duration",
    "9s",
    "--leader-elect-renew-deadline",
    "7s",
    "--leader-elect-retry-period",
    "400ms",
];

/// A running program. Killed when dropped.
#[derive(Debug)]
pub struct Program {
    child: Child,
    lines: Receiver<String>,
    printed: Vec<String>,
}

impl Program {
    /// Starts `command` and reads its standard output.
    #[must_use]
    pub fn start(command: &mut Command) -> Self {
        let mut child = command.env("RUST_LOG", "warn").stdout(Stdio::piped()).spawn().unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        let (sender, lines) = channel();
        thread::spawn(move || stdout.lines().map_while(Result::ok).try_for_each(|line| sender.send(line)));
        Self { child, lines, printed: Vec::new() }
    }

    /// Returns the next line for which `wanted` has a value.
    pub fn wait_for<T>(&mut self, what: &str, mut wanted: impl FnMut(&str) -> Option<T>) -> T {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let line = self.lines.recv_timeout(deadline.saturating_duration_since(Instant::now()));
            let line = line.unwrap_or_else(|_| panic!("waited in vain for {what}; printed: {:#?}", self.printed));
            let value = wanted(&line);
            self.printed.push(line);
            if let Some(value) = value {
                return value;
            }
        }
    }

    /// Returns the next line that begins with `start`.
    pub fn wait_for_line(&mut self, start: &str) -> String {
        self.wait_for(start, |line| line.starts_with(start).then(|| line.to_owned()))
    }

    /// Returns the last line printed since the last call, if there is one or if one follows at once.
    pub fn latest_line(&mut self) -> Option<String> {
        let next = self.lines.recv_timeout(Duration::from_millis(20)).ok();
        self.printed.extend(next.clone());
        let last = self.lines.try_iter().inspect(|line| self.printed.push(line.clone())).last();
        last.or(next)
    }

    /// Asks the program to end, with SIGTERM.
    pub fn terminate(&self) {
        self.signal(Signal::TERM);
    }

    /// Stops the program where it is, with SIGSTOP.
    pub fn freeze(&self) {
        self.signal(Signal::STOP);
    }

    /// Lets a frozen program go on.
    pub fn resume(&self) {
        self.signal(Signal::CONT);
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// Ends the program with SIGKILL.
    pub fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Waits until the program ends.
    pub fn wait(&mut self) -> ExitStatus {
        let deadline = Instant::now() + PATIENCE;
        // The pipe closes when the program ends, whatever the program printed.
        while let Ok(line) = self.lines.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
            self.printed.push(line);
        }
        assert!(Instant::now() < deadline, "the program does not end; printed: {:#?}", self.printed);
        self.child.wait().unwrap()
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}
