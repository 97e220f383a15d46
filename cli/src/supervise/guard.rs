//! The process between `run` and the watchdog. It continues a watchdog that somebody stops, and kills all that the
//! command started if somebody kills the watchdog.
//!
//! Three processes watch over a command: `run`, this one, and the watchdog. If any two of them are killed or stopped, the
//! third ends the command before another candidate leads. Each adopts orphans, so each finds all that is below it. If
//! `run` is killed, the watchdog acts; if the watchdog is killed, this process and `run` act; if this process is killed,
//! `run` and the watchdog act.

use std::env;
use std::fs::File;
use std::io;
use std::thread::sleep;

use leaderelection::clock::{Clock as _, SystemClock};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitOptions, getppid, kill_process, wait, waitpid};

use super::process_tree::{Below, Family, adopt_orphans};
use super::reexec::{self, GUARD, WATCHDOG};
use super::start::signal_at_death_of_parent;
use super::watchdog::{GIVE_UP_AFTER, LONGEST_PAUSE, SHORTEST_PAUSE, withstand_signals};
use crate::exit::{Exit, Failure};

pub(crate) fn run() -> Result<Exit, Failure> {
    let nothing_left = tokio::runtime::Builder::new_current_thread().enable_all().build().and_then(|runtime| {
        let _within = runtime.enter();
        guard()
    });
    match nothing_left {
        Ok(true) => Ok(Exit::Done),
        Ok(false) => Ok(Exit::LeftRunning),
        Err(error) => Err(Failure::internal(format!("cannot guard the watchdog of the command: {error}"))),
    }
}

/// Returns `true` if nothing is left of the command.
fn guard() -> io::Result<bool> {
    reexec::take_name(GUARD);
    withstand_signals()?;
    // A stopped guard would not see that the watchdog is stopped.
    signal_at_death_of_parent(Signal::CONT)?;
    let run = getppid();
    let adopts = adopt_orphans();
    // The standard input is the watchdog's end of its socket to `run`.
    let mut watchdog = reexec::helper(WATCHDOG);
    let watchdog = Pid::from_child(&watchdog.args(env::args_os().skip(2)).spawn()?);
    // Only the watchdog holds its end, so that `run` notices the end of the watchdog.
    rustix::stdio::dup2_stdin(File::open("/dev/null")?)?;
    // The directory of the command may be unmounted when the command has left it.
    let _ = env::set_current_dir("/");
    loop {
        match waitpid(Some(watchdog), WaitOptions::UNTRACED) {
            Ok(Some((_, status))) if status.stopped() => drop(kill_process(watchdog, Signal::CONT)),
            Ok(Some((_, status))) if status.exit_status() == Some(0) => return Ok(true),
            Ok(None) | Err(Errno::INTR) => {}
            Ok(Some(_)) | Err(_) => break,
        }
    }
    Ok(adopts && kill_all(run))
}

/// Kills all that is below this process. Returns `false` if it gave up, because `run` is gone, too.
fn kill_all(run: Option<Pid>) -> bool {
    let (mut pause, began) = (SHORTEST_PAUSE, SystemClock.now());
    loop {
        Family::find(Below::this_process(None)).signal(Signal::KILL);
        loop {
            match wait(WaitOptions::NOHANG) {
                Ok(Some(_)) | Err(Errno::INTR) => {}
                Ok(None) => break,
                // No child, and therefore no descendant.
                Err(_) => return true,
            }
        }
        if getppid() != run && SystemClock.now().saturating_since(began) > GIVE_UP_AFTER {
            return false;
        }
        sleep(pause);
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}
