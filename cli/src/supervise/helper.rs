//! The helper processes beside the command, which run this program too.

use std::ffi::OsStr;

use clap::Parser;

use super::reexec::{GUARD, START, WATCHDOG};
use super::{guard, start, watchdog};
use crate::exit::{Exit, Failure};
use crate::output::Format;

/// The commands with which this program starts itself. Users do not call them.
#[derive(Debug, Parser)]
pub(crate) enum Helper {
    #[command(name = START)]
    Start(start::Args),
    #[command(name = GUARD)]
    Guard(watchdog::Args),
    #[command(name = WATCHDOG)]
    Watchdog(watchdog::Args),
}

impl Helper {
    pub(crate) fn is(word: &OsStr) -> bool {
        [START, GUARD, WATCHDOG].iter().any(|helper| word == *helper)
    }

    /// Returns the end of this process, and the format of its messages.
    pub(crate) fn run(self) -> (Result<Exit, Failure>, Format) {
        match self {
            Self::Start(args) => (start::run(&args), args.log_format),
            Self::Guard(args) => (guard::run(), args.log_format),
            Self::Watchdog(args) => (watchdog::run(&args), args.log_format),
        }
    }
}
