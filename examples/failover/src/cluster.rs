//! The candidates as processes: started, listened to, and sent signals.

use std::path::PathBuf;
use std::process::{ExitStatus, Stdio};

use anyhow::Context as _;
use rustix::process::{Pid, Signal, kill_process};
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use crate::args::Settings;
use crate::report::Report;

/// The place of a candidate in the line-up. A candidate that is started again keeps its slot.
pub type Slot = usize;

/// Something a candidate did.
#[derive(Debug)]
pub enum Happening {
    Reported(Slot, Report),
    Exited(Slot, ExitStatus),
}

#[derive(Debug)]
pub struct Cluster {
    program: PathBuf,
    settings: Settings,
    processes: Vec<Option<Process>>,
    sender: UnboundedSender<(Slot, Option<Report>)>,
    receiver: UnboundedReceiver<(Slot, Option<Report>)>,
    /// Has closed its standard output, and is not waited for yet.
    ending: Option<Slot>,
}

#[derive(Debug)]
struct Process {
    child: Child,
    /// The candidate exits when this closes, so that none outlives us.
    _lifeline: ChildStdin,
}

impl Cluster {
    pub fn new(settings: Settings, slots: usize) -> anyhow::Result<Self> {
        let program = std::env::current_exe().context("cannot find this program to start it again")?;
        let (sender, receiver) = unbounded_channel();
        let processes = (0..slots).map(|_| None).collect();
        Ok(Self { program, settings, processes, sender, receiver, ending: None })
    }

    /// Starts a candidate, and returns its process id.
    pub fn start(&mut self, slot: Slot, name: &str) -> anyhow::Result<u32> {
        let mut child = Command::new(&self.program)
            .args(["candidate", "--name", name])
            .args(self.settings.to_args())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            // A group of its own: the terminal's Ctrl-C is for us alone. And if we die while it is
            // frozen, the system wakes the orphaned group with SIGHUP, which ends it.
            .process_group(0)
            .kill_on_drop(true)
            .spawn()
            .context("cannot start a candidate")?;
        let pid = child.id().context("a candidate ended at once")?;
        let lifeline = child.stdin.take().context("a candidate has no standard input")?;
        let reports = child.stdout.take().context("a candidate has no standard output")?;
        tokio::spawn(listen(slot, reports, self.sender.clone()));
        self.processes[slot] = Some(Process { child, _lifeline: lifeline });
        Ok(pid)
    }

    pub fn signal(&self, slot: Slot, signal: Signal) -> anyhow::Result<()> {
        // A child that was not waited for keeps its id, so this cannot hit somebody else.
        let process = self.processes[slot].as_ref().and_then(|process| process.child.id());
        let pid = process.and_then(|id| Pid::from_raw(i32::try_from(id).ok()?)).context("the candidate is gone")?;
        kill_process(pid, signal).with_context(|| format!("cannot send signal {signal:?}"))
    }

    /// The next thing that a candidate does. Cancellation safe.
    pub async fn next(&mut self) -> anyhow::Result<Happening> {
        loop {
            if let Some(slot) = self.ending {
                let process = self.processes[slot].as_mut().context("a candidate ended twice")?;
                let status = process.child.wait().await.context("cannot wait for a candidate")?;
                self.processes[slot] = None;
                self.ending = None;
                return Ok(Happening::Exited(slot, status));
            }
            let (slot, report) = self.receiver.recv().await.context("nobody is listening to the candidates")?;
            match report {
                Some(report) => return Ok(Happening::Reported(slot, report)),
                None => self.ending = Some(slot),
            }
        }
    }
}

/// Passes on what a candidate reports; `None` when it is gone.
async fn listen(slot: Slot, reports: ChildStdout, sender: UnboundedSender<(Slot, Option<Report>)>) {
    let mut lines = BufReader::new(reports).lines();
    while let Ok(Some(line)) = lines.next_line().await {
        match serde_json::from_str(&line) {
            Ok(report) => drop(sender.send((slot, Some(report)))),
            Err(error) => tracing::error!(slot, line, %error, "a candidate reports something unknown"),
        }
    }
    let _ = sender.send((slot, None));
}
