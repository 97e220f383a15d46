//! The last steps before the command, in its own process.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::process::CommandExt as _;
use std::process::{Command, ExitCode};

use leaderelection::clock::{Clock as _, LocalInstant, SystemClock};
use rustix::process::{Pid, Signal, getppid};

use super::channel::{self, Speaker};
use super::words::NotRun;
use crate::exit::{Exit, Failure};
use crate::output::{LogFormat, fail_early};

/// Become the command, and die with the parent process.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The parent process
    #[arg(long)]
    parent: i32,
    /// The moment of the machine's clock, in nanoseconds, after which there is no command. The parent is the watchdog
    #[arg(long)]
    until: Option<u64>,
    #[arg(long, default_value = "text")]
    log_format: LogFormat,
    #[arg(last = true, required = true)]
    command: Vec<OsString>,
}

/// Becomes the command. Returns only on failure.
pub(super) fn run(args: &Args) -> ExitCode {
    let failure = match become_command(args) {
        Ok(NotRun::TooLate | NotRun::Failed(_)) => return Exit::Code(126).into(),
        Err(failure) => failure,
    };
    fail_early(&failure, args.log_format)
}

/// Returns the reason for which there is no command, if the watchdog was told and tells it on.
fn become_command(args: &Args) -> Result<NotRun, Failure> {
    let internal = |what: &str, error| Failure::new(Exit::Internal, format!("cannot {what}: {error}"));
    let watchdog = args.until.map(|until| channel::take().map(|socket| (until, Speaker::new(socket)))).transpose();
    let watchdog = watchdog.map_err(|error| internal("take the standard input", error))?;
    // While `run` lives, it ends in good order what a killed watchdog leaves behind. Otherwise, this is the only
    // signal that the command gets.
    let signal = if watchdog.is_some() { Signal::TERM } else { Signal::KILL };
    die_with_parent(signal).map_err(|error| internal("ask to die with leaderelect", error))?;
    // The parent may have died before this process asked for the death signal.
    if getppid() != Pid::from_raw(args.parent) {
        return Err(Failure::new(Exit::Internal, "leaderelect is gone; the command is not run"));
    }
    let Some((program, arguments)) = args.command.split_first() else {
        return Err(Failure::usage("no command; name one behind --"));
    };
    let mut command = Command::new(program);
    command.args(arguments);
    let Some((until, speaker)) = watchdog else { return Err(cannot_run(program, &command.exec())) };
    // As late as possible: any process on the way here may have been stopped.
    let in_time = SystemClock.now() < LocalInstant::from_nanos(until);
    let why = if in_time { NotRun::because_of(&command.exec()) } else { NotRun::TooLate };
    speaker.say(why).map(|()| why).map_err(|error| internal("tell why the command is not run", error))
}

/// The failure that shells report, with their exit codes.
pub(super) fn cannot_run(program: &OsStr, error: &io::Error) -> Failure {
    let code = if error.kind() == io::ErrorKind::NotFound { 127 } else { 126 };
    Failure::new(Exit::Code(code), format!("cannot run {}: {error}", program.display()))
}

/// Asks the system to send `signal` to this process when its parent dies. The setting survives `exec`, except for
/// programs that gain privileges. On systems other than Linux, only the watchdog does this.
#[cfg(any(target_os = "linux", target_os = "android"))]
fn die_with_parent(signal: Signal) -> io::Result<()> {
    Ok(rustix::process::set_parent_process_death_signal(Some(signal))?)
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
fn die_with_parent(_signal: Signal) -> io::Result<()> {
    Ok(())
}
