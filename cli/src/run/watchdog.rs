//! The process between `run` and the command: it ends all that the command started when its deadline passes, or
//! when `run` is gone.
//!
//! As long as `run` is running, `run` orders the end in time. But `run` may be killed, or stopped by Ctrl-Z or a
//! debugger, while the command goes on. The watchdog is the command's parent, because only a parent's place lets it
//! find the orphans then: they become children of the nearest ancestor that adopts them. If the watchdog itself is
//! killed, that ancestor is `run`.

use std::ffi::OsString;
use std::io;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::process::{Command, ExitCode, ExitStatus};
use std::time::Duration;

use leaderelection::clock::{Clock as _, LocalInstant, SystemClock};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitOptions, WaitStatus, getpid, kill_process_group, wait};
use rustix::stdio::stdin;
use tokio::signal::unix::{SignalKind, signal};

use super::channel::{self, Listener, Speaker};
use super::family::{Below, Family, adopt_orphans};
use super::terminal::write_as_usual;
use super::words::{NotRun, Order, Report};
use super::{itself, signals};
use crate::exit::{Exit, Failure};
use crate::output::{LogFormat, fail_early};

/// Start a command, and end all that the command started in time.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The command is not started after this moment of the machine's clock, in nanoseconds
    #[arg(long)]
    start_until: u64,
    /// The command is killed at this moment, unless a later one is named in time
    #[arg(long)]
    live_until: u64,
    #[arg(long, default_value = "text")]
    log_format: LogFormat,
    #[arg(last = true, required = true)]
    command: Vec<OsString>,
}

/// The pause between two rounds of killing, if no process ends meanwhile.
const SHORTEST_PAUSE: Duration = Duration::from_millis(10);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// The time after which a watchdog without `run` leaves alone what it cannot end.
const GIVE_UP_AFTER: Duration = Duration::from_secs(10);

pub(super) fn run(args: &Args) -> ExitCode {
    let watch = || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        runtime.block_on(async { io::Result::Ok(Watch::start(args)?.until_over().await) })
    };
    let (exit, problem) = match watch() {
        Ok(None) => return Exit::Done.into(),
        Ok(Some(left)) => (Exit::LeftRunning, format!("cannot end {left}; end them, another leader may work already")),
        Err(error) => (Exit::Internal, format!("cannot watch over the command: {error}")),
    };
    fail_early(&Failure::new(exit, problem), args.log_format)
}

struct Watch {
    speaker: Speaker,
    listener: Listener,
    children: tokio::signal::unix::Signal,
    /// The process that becomes the command, until it has ended.
    command: Option<Pid>,
    /// Tells if that process could not become the command.
    start: Listener,
    below: Below,
    adopts: bool,
    deadline: LocalInstant,
    /// Everything is to be killed, for good.
    killing: bool,
    /// `run` is gone since then.
    alone_since: Option<LocalInstant>,
}

impl Watch {
    fn start(args: &Args) -> io::Result<Self> {
        let (speaker, listener) = channel::split(channel::take()?)?;
        // Service managers signal every process of a service, and `run` decides what a signal means. A handler that
        // does nothing, unlike an ignored signal, is not passed on to the command.
        for passed_on in signals::not_ignored() {
            drop(signal(SignalKind::from_raw(passed_on.as_raw()))?);
        }
        let children = signal(SignalKind::child())?;
        let adopts = adopt_orphans();
        write_as_usual();
        let mut command = Command::new(itself::path());
        command
            .arg0("leaderelect")
            .args([itself::START, "--parent", &getpid().to_string()])
            .args(["--until", &args.start_until.to_string()])
            .args(["--log-format", args.log_format.as_arg(), "--"])
            .args(&args.command)
            .process_group(0);
        let start = channel::give(&mut command, stdin())?;
        let child = command.spawn().inspect_err(|error| {
            let _ = speaker.say(Report::NotRun(NotRun::because_of(error)));
            let _ = speaker.say(Report::Gone);
        })?;
        // The helper's end of the socket is only the helper's.
        drop(command);
        let (_, start) = channel::split(start)?;
        let pid = Pid::from_child(&child);
        let _ = speaker.say(Report::Started(pid));
        // The directory of the command may be unmounted when the command has left it.
        let _ = std::env::set_current_dir("/");
        Ok(Self {
            speaker,
            listener,
            children,
            command: Some(pid),
            start,
            below: Below { root: getpid(), aside: None, group: Some(pid) },
            adopts,
            deadline: LocalInstant::from_nanos(args.live_until),
            killing: false,
            alone_since: None,
        })
    }

    /// Returns what is left in the end, although it should not be.
    async fn until_over(&mut self) -> Option<Family> {
        let mut pause = SHORTEST_PAUSE;
        loop {
            if !self.collect().await {
                let _ = self.speaker.say(Report::Gone);
                return None;
            }
            if self.killing {
                Family::find(self.below).signal(Signal::KILL);
            }
            if self.alone_since.is_some_and(|since| SystemClock.now().saturating_since(since) > GIVE_UP_AFTER) {
                return Some(Family::find(self.below));
            }
            tokio::select! {
                biased;
                order = self.listener.hear(), if self.alone_since.is_none() => self.obey(order),
                _ = self.children.recv() => pause = SHORTEST_PAUSE,
                _ = SystemClock.sleep_until(self.deadline), if !self.killing => self.killing = true,
                () = tokio::time::sleep(pause), if self.killing || !self.adopts => {
                    pause = (pause * 2).min(LONGEST_PAUSE);
                }
            }
        }
    }

    fn obey(&mut self, order: Option<Order>) {
        match order {
            Some(Order::LiveUntil(deadline)) => self.deadline = deadline,
            Some(Order::PassOn(signal)) => self.pass_on(signal),
            Some(Order::Terminate) => Family::find(self.below).signal(Signal::TERM),
            Some(Order::Kill) => self.killing = true,
            None => {
                self.killing = true;
                self.alone_since = Some(SystemClock.now());
            }
        }
    }

    fn pass_on(&self, signal: Signal) {
        let Some(group) = self.command else { return };
        if kill_process_group(group, signal) == Err(Errno::PERM) {
            let _ = self.speaker.say(Report::Refused(signal));
        }
        if signals::ends_the_wait(signal) {
            // A stopped command would not notice.
            let _ = kill_process_group(group, Signal::CONT);
        }
    }

    /// Collects the children that have ended, and reports about the command; `false` if no process is left.
    async fn collect(&mut self) -> bool {
        loop {
            match wait(WaitOptions::NOHANG | WaitOptions::UNTRACED) {
                Ok(Some((pid, status))) if self.command == Some(pid) => self.report(status).await,
                Ok(Some(_)) | Err(Errno::INTR) => {}
                Ok(None) => return true,
                // No child, and therefore no descendant, if this process adopts orphans.
                Err(_) => return !self.adopts && !Family::find(self.below).is_empty(),
            }
        }
    }

    async fn report(&mut self, status: WaitStatus) {
        if let Some(signal) = status.stopping_signal() {
            if let Some(signal) = Signal::from_named_raw(signal) {
                let _ = self.speaker.say(Report::Stopped(signal));
            }
            return;
        }
        self.command = None;
        // The socket is closed by now: by the start of the command, or by the end of the helper.
        let report = match self.start.hear().await {
            Some(why) => Report::NotRun(why),
            None => Report::Ended(ExitStatus::from_raw(status.as_raw())),
        };
        let _ = self.speaker.say(report);
    }
}
