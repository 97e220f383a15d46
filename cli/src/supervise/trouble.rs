//! The ends of the processes beside the command, without the words and codes of a program.

/// The end of a process beside the command that has nothing to say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// Nothing is left.
    Done,
    /// There is no command, and the watchdog knows the reason.
    NotRun,
    /// Processes of the command are left.
    LeftRunning,
}

/// The reason for which there is no command, or for which nobody watches over it. Each has a message, in lower case.
#[derive(Debug)]
pub(crate) enum Trouble {
    /// The program does not exist.
    NotFound(String),
    /// The program cannot be executed.
    CannotRun(String),
    /// Nobody has named a program.
    NoCommand(String),
    /// Processes of the command are left, and cannot be ended.
    LeftRunning(String),
    /// This machine is at fault.
    Machine(String),
}
