//! The standard input of the command.

use std::fs::File;
use std::io::{self, IsTerminal as _};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// Standard input as this process was started with it, or nothing instead of a terminal: only the terminal's foreground
/// process group may read from it, and the system stops other readers.
#[derive(Debug)]
pub(crate) struct Input(OwnedFd);

impl Input {
    /// Keeps standard input for the command. A program that a source of credentials starts, such as `credential_process`, would
    /// inherit it and may read it. It inherits a terminal, where a person may answer its questions.
    pub(crate) fn set_aside() -> io::Result<Self> {
        let nothing = OwnedFd::from(File::open("/dev/null")?);
        if io::stdin().is_terminal() {
            return Ok(Self(nothing));
        }
        let input = io::stdin().as_fd().try_clone_to_owned()?;
        rustix::stdio::dup2_stdin(nothing)?;
        Ok(Self(input))
    }
}

impl AsFd for Input {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
