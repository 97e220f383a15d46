//! The parent of the command: it ends all that the command started when its deadline passes, or when `run` is gone.
//!
//! As long as `run` is running, `run` orders the end in time. But `run` may be killed, or stopped by Ctrl-Z or a
//! debugger, while the command runs on. The watchdog is the command's parent, because only a parent's place lets it
//! find the orphans then: they become children of the nearest ancestor that adopts them. If the watchdog itself is
//! killed, that ancestor is the guard.

use std::io;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::process::ExitStatus;
use std::time::Duration;

use chrono::SecondsFormat;
use leaderelection::clock::{Clock as _, LocalInstant, SystemClock};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitOptions, WaitStatus, getpid, kill_process_group, wait};
use rustix::stdio::stdin;
use tokio::signal::unix::{SignalKind, signal};

use super::channel::{self, Listener, Speaker};
use super::messages::{NotRun, Order, Report};
use super::process_tree::{Below, Family, adopt_orphans};
use super::reexec::{self, START, WATCHDOG};
use super::signals;
use super::start::signal_at_death_of_parent;
use super::terminal::write_as_usual;
use crate::exit::{Exit, Failure};
use crate::output::{Format, Output};

/// Start a command, and end all that the command started in time.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The command is not started after this moment of the machine's clock, in nanoseconds
    #[arg(long)]
    start_until: u64,
    /// The command is killed at this moment, unless a later one is named in time
    #[arg(long)]
    live_until: u64,
    /// The format of messages, for the program around
    #[arg(long, default_value = "text")]
    pub(crate) log_format: Format,
}

/// The pause between two rounds of killing, if no process ends meanwhile.
pub(crate) const SHORTEST_PAUSE: Duration = Duration::from_millis(10);
pub(crate) const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// The time after which a watchdog or a guard without `run` leaves alone what it cannot end.
pub(crate) const GIVE_UP_AFTER: Duration = Duration::from_secs(10);

pub(crate) fn run(args: &Args) -> Result<Exit, Failure> {
    let watch = || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        runtime.block_on(async {
            let mut watch = Watch::start(args)?;
            let left = watch.until_over().await;
            let _until_written = watch.output.as_ref().map(Output::until_written);
            io::Result::Ok(left)
        })
    };
    match watch() {
        Ok(None) => Ok(Exit::Done),
        Ok(Some(left)) => {
            let message = format!("cannot kill {left}; stop them, because another leader may be active already");
            Err(Failure::new(Exit::LeftRunning, message))
        }
        Err(error) => Err(Failure::internal(format!("cannot supervise the command: {error}"))),
    }
}

/// Survives the signals that are for everybody. Service managers signal every process of a service, and `run` decides
/// what a signal means. A handler that does nothing, unlike an ignored signal, is not passed on to the command.
pub(crate) fn withstand_signals() -> io::Result<()> {
    signals::outlive_full_files();
    for raw in signals::not_ignored().map(Signal::as_raw).chain(signals::LIKE_TERM) {
        drop(signal(SignalKind::from_raw(raw))?);
    }
    Ok(())
}

/// The reason for which the watchdog kills without an order.
#[derive(Clone, Copy, Debug)]
enum Reason {
    /// The deadline has passed.
    Deadline,
    /// `run` is gone.
    Alone,
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
    /// The reason that this process itself has to kill, until it is told.
    reason: Option<Reason>,
    format: Format,
    /// Messages that are being written.
    output: Option<Output>,
    /// `run` is gone since then.
    alone_since: Option<LocalInstant>,
}

impl Watch {
    fn start(args: &Args) -> io::Result<Self> {
        reexec::take_name(WATCHDOG);
        // A stopped watchdog would not see that `run` is gone, and nobody else would continue it.
        signal_at_death_of_parent(Signal::CONT)?;
        let (speaker, listener) = channel::split(channel::take()?)?;
        let _ = speaker.say(Report::Watching(getpid()));
        withstand_signals()?;
        let children = signal(SignalKind::child())?;
        let adopts = adopt_orphans();
        write_as_usual();
        let words = reexec::told_words();
        let mut command = reexec::helper(START);
        command
            .args(["--parent", &getpid().to_string(), "--until", &args.start_until.to_string()])
            .args(["--log-format", args.log_format.as_arg(), "--"])
            .args(&words)
            .process_group(0);
        reexec::forget_words(&mut command);
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
            below: Below::this_process(Some(pid)),
            adopts,
            deadline: LocalInstant::from_nanos(args.live_until),
            killing: false,
            reason: None,
            format: args.log_format,
            output: None,
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
                self.kill();
            }
            if self.alone_since.is_some_and(|since| SystemClock.now().saturating_since(since) > GIVE_UP_AFTER) {
                return Some(Family::find(self.below));
            }
            tokio::select! {
                biased;
                order = self.listener.receive(), if self.alone_since.is_none() => self.apply(order),
                _ = self.children.recv() => pause = SHORTEST_PAUSE,
                _ = SystemClock.sleep_until(self.deadline), if !self.killing => {
                    self.kill_because(Reason::Deadline);
                }
                () = tokio::time::sleep(pause), if self.killing || !self.adopts => {
                    pause = (pause * 2).min(LONGEST_PAUSE);
                }
            }
        }
    }

    fn apply(&mut self, order: Option<Order>) {
        match order {
            Some(Order::LiveUntil(deadline)) => self.deadline = deadline,
            Some(Order::PassOn(signal)) => self.pass_on(signal),
            Some(Order::Terminate) => Family::find(self.below).signal(Signal::TERM),
            Some(Order::Kill) => self.killing = true,
            None => {
                self.kill_because(Reason::Alone);
                self.alone_since = Some(SystemClock.now());
            }
        }
    }

    fn kill_because(&mut self, reason: Reason) {
        if !std::mem::replace(&mut self.killing, true) {
            self.reason = Some(reason);
        }
    }

    /// One round of killing.
    fn kill(&mut self) {
        let began = SystemClock.now();
        let command = self.command;
        if let Some(group) = command {
            // At once, and also where no walk through /proc is possible for want of descriptors.
            let _ = kill_process_group(group, Signal::KILL);
        }
        let family = Family::find(self.below);
        family.signal(Signal::KILL);
        if let Some(reason) = self.reason.take().filter(|_| command.is_some() || !family.is_empty()) {
            self.tell(reason, began);
        }
    }

    /// Says when the command was killed, on a thread that may wait for standard error. The next question is whether that was
    /// in time.
    fn tell(&mut self, reason: Reason, began: LocalInstant) {
        let (now, wall_time) = (SystemClock.now(), SystemClock.wall_time());
        let time = |moment: LocalInstant| {
            let time = wall_time + moment.saturating_since(now) - now.saturating_since(moment);
            time.to_rfc3339_opts(SecondsFormat::Millis, true)
        };
        let (deadline, killed, took) = (time(self.deadline), time(began), now.saturating_since(began));
        // Without a thread, there is no message.
        self.output = Output::of_helper(self.format).ok();
        match reason {
            Reason::Deadline => {
                tracing::warn!(deadline, killed, ?took, "killed the command: its term was not renewed in time")
            }
            Reason::Alone => tracing::warn!(deadline, killed, ?took, "killed the command: leaderelect died"),
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
        let not_run = self.start.receive().await;
        let _ = self.speaker.say(not_run.unwrap_or(Report::Ended(ExitStatus::from_raw(status.as_raw()))));
    }
}
