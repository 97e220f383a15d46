//! The guard and the watchdog, as `run` sees them.
//!
//! If somebody kills one of them, the command would be one further accident from working without anybody who ends it in
//! time. So `run` and the other one kill all that the command started, at once.

use std::process::{Child, ExitStatus};

use rustix::process::{Pid, Signal, getpgrp, getpid, kill_process};

use super::process_tree::{Below, Family};

/// The number of walks in a row that have to find nothing. One walk may miss a process that forks, and this process
/// may have other children, so the system cannot be asked for the last one.
const EMPTY_WALKS: u32 = 3;

#[derive(Debug)]
pub(crate) struct Guards {
    guard: Child,
    end: Option<ExitStatus>,
    /// The watchdog, once it has sent its number, and until it is gone.
    pub(crate) watchdog: Option<Pid>,
    /// The process group of the command, if the command was started.
    pub(crate) group: Option<Pid>,
    empty_walks: u32,
}

impl Guards {
    pub(crate) fn new(guard: Child) -> Self {
        Self { guard, end: None, watchdog: None, group: None, empty_walks: 0 }
    }

    /// The processes of the command that are left.
    pub(crate) fn left(&self) -> Family {
        let below = Below { except: self.watchdog, ..Below::this_process(self.group) };
        Family::find(match self.end {
            None => Below { root: Pid::from_child(&self.guard), ..below },
            // Other children of this process, such as those that fetch credentials, are in its own process group.
            Some(_) => Below { root: getpid(), aside: Some(getpgrp()), ..below },
        })
    }

    /// The children of this process that are collected here.
    pub(crate) fn awaited(&self) -> Option<Pid> {
        self.end.is_none().then(|| Pid::from_child(&self.guard))
    }

    /// Collects a guard that has ended. Returns `true` if somebody killed it just now.
    pub(crate) fn has_lost_guard(&mut self) -> bool {
        if self.end.is_some() {
            return false;
        }
        self.end = self.guard.try_wait().ok().flatten();
        self.is_without_guard()
    }

    /// Returns `true` if somebody has killed the guard.
    pub(crate) fn is_without_guard(&self) -> bool {
        self.end.is_some_and(|end| !end.success())
    }

    /// Continues whichever of the two somebody has stopped. While the guard lives, it continues the watchdog.
    pub(crate) fn wake(&self) {
        if let Some(stopped) = self.awaited().or(self.watchdog) {
            let _ = kill_process(stopped, Signal::CONT);
        }
    }

    /// Kills what is left when one of the two is gone. Without a watchdog, returns `true` once nothing is left.
    pub(crate) fn kill_rest(&mut self) -> bool {
        self.wake();
        let family = self.left();
        family.signal(Signal::KILL);
        match self.end {
            // It kills, too, and it alone has the system's word for the end.
            None => false,
            Some(end) if end.success() => true,
            Some(_) => {
                self.empty_walks = if family.is_empty() { self.empty_walks + 1 } else { 0 };
                self.empty_walks >= EMPTY_WALKS
            }
        }
    }

    /// Ends the guard when nothing is left. A stopped guard would never end by itself.
    pub(crate) fn dismiss(&mut self) {
        let _ = self.guard.kill();
        let _ = self.guard.wait();
    }
}
