//! The candidates as processes: started, listened to, and sent signals.

use std::path::PathBuf;
use std::process::ExitStatus;

use anyhow::Context as _;
use leaderelection_arena::process::Process;
use leaderelection_arena::report::Report;
use rustix::process::Signal;
use tokio::process::Command;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use crate::args::Settings;
use crate::peers::Key;

/// The place of a candidate in the line-up. A candidate that is started again keeps its slot.
pub type Slot = usize;

/// An event of a candidate.
#[derive(Debug)]
pub enum Happening {
    Reported(Slot, Report),
    Exited(Slot, ExitStatus),
}

#[derive(Debug)]
pub struct Cluster {
    program: PathBuf,
    settings: Settings,
    /// The key of the candidates that get messages from each other.
    key: Option<Key>,
    processes: Vec<Option<Process>>,
    sender: UnboundedSender<(Slot, Option<Report>)>,
    receiver: UnboundedReceiver<(Slot, Option<Report>)>,
    /// A candidate that has closed its standard output and was not waited for yet.
    ending: Option<Slot>,
}

impl Cluster {
    pub fn new(settings: Settings, slots: usize) -> anyhow::Result<Self> {
        let program = std::env::current_exe().context("cannot find this program to start it again")?;
        let (sender, receiver) = unbounded_channel();
        let processes = (0..slots).map(|_| None).collect();
        let key = settings.peers.then(Key::new).transpose()?;
        Ok(Self { program, settings, key, processes, sender, receiver, ending: None })
    }

    /// Starts a candidate, and returns its process id.
    pub fn start(&mut self, slot: Slot, name: &str) -> anyhow::Result<u32> {
        let mut command = Command::new(&self.program);
        command.args(["candidate", "--name", name]).args(self.settings.to_args());
        if let Some(key) = &self.key {
            key.give_to(&mut command);
        }
        let sender = self.sender.clone();
        let process = Process::start(command, move |report| drop(sender.send((slot, report))))?;
        let pid = process.id().context("a candidate ended at once")?;
        self.processes[slot] = Some(process);
        Ok(pid)
    }

    pub fn signal(&self, slot: Slot, signal: Signal) -> anyhow::Result<()> {
        self.processes[slot].as_ref().context("the candidate is gone")?.signal(signal)
    }

    /// Returns the next event of a candidate. Cancellation safe.
    pub async fn next(&mut self) -> anyhow::Result<Happening> {
        loop {
            if let Some(slot) = self.ending {
                let process = self.processes[slot].as_mut().context("a candidate ended twice")?;
                let status = process.wait().await?;
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
