//! The processes of a command whose watchdog somebody has killed: the processes are now below this one.

use std::os::unix::process::ExitStatusExt as _;
use std::process::ExitStatus;
use std::time::Duration;

use rustix::process::{Pid, Signal, WaitOptions, getpgrp, getpid, waitpid};

use super::family::{Below, Family, reap_strays};
use super::words::Report;

/// The pause between two walks, if no process ends meanwhile.
const PAUSE: Duration = Duration::from_millis(50);

/// The number of walks in a row that have to find nothing. One walk may miss a process that forks, and this process
/// may have other children, so the system cannot be asked for the last one.
const EMPTY_WALKS: u32 = 3;

#[derive(Debug)]
pub(super) struct Orphans {
    command: Option<Pid>,
    group: Option<Pid>,
    pub(super) killing: bool,
    empty_walks: u32,
}

impl Orphans {
    /// `group` is the command's, if it was started.
    pub(super) fn left_behind(group: Option<Pid>) -> Self {
        Self { command: group, group, killing: false, empty_walks: 0 }
    }

    /// Other children of this process, such as those that fetch credentials, are in its own process group.
    pub(super) fn below(&self) -> Below {
        Below { root: getpid(), aside: Some(getpgrp()), group: self.group }
    }

    /// Returns the next report, as the watchdog would have. Cancellation safe.
    pub(super) async fn next(
        &mut self,
        children: &mut tokio::signal::unix::Signal,
        watchdog: Pid,
        told_end: bool,
    ) -> Report {
        loop {
            if !told_end && let Some(status) = self.end() {
                return Report::Ended(status);
            }
            reap_strays(&[Some(watchdog), self.command]);
            let family = Family::find(self.below());
            match family.is_empty() {
                true => self.empty_walks += 1,
                false => self.empty_walks = 0,
            }
            if self.killing {
                family.signal(Signal::KILL);
            }
            if told_end && self.empty_walks >= EMPTY_WALKS {
                return Report::Gone;
            }
            tokio::select! {
                biased;
                _ = children.recv() => {}
                () = tokio::time::sleep(PAUSE) => {}
            }
        }
    }

    /// The exit status of the command, if it has ended.
    fn end(&mut self) -> Option<ExitStatus> {
        let status = match self.command.map(|command| waitpid(Some(command), WaitOptions::NOHANG)) {
            Some(Ok(None)) => return None,
            Some(Ok(Some((_, status)))) => ExitStatus::from_raw(status.as_raw()),
            // The watchdog took the status with it.
            Some(Err(_)) | None => ExitStatus::from_raw(Signal::KILL.as_raw()),
        };
        self.command = None;
        Some(status)
    }
}
