//! A small process that kills the command's process group when its time is up, or when `run` is gone.
//!
//! `run` itself does so in time, as long as it runs. It may be killed, or stopped by Ctrl-Z or a debugger,
//! while the command goes on; so somebody else watches the clock.

use std::io::{self, Write as _};
use std::os::fd::AsFd as _;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, ChildStdin, Command, ExitCode, Stdio};
use std::time::Duration;

use leaderelection::clock::{Clock as _, LocalInstant, SystemClock};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::process::{Pid, Signal, kill_process_group};

use crate::exit::Exit;

/// Watch over a process group, as standard input says.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The process group
    #[arg(long)]
    group: i32,
}

/// What `run` says when the group has ended.
const ALL_DONE: u64 = 0;

/// The clock that counts suspend has no timer that everybody has: so it is looked at this often.
const TICK: Duration = Duration::from_millis(200);

/// The watchdog's side.
///
/// Standard input has deadlines, 8 bytes each, in nanoseconds of the machine's clock; the last one counts.
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

/// What `run` says next; `None` if it is too late, or if `run` is gone.
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
            // Past the buffer of the standard library, of which `poll` knows nothing. A pipe gives whole words.
            let mut word = [0; 8];
            return (rustix::io::read(&stdin, &mut word).ok()? == word.len()).then(|| u64::from_le_bytes(word));
        }
    }
}

/// The side of `run`.
#[derive(Debug)]
pub(super) struct Watchdog {
    process: Child,
    deadlines: ChildStdin,
    last: Option<LocalInstant>,
}

impl Watchdog {
    /// Watches over `group` from now on.
    pub(super) fn start(group: Pid) -> io::Result<Self> {
        let mut process = Command::new(super::command::this_program())
            .arg0("leaderelect")
            .args([super::helper::WATCHDOG, "--group", &group.as_raw_nonzero().to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            // Not ended by what a terminal sends to our group.
            .process_group(0)
            .current_dir("/")
            .spawn()?;
        let Some(deadlines) = process.stdin.take() else { return Err(io::ErrorKind::BrokenPipe.into()) };
        // A watchdog that is stopped must not stop us when the pipe is full.
        fcntl_setfl(&deadlines, fcntl_getfl(&deadlines)? | OFlags::NONBLOCK)?;
        Ok(Self { process, deadlines, last: None })
    }

    /// The group may live until `deadline`.
    pub(super) fn allow_until(&mut self, deadline: LocalInstant) -> io::Result<()> {
        if self.last == Some(deadline) {
            return Ok(());
        }
        self.tell(deadline.as_nanos())?;
        self.last = Some(deadline);
        Ok(())
    }

    /// The group has ended.
    pub(super) fn dismiss(&mut self) {
        let _ = self.tell(ALL_DONE);
    }

    fn tell(&mut self, word: u64) -> io::Result<()> {
        self.deadlines.write_all(&word.to_le_bytes())
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        // Its work is done, or was done by whoever drops it. It may be stopped, and then would never end.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
