//! A process that does not outlive its test.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

/// For whatever has to happen sooner or later, on however busy a machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// Waits until `ask` finds something.
pub(crate) async fn eventually<T>(what: &str, mut ask: impl AsyncFnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(seen) = ask().await {
            return seen;
        }
        assert!(Instant::now() < deadline, "in vain: {what}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// The process, until it is dropped.
#[derive(Debug)]
pub(crate) struct Process {
    child: Child,
    said: Arc<Mutex<String>>,
    ear: Option<JoinHandle<()>>,
}

impl Process {
    pub(crate) fn spawn(command: &mut Command) -> Self {
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let said = Arc::new(Mutex::new(String::new()));
        let mut lines = BufReader::new(child.stderr.take().unwrap());
        let written = Arc::clone(&said);
        let ear = std::thread::spawn(move || {
            let mut line = String::new();
            while lines.read_line(&mut line).is_ok_and(|read| read > 0) {
                written.lock().unwrap().push_str(&line);
                line.clear();
            }
        });
        Self { child, said, ear: Some(ear) }
    }

    /// Returns the output so far.
    pub(crate) fn said(&self) -> String {
        self.said.lock().unwrap().clone()
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn signal(&self, signal: Signal) {
        let pid = Pid::from_raw(i32::try_from(self.child.id()).unwrap()).unwrap();
        kill_process(pid, signal).unwrap();
    }

    pub(crate) fn has_ended(&mut self) -> bool {
        self.child.try_wait().unwrap().is_some()
    }

    /// Waits until it has ended by itself, and has said all that it had to say.
    pub(crate) async fn ended(&mut self) -> ExitStatus {
        let status = eventually("the process ends", async || self.child.try_wait().unwrap()).await;
        if let Some(ear) = self.ear.take() {
            ear.join().unwrap();
        }
        status
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
