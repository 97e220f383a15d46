//! The helper processes beside the command, which run this program too.

use std::ffi::OsStr;
use std::process::ExitCode;

use clap::Parser;

use super::itself::{START, WATCHDOG};
use super::{start, watchdog};

/// The commands with which this program starts itself. Users do not call them.
#[derive(Debug, Parser)]
pub(crate) enum Helper {
    #[command(name = START)]
    Start(start::Args),
    #[command(name = WATCHDOG)]
    Watchdog(watchdog::Args),
}

impl Helper {
    pub(crate) fn is(word: &OsStr) -> bool {
        word == START || word == WATCHDOG
    }

    pub(crate) fn run(self) -> ExitCode {
        match self {
            Self::Start(args) => start::run(&args),
            Self::Watchdog(args) => watchdog::run(&args),
        }
    }
}
