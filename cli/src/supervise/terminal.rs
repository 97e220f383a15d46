//! The terminal, which a command gets when it needs it.
//!
//! The system stops a process that uses the terminal while another process group is in its foreground. The command
//! has a process group of its own, so that Ctrl-C reaches `leaderelect`, which decides what it means. A command that
//! was stopped in this way is given the foreground: a password prompt, a pager.

use std::fs::{File, OpenOptions};
use std::io;

use nix::sys::signal::{SigSet, Signal};
use rustix::process::{Pid, getpgrp};
use rustix::termios::{tcgetpgrp, tcsetpgrp};

/// Lets this thread, and those that it starts, write to a terminal in whose foreground another process group is, and
/// take that terminal back. Otherwise the system would stop this process.
pub(crate) fn write_from_the_background() {
    let _ = writes().thread_block();
}

/// Restores the behaviour that the command expects. For the watchdog.
pub(crate) fn write_as_usual() {
    let _ = writes().thread_unblock();
}

fn writes() -> SigSet {
    SigSet::from_iter([Signal::SIGTTOU])
}

/// The foreground, given to the command. It is taken back when this is dropped.
#[derive(Debug)]
pub(crate) struct Foreground(File);

impl Foreground {
    /// Gives the foreground to `group`. Fails if this process is not in the foreground of a terminal.
    pub(crate) fn give_to(group: Pid) -> io::Result<Self> {
        let terminal = OpenOptions::new().read(true).write(true).open("/dev/tty")?;
        if tcgetpgrp(&terminal)? != getpgrp() {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        tcsetpgrp(&terminal, group)?;
        Ok(Self(terminal))
    }
}

impl Drop for Foreground {
    fn drop(&mut self) {
        let _ = tcsetpgrp(&self.0, getpgrp());
    }
}
