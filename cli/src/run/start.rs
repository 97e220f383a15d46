//! The last steps before the command, in its own process.

use std::ffi::OsString;
use std::os::unix::process::CommandExt as _;
use std::process::Command;

use rustix::process::{Pid, getppid};

use crate::exit::{Exit, Failure};

/// Become the command, and die with the parent process.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The parent process
    #[arg(long)]
    parent: i32,
    #[arg(last = true, required = true)]
    command: Vec<OsString>,
}

/// Becomes the command. Returns only on failure.
pub(super) fn run(args: &Args) -> Failure {
    if let Err(failure) = die_with_parent() {
        return failure;
    }
    // The parent may have died before this process asked for the death signal.
    if getppid() != Pid::from_raw(args.parent) {
        return Failure::new(Exit::Internal, "leaderelect is gone; the command is not run");
    }
    let Some((program, arguments)) = args.command.split_first() else {
        return Failure::usage("no command; name one behind --");
    };
    let error = Command::new(program).args(arguments).exec();
    let code = if error.kind() == std::io::ErrorKind::NotFound { 127 } else { 126 };
    Failure::new(Exit::Code(code), format!("cannot run {}: {error}", program.display()))
}

/// Asks the system to kill this process when its parent dies. The setting survives `exec`, except for programs
/// that gain privileges. On systems other than Linux, only the watchdog does this.
#[cfg(any(target_os = "linux", target_os = "android"))]
fn die_with_parent() -> Result<(), Failure> {
    rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL))
        .map_err(|error| Failure::new(Exit::Internal, format!("cannot ask to die with leaderelect: {error}")))
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
fn die_with_parent() -> Result<(), Failure> {
    Ok(())
}
