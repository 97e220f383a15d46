//! The command, from its start until nothing that it started is left.

use std::env;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::AsFd as _;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::Path;
use std::process::{self, ExitStatus};
use std::time::Duration;

use leaderelection::clock::LocalInstant;
use rustix::io::Errno;
use rustix::process::{Pid, Signal, kill_process};
use tokio::signal::unix::{SignalKind, signal};

use super::channel::{self, Listener, Speaker};
use super::guards::Guards;
use super::input::Input;
use super::messages::{NotRun, Order, Report};
use super::process_tree::{Family, adopt_orphans, reap_strays};
use super::reexec::GUARD;
use super::start::LISTEN_PID;
use super::{reexec, start};
use crate::exit::{Exit, Failure};
use crate::output::Format;

/// The program, its arguments, and what it does not get of this process's environment.
#[derive(Debug)]
pub(crate) struct CommandLine {
    words: Vec<OsString>,
    /// The format of messages, for the processes beside the command.
    log_format: Format,
    /// Variables that the command does not get.
    hidden: Vec<String>,
    input: Input,
}

impl CommandLine {
    /// Fails now, rather than at the start of a term, if the program does not exist.
    pub(crate) fn new(
        words: &[OsString],
        hidden: Vec<String>,
        log_format: Format,
        input: Input,
    ) -> Result<Self, Failure> {
        if let Some(program) = words.first()
            && !exists(program)
        {
            return Err(Failure::new(Exit::Code(127), format!("{}: command not found", program.display())));
        }
        reexec::check()?;
        Ok(Self { words: words.to_vec(), log_format, hidden, input })
    }

    /// The failure if the program cannot be executed.
    pub(crate) fn cannot_run(&self, error: &io::Error) -> Failure {
        start::cannot_run(self.words.first().map(OsString::as_os_str).unwrap_or_default(), error)
    }
}

fn exists(program: &OsStr) -> bool {
    if Path::new(program).components().count() != 1 || program.as_encoded_bytes().contains(&b'/') {
        return Path::new(program).exists();
    }
    // Without PATH, the system searches directories of its own choice.
    env::var_os("PATH").is_none_or(|path| env::split_paths(&path).any(|folder| folder.join(program).is_file()))
}

/// The moments that a new command is bound by.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// The command is not started after this moment.
    pub(crate) start_until: LocalInstant,
    /// The watchdog kills the command at this moment, unless it gets a later one.
    pub(crate) live_until: LocalInstant,
}

/// Gives orders to the watchdog of a command.
#[derive(Clone, Debug)]
pub(crate) struct Orders {
    guard: Pid,
    speaker: Speaker,
}

impl Orders {
    /// Gives an order. Fails if the watchdog is gone, or does not listen.
    pub(crate) fn give(&self, order: Order) -> io::Result<()> {
        self.speaker.say(order)?;
        // A guard that somebody has stopped guards nothing. A guard that runs continues the watchdog.
        Ok(kill_process(self.guard, Signal::CONT)?)
    }
}

/// The pause between two rounds of killing when a guard is gone, if no process ends meanwhile.
const PAUSE: Duration = Duration::from_millis(50);

/// A started command, and all that it started. If this is dropped before they are gone, the watchdog kills them.
#[derive(Debug)]
pub(crate) struct Running {
    guards: Guards,
    orders: Orders,
    reports: Listener,
    children: tokio::signal::unix::Signal,
    /// Somebody has killed the watchdog.
    unwatched: bool,
    /// The end of the command was reported.
    ended: bool,
    /// Nothing is left.
    gone: bool,
}

