//! A small process that kills the command's process group when its deadline passes, or when `run` has ended.
//!
//! As long as `run` is running, `run` kills the group in time. But `run` may be killed, or stopped by Ctrl-Z or
//! a debugger, while the command goes on. The watchdog then watches the clock in its place.

use std::io::{self, Write as _};
use std::os::fd::AsFd as _;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, ChildStdin, Command, ExitCode, Stdio};
use std::time::Duration;

use leaderelection::clock::{Clock as _, LocalInstant, SystemClock};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::process::{Pid, Signal, kill_process_group};

use super::itself;
use crate::exit::Exit;

/// Watch over a process group, with deadlines from standard input.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The process group
    #[arg(long)]
    group: i32,
}

/// The message of `run` that the group has ended.
const ALL_DONE: u64 = 0;

/// The interval between looks at the clock. The clock that counts suspend has no timer on every system.
const TICK: Duration = Duration::from_millis(200);

/// Runs the watchdog's side.
///
/// Standard input contains deadlines, 8 bytes each, in nanoseconds of the machine's clock. The last deadline
/// counts.
pub(super) fn run(args: &Args) -> ExitCode {
    let Some(group) = Pid::from_raw(args.group) else { return Exit::Usage.into() };
    let mut deadline = None;
    loop {
        match next(deadline) {
            Some(ALL_DONE) => return Exit::Done.into(),
            Some(nanos) => deadline = Some(LocalInstant::from_nanos(nanos)),
            None => {
                let _ = kill_process_group(group, Signal::KILL);
                return Exit::Done.into();
            }
        }
    }
}

/// Returns the next message of `run`; `None` if the deadline has passed or if `run` has ended.
fn next(deadline: Option<LocalInstant>) -> Option<u64> {
    let stdin = io::stdin();
    loop {
        let left = deadline.map(|deadline| deadline.saturating_since(SystemClock.now()));
        if left.is_some_and(|left| left.is_zero()) {
            return None;
        }
        let tick = left.map_or(TICK, |left| left.min(TICK));
        let timeout = Timespec::try_from(tick).ok()?;
        if poll(&mut [PollFd::new(&stdin.as_fd(), PollFlags::IN)], Some(&timeout)).unwrap_or(0) > 0 {
            // `poll` does not see the standard library's buffer, so this reads past that buffer. A pipe
            // delivers whole words.
            let mut word = [0; 8];
            return (rustix::io::read(&stdin, &mut word).ok()? == word.len()).then(|| u64::from_le_bytes(word));
        }
    }
}

/// The watchdog as seen by `run`.
#[derive(Debug)]
pub(super) struct Watchdog {
    process: Child,
    deadlines: ChildStdin,
    last: Option<LocalInstant>,
}

impl Watchdog {
    /// Starts to watch over `group`.
    pub(super) fn start(group: Pid) -> io::Result<Self> {
        let mut process = Command::new(itself::path())
            .arg0("leaderelect")
            .args([itself::WATCHDOG, "--group", &group.as_raw_nonzero().to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            // A separate process group does not get the signals that a terminal sends to our group.
            .process_group(0)
            .current_dir("/")
            .spawn()?;
        let Some(deadlines) = process.stdin.take() else { return Err(io::ErrorKind::BrokenPipe.into()) };
        // A stopped watchdog must not block this process when the pipe is full.
        fcntl_setfl(&deadlines, fcntl_getfl(&deadlines)? | OFlags::NONBLOCK)?;
        Ok(Self { process, deadlines, last: None })
    }

    /// Allows the group to live until `deadline`.
    pub(super) fn allow_until(&mut self, deadline: LocalInstant) -> io::Result<()> {
        if self.last == Some(deadline) {
            return Ok(());
        }
        self.tell(deadline.as_nanos())?;
        self.last = Some(deadline);
        Ok(())
    }

    /// Tells the watchdog that the group has ended.
    pub(super) fn dismiss(&mut self) {
        let _ = self.tell(ALL_DONE);
    }

    fn tell(&mut self, word: u64) -> io::Result<()> {
        self.deadlines.write_all(&word.to_le_bytes())
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        // The watchdog is no longer needed. A stopped watchdog would never end by itself.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
