//! All processes that a command has started, directly or not.
//!
//! On Linux, `run`, the guard and the watchdog adopt orphans (`PR_SET_CHILD_SUBREAPER`), so that every process that descends from
//! the command stays below one of the three, whatever process group, session or user it changes to. Adoption takes no
//! privileges, while a cgroup takes a hierarchy that somebody has delegated to the user.
//!
//! What was started at the request of the command by somebody else does not descend from the command: a service
//! manager's unit, a container, a job of cron.

#[cfg(not(any(target_os = "linux", target_os = "android")))]
mod group;
#[cfg(any(target_os = "linux", target_os = "android"))]
mod walk;

use rustix::process::{Pid, getpid};

#[cfg(not(any(target_os = "linux", target_os = "android")))]
pub(crate) use self::group::{Family, adopt_orphans, reap_strays};
#[cfg(any(target_os = "linux", target_os = "android"))]
pub(crate) use self::walk::{Family, adopt_orphans, reap_strays};

/// The place where the processes of a command are found.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Below {
    /// The process that adopts them.
    pub(crate) root: Pid,
    /// A process group whose members do not belong to the command if they are children of `root`.
    pub(crate) aside: Option<Pid>,
    /// A process that does not belong to the command, although its descendants do.
    pub(crate) except: Option<Pid>,
    /// The process group that the command was started in: all that is known where nobody adopts orphans.
    #[cfg_attr(any(target_os = "linux", target_os = "android"), allow(dead_code, reason = "a walk finds all"))]
    pub(crate) group: Option<Pid>,
}

impl Below {
    /// Everything below this process.
    pub(crate) fn this_process(group: Option<Pid>) -> Self {
        Self { root: getpid(), aside: None, except: None, group }
    }
}
