//! The family on systems where a process cannot adopt the orphans of its descendants: one process group.

use std::fmt;

use rustix::io::Errno;
use rustix::process::{Pid, Signal, kill_process_group, test_kill_process_group};

use super::Below;

/// The process group of the command, if a process is in it.
#[derive(Debug)]
pub(crate) struct Family(Option<Pid>);

impl Family {
    pub(crate) fn find(below: Below) -> Self {
        Self(below.group.filter(|group| test_kill_process_group(*group) != Err(Errno::SRCH)))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// Sends the signal to all, and continues whoever is stopped.
    pub(crate) fn signal(&self, signal: Signal) {
        if let Some(group) = self.0 {
            let _ = kill_process_group(group, signal);
            let _ = kill_process_group(group, Signal::CONT);
        }
    }
}

impl fmt::Display for Family {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(group) => write!(f, "processes of the group {group}"),
            None => f.write_str("none"),
        }
    }
}

pub(crate) fn adopt_orphans() -> bool {
    false
}

pub(crate) fn reap_strays(_awaited: &[Option<Pid>]) {}
