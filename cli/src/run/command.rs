//! The command, from its start until its process group is empty.

use std::env;
use std::ffi::{OsStr, OsString};
use std::io::{self, IsTerminal as _};
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use leaderelection::clock::LocalInstant;
use rustix::process::{
    Pid, Signal, WaitId, WaitIdOptions, getpid, kill_process_group, test_kill_process_group, waitid,
};
use tokio::signal::unix::{SignalKind, signal};

use super::itself;
use super::watchdog::Watchdog;
use crate::exit::{Exit, Failure};
use crate::lock::LockUrl;

/// The program, its arguments, and its environment.
#[derive(Debug)]
pub(super) struct CommandLine {
    words: Vec<OsString>,
    identity: String,
    lock: String,
}

impl CommandLine {
    /// Fails now, rather than at the start of a term, if the program does not exist.
    pub(super) fn new(words: &[OsString], identity: &str, lock: &LockUrl) -> Result<Self, Failure> {
        if let Some(program) = words.first()
            && !exists(program)
        {
            let message = format!("{}: command not found", program.display());
            return Err(Failure::new(Exit::Code(127), message));
        }
        Ok(Self { words: words.to_vec(), identity: identity.to_owned(), lock: lock.to_string() })
    }
}

fn exists(program: &OsStr) -> bool {
    if Path::new(program).components().count() != 1 || program.as_encoded_bytes().contains(&b'/') {
        return Path::new(program).exists();
    }
    // Without PATH, the system searches directories of its own choice.
    env::var_os("PATH").is_none_or(|path| env::split_paths(&path).any(|folder| folder.join(program).is_file()))
}

/// A started command. Dropping it kills its process group.
#[derive(Debug)]
pub(super) struct Running {
    child: Child,
    group: Pid,
    pub(super) watchdog: Watchdog,
    children: tokio::signal::unix::Signal,
    gone: bool,
}

impl Running {
    /// Starts the command in a process group of its own, under a watchdog.
    pub(super) fn start(line: &CommandLine, fencing_token: u64) -> io::Result<Self> {
        adopt_orphans();
        // The signal handler is installed before the start, so that no end of a child is missed.
        let children = signal(SignalKind::child())?;
        let mut command = Command::new(itself::path());
        command
            .arg0("leaderelect")
            .args([itself::START, "--parent", &getpid().as_raw_nonzero().to_string(), "--"])
            .args(&line.words)
            .env("LEADERELECTION_IDENTITY", &line.identity)
            .env("LEADERELECTION_FENCING_TOKEN", fencing_token.to_string())
            .env("LEADERELECTION_LOCK", &line.lock)
            .process_group(0);
        if io::stdin().is_terminal() {
            // Only the terminal's foreground process group may read from the terminal: the system stops other
            // readers.
            command.stdin(Stdio::null());
        }
        let mut child = command.spawn()?;
        let group = Pid::from_child(&child);
        let watchdog = Watchdog::start(group).inspect_err(|_| {
            let _ = kill_process_group(group, Signal::KILL);
            let _ = child.wait();
        })?;
        Ok(Self { child, group, watchdog, children, gone: false })
    }

    pub(super) fn group(&self) -> Pid {
        self.group
    }

    /// Sends a signal to the whole group. A stopped group is continued, so that the signal reaches it.
    pub(super) fn signal(&self, signal: Signal) {
        let _ = kill_process_group(self.group, signal);
        let _ = kill_process_group(self.group, Signal::CONT);
    }

    /// Completes when the command has ended; processes that it left behind may still run. Cancellation safe.
    pub(super) async fn ended(&mut self) {
        // The command stays a zombie, so that no other process group gets its id yet.
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        while let Ok(None) = waitid(WaitId::Pid(self.group), options) {
            self.children.recv().await;
        }
    }

    /// Ends the processes that the command left behind, once the command has [ended](Self::ended): with
    /// SIGTERM, and with SIGKILL when `patience` is over. Returns the exit status of the command. Cancellation
    /// safe.
    pub(super) async fn clean_up(&mut self, patience: impl Future<Output = ()>) -> io::Result<ExitStatus> {
        self.signal(Signal::TERM);
        let status = self.child.wait()?;
        let mut patience = std::pin::pin!(patience);
        let mut out_of_patience = false;
        while self.is_left() {
            tokio::select! {
                biased;
                () = &mut patience, if !out_of_patience => {
                    out_of_patience = true;
                    self.signal(Signal::KILL);
                }
                _ = self.children.recv() => {}
                // On systems where orphans do not become our children, no signal reports their end.
                () = tokio::time::sleep(Duration::from_millis(100)) => {}
            }
        }
        self.gone = true;
        self.watchdog.dismiss();
        Ok(status)
    }

    /// Starts a new watchdog in place of one that has ended.
    pub(super) fn renew_watchdog(&mut self, deadline: LocalInstant) -> io::Result<()> {
        self.watchdog = Watchdog::start(self.group)?;
        self.watchdog.allow_until(deadline)
    }

    fn is_left(&self) -> bool {
        // Collects orphans: they are our children if this process adopts them or is the first process of a
        // container.
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG;
        while let Ok(Some(_)) = waitid(WaitId::Pgid(Some(self.group)), options) {}
        test_kill_process_group(self.group) != Err(rustix::io::Errno::SRCH)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if !self.gone {
            let _ = kill_process_group(self.group, Signal::KILL);
            let _ = self.child.try_wait();
        }
    }
}

/// Makes this process the parent of the processes that the command leaves behind, so that it can collect them.
fn adopt_orphans() {
    #[cfg(any(target_os = "linux", target_os = "android"))]
    let _ = rustix::process::set_child_subreaper(Some(getpid()));
}

/// Returns the exit code that a shell would report.
pub(super) fn exit(status: ExitStatus) -> Exit {
    match (status.code(), status.signal()) {
        (Some(code), _) => Exit::Code(u8::try_from(code).unwrap_or(u8::MAX)),
        (None, Some(signal)) => Exit::by_signal(signal),
        (None, None) => Exit::Internal,
    }
}
