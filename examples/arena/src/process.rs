//! A candidate as seen by the program that started it.

use std::process::{ExitStatus, Stdio};

use anyhow::Context as _;
use rustix::process::{Pid, Signal, kill_process};
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, ChildStdin, Command};
use tokio::task::JoinHandle;

use crate::report::Report;

/// A running candidate. Killed when dropped.
#[derive(Debug)]
pub struct Process {
    child: Child,
    /// The candidate exits when this pipe closes, so that no candidate outlives this process.
    _lifeline: ChildStdin,
    listening: JoinHandle<()>,
}

impl Process {
    /// Starts a candidate. `hear` gets every report, and `None` after the last one.
    ///
    /// # Errors
    ///
    /// If the process cannot be started.
    pub fn start(
        mut command: Command,
        mut on_report: impl FnMut(Option<Report>) + Send + 'static,
    ) -> anyhow::Result<Self> {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            // In a group of its own, the candidate does not get the terminal's Ctrl-C. If this process dies while the
            // candidate is frozen, the system wakes the orphaned group with SIGHUP, which ends the candidate.
            .process_group(0)
            .kill_on_drop(true)
            .spawn()
            .context("cannot start a candidate")?;
        let lifeline = child.stdin.take().context("a candidate has no standard input")?;
        let reports = child.stdout.take().context("a candidate has no standard output")?;
        let listening = tokio::spawn(async move {
            let mut lines = BufReader::new(reports).lines();
            while let Ok(Some(line)) = lines.next_line().await {
                match serde_json::from_str(&line) {
                    Ok(report) => on_report(Some(report)),
                    Err(error) => tracing::error!(line, %error, "unknown report from a candidate, ignored"),
                }
            }
            on_report(None);
        });
        Ok(Self { child, _lifeline: lifeline, listening })
    }

    /// Returns the process id; `None` if the process has been waited for.
    #[must_use]
    pub fn id(&self) -> Option<u32> {
        self.child.id()
    }

    /// Sends a signal.
    ///
    /// # Errors
    ///
    /// If the process has been waited for, or if the system refuses.
    pub fn signal(&self, signal: Signal) -> anyhow::Result<()> {
        // A child that was not waited for keeps its id, so the signal cannot hit another process.
        let id = self.id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?)).context("the candidate is gone")?;
        kill_process(id, signal).with_context(|| format!("cannot send signal {signal:?}"))
    }

    /// Waits until the process has ended and all of its reports are received. Cancellation safe.
    ///
    /// # Errors
    ///
    /// If the system cannot tell.
    pub async fn wait(&mut self) -> anyhow::Result<ExitStatus> {
        let status = self.child.wait().await.context("cannot wait for a candidate")?;
        if !self.listening.is_finished() {
            (&mut self.listening).await.context("the listener has failed")?;
        }
        Ok(status)
    }
}
