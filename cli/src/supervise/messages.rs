//! The messages between `run`, the watchdog, and the process that becomes the command.

use std::io;
use std::os::unix::process::ExitStatusExt as _;
use std::process::ExitStatus;

use leaderelection::clock::LocalInstant;
use rustix::process::{Pid, Signal};

use super::channel::IpcMessage;

/// An order of `run` to the watchdog.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    /// The command may live until this moment, instead of the one that was named before.
    LiveUntil(LocalInstant),
    /// Pass the signal on to the command's process group.
    PassOn(Signal),
    /// Send SIGTERM to all that the command started.
    Terminate,
    /// Kill all that the command started, until nothing is left.
    Kill,
}

/// A report of the watchdog to `run`, or of the process that becomes the command to the watchdog.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Report {
    /// The watchdog itself.
    Watching(Pid),
    /// The process that becomes the command, and leads its process group.
    Started(Pid),
    /// The command could not be started.
    NotRun(NotRun),
    /// A signal stopped the command.
    Stopped(Signal),
    /// The system does not allow this signal to be passed on.
    Refused(Signal),
    /// The command has ended. Processes that it started may be left.
    Ended(ExitStatus),
    /// No process is left.
    Gone,
}

/// The reason for which there is no command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NotRun {
    /// The time for its start was over.
    TooLate,
    /// An error of the system, by its number.
    Failed(i32),
}

impl NotRun {
    pub(crate) fn because_of(error: &io::Error) -> Self {
        Self::Failed(error.raw_os_error().unwrap_or_default())
    }

    fn encode(self) -> u64 {
        match self {
            Self::TooLate => u64::MAX,
            Self::Failed(errno) => u64::from(errno.cast_unsigned()),
        }
    }

    fn decode(value: u64) -> Option<Self> {
        if value == u64::MAX { Some(Self::TooLate) } else { number(value).map(Self::Failed) }
    }
}

impl IpcMessage for Order {
    fn encode(self) -> (u64, u64) {
        match self {
            Self::LiveUntil(deadline) => (1, deadline.as_nanos()),
            Self::PassOn(signal) => (2, of_signal(signal)),
            Self::Terminate => (3, 0),
            Self::Kill => (4, 0),
        }
    }

    fn decode(kind: u64, value: u64) -> Option<Self> {
        Some(match kind {
            1 => Self::LiveUntil(LocalInstant::from_nanos(value)),
            2 => Self::PassOn(signal(value)?),
            3 => Self::Terminate,
            4 => Self::Kill,
            _ => return None,
        })
    }
}

impl IpcMessage for Report {
    fn encode(self) -> (u64, u64) {
        match self {
            Self::Started(pid) => (1, of_pid(pid)),
            Self::NotRun(why) => (2, why.encode()),
            Self::Stopped(signal) => (3, of_signal(signal)),
            Self::Refused(signal) => (4, of_signal(signal)),
            Self::Ended(status) => (5, u64::from(status.into_raw().cast_unsigned())),
            Self::Gone => (6, 0),
            Self::Watching(pid) => (8, of_pid(pid)),
        }
    }

    fn decode(kind: u64, value: u64) -> Option<Self> {
        Some(match kind {
            1 => Self::Started(pid(value)?),
            2 => Self::NotRun(NotRun::decode(value)?),
            3 => Self::Stopped(signal(value)?),
            4 => Self::Refused(signal(value)?),
            5 => Self::Ended(ExitStatus::from_raw(number(value)?)),
            6 => Self::Gone,
            8 => Self::Watching(pid(value)?),
            _ => return None,
        })
    }
}

fn of_pid(pid: Pid) -> u64 {
    u64::from(pid.as_raw_nonzero().get().cast_unsigned())
}

fn pid(value: u64) -> Option<Pid> {
    Pid::from_raw(number(value).filter(|pid| *pid >= 0)?)
}

fn of_signal(signal: Signal) -> u64 {
    u64::from(signal.as_raw().cast_unsigned())
}

fn signal(value: u64) -> Option<Signal> {
    Signal::from_named_raw(number(value)?)
}

fn number(value: u64) -> Option<i32> {
    u32::try_from(value).ok().map(u32::cast_signed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn again<W: IpcMessage>(word: W) -> Option<W> {
        let (kind, value) = word.encode();
        W::decode(kind, value)
    }

    #[test]
    fn what_is_received_is_what_was_sent() {
        let deadline = LocalInstant::from_nanos(u64::MAX);
        for order in [Order::LiveUntil(deadline), Order::PassOn(Signal::WINCH), Order::Terminate, Order::Kill] {
            assert_eq!(again(order), Some(order));
        }
        let pid = Pid::from_raw(i32::MAX).unwrap();
        for report in [
            Report::Watching(pid),
            Report::Started(pid),
            Report::NotRun(NotRun::TooLate),
            Report::NotRun(NotRun::Failed(0)),
            Report::NotRun(NotRun::Failed(2)),
            Report::Stopped(Signal::TTIN),
            Report::Refused(Signal::TERM),
            Report::Ended(ExitStatus::from_raw(0x7f00)),
            Report::Ended(ExitStatus::from_raw(9)),
            Report::Gone,
        ] {
            assert_eq!(again(report), Some(report));
        }
    }
}
