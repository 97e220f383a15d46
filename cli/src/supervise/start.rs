//! The last steps before the command, in its own process.

use std::env;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::process::CommandExt as _;
use std::process::{self, Command};

use leaderelection::clock::{Clock as _, LocalInstant, SystemClock};
use rustix::process::{Pid, Signal, getppid};

use super::channel::{self, Speaker};
use super::messages::{NotRun, Report};
use crate::exit::{Exit, Failure};
use crate::output::Format;

/// Become the command, and die with the parent process.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The parent process
    #[arg(long)]
    parent: i32,
    /// The moment of the machine's clock, in nanoseconds, after which there is no command. The parent is the watchdog
    #[arg(long)]
    until: Option<u64>,
    /// The format of messages, for the program around
    #[arg(long, default_value = "text")]
    pub(crate) log_format: Format,
    #[arg(last = true, required = true)]
    command: Vec<OsString>,
}

/// The variable with the number of the process that sockets of systemd are for.
pub(super) const LISTEN_PID: &str = "LISTEN_PID";

/// The code that shells report for a command that cannot be run.
const CANNOT_RUN: Exit = Exit::Code(126);

/// Becomes the command. Returns only on failure, whose reason the watchdog gets and passes on if it is the parent.
pub(crate) fn run(args: &Args) -> Result<Exit, Failure> {
    let internal = |what: &str, error| Failure::internal(format!("cannot {what}: {error}"));
    let watchdog = args.until.map(|until| channel::take().map(|socket| (until, Speaker::new(socket)))).transpose();
    let watchdog = watchdog.map_err(|error| internal("read standard input", error))?;
    // A command without its watchdog would be one accident from outliving the lease, however it takes SIGTERM.
    signal_at_death_of_parent(Signal::KILL)
        .map_err(|error| internal("arrange for the command to die with leaderelect", error))?;
    // The parent may have died before this process asked for the death signal.
    if getppid() != Pid::from_raw(args.parent) {
        return Err(Failure::internal("leaderelect died; the command was not started"));
    }
    let Some((program, arguments)) = args.command.split_first() else {
        return Err(Failure::usage("missing command; put it after --"));
    };
    let mut command = Command::new(program);
    command.args(arguments);
    if env::var_os(LISTEN_PID).is_some_and(|pid| pid == "0") {
        command.env(LISTEN_PID, process::id().to_string());
    }
    let Some((until, speaker)) = watchdog else { return Err(cannot_run(program, &command.exec())) };
    // As late as possible: any process on the way here may have been stopped.
    let in_time = SystemClock.now() < LocalInstant::from_nanos(until);
    let why = if in_time { NotRun::because_of(&command.exec()) } else { NotRun::TooLate };
    speaker
        .say(Report::NotRun(why))
        .map(|()| CANNOT_RUN)
        .map_err(|error| internal("report why the command was not started", error))
}

/// The two failures that shells report.
pub(crate) fn cannot_run(program: &OsStr, error: &io::Error) -> Failure {
    let exit = if error.kind() == io::ErrorKind::NotFound { Exit::Code(127) } else { CANNOT_RUN };
    Failure::new(exit, format!("cannot run {}: {error}", program.display()))
}

/// Returns `true` if the system lacks something that comes back: room for a process, a descriptor, memory.
pub(crate) fn is_shortage(error: &io::Error) -> bool {
    use rustix::io::Errno;
    matches!(Errno::from_io_error(error), Some(Errno::AGAIN | Errno::NOMEM | Errno::MFILE | Errno::NFILE))
}

/// Asks the system to send `signal` to this process when its parent dies. The setting survives `exec`, except for
/// programs that gain privileges. On systems other than Linux, nothing is sent.
#[cfg(any(target_os = "linux", target_os = "android"))]
pub(crate) fn signal_at_death_of_parent(signal: Signal) -> io::Result<()> {
    Ok(rustix::process::set_parent_process_death_signal(Some(signal))?)
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
pub(crate) fn signal_at_death_of_parent(_signal: Signal) -> io::Result<()> {
    Ok(())
}