impl Running {
    /// Starts the command in a process group of its own, under a guard and a watchdog, with these variables.
    pub(crate) fn start(line: &CommandLine, variables: &[(&str, String)], limits: Limits) -> io::Result<Self> {
        adopt_orphans();
        // The signal handler is installed before the start, so that no end of a child is missed.
        let children = signal(SignalKind::child())?;
        let mut command = reexec::helper(GUARD);
        command
            .args(["--start-until", &limits.start_until.as_nanos().to_string()])
            .args(["--live-until", &limits.live_until.as_nanos().to_string()])
            .args(["--log-format", line.log_format.as_arg()])
            // A separate process group does not get the signals that a terminal sends to our group.
            .process_group(0);
        // These may be secrets, and a leaderelect below the command would take them for its own.
        for name in &line.hidden {
            command.env_remove(name);
        }
        command.envs(variables.iter().map(|(name, value)| (name, value)));
        if env::var_os(LISTEN_PID).is_some_and(|pid| pid == process::id().to_string().as_str()) {
            // The sockets that systemd has opened for this process are for the command, whose number is not known yet.
            command.env(LISTEN_PID, "0");
        }
        reexec::pass_messages(&mut command, &line.words);
        let socket = channel::give(&mut command, line.input.as_fd())?;
        let guard = command.spawn()?;
        // The watchdog's end of the socket is only the watchdog's.
        drop(command);
        let (speaker, reports) = channel::split(socket)?;
        let orders = Orders { guard: Pid::from_child(&guard), speaker };
        let guards = Guards::new(guard);
        Ok(Self { guards, orders, reports, children, unwatched: false, ended: false, gone: false })
    }

    pub(crate) fn orders(&self) -> Orders {
        self.orders.clone()
    }

    /// The process group of the command, if the command was started.
    pub(crate) fn group(&self) -> Option<Pid> {
        self.guards.group
    }

    /// The processes that are left.
    pub(crate) fn left(&self) -> Family {
        self.guards.left()
    }

    /// Returns the next report: about the [end](Report::Ended) of the command exactly once, and then, as the last,
    /// [that nothing is left](Report::Gone). Cancellation safe.
    pub(crate) async fn next(&mut self) -> Report {
        let report = self.receive().await;
        self.ended |= matches!(report, Report::Ended(_) | Report::NotRun(_));
        self.gone |= report == Report::Gone;
        report
    }

    async fn receive(&mut self) -> Report {
        loop {
            if self.unwatched && !self.ended {
                // The system kills the command with its watchdog.
                return Report::Ended(ExitStatus::from_raw(Signal::KILL.as_raw()));
            }
            let is_bereft = self.unwatched || self.guards.is_without_guard();
            if is_bereft && self.guards.kill_rest() && self.unwatched {
                return Report::Gone;
            }
            tokio::select! {
                biased;
                report = self.reports.receive(), if !self.unwatched => match report {
                    Some(Report::Watching(pid)) => self.guards.watchdog = Some(pid),
                    Some(Report::Started(pid)) => self.guards.group = Some(pid),
                    Some(report) => return report,
                    None => {
                        self.unwatched = true;
                        if self.guards.watchdog.take().is_none() {
                            // The guard could not start it, and has said why.
                            return Report::NotRun(NotRun::because_of(&Errno::AGAIN.into()));
                        }
                        tracing::error!("the watchdog died; killing the command");
                    }
                },
                _ = self.children.recv() => {
                    if self.guards.has_lost_guard() && !self.unwatched {
                        tracing::error!("the guard of the watchdog died; killing the command");
                        let _ = self.orders.give(Order::Kill);
                    }
                    reap_strays(&[self.guards.awaited()]);
                }
                () = tokio::time::sleep(PAUSE), if is_bereft => {}
            }
        }
    }

    /// Sends SIGTERM to all processes.
    pub(crate) fn terminate(&self) {
        if self.orders.give(Order::Terminate).is_err() {
            self.left().signal(Signal::TERM);
        }
    }

    /// Kills all processes, until nothing is left.
    pub(crate) fn kill(&self) {
        let _ = self.orders.give(Order::Kill);
        // The watchdog does this too, and again, if it runs.
        self.left().signal(Signal::KILL);
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        match self.gone {
            true => self.guards.dismiss(),
            false => self.guards.wake(),
        }
    }
}
