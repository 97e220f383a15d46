//! The command, from its start until nothing that it started is left.

use std::env;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, IsTerminal as _};
use std::os::fd::AsFd;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::Path;
use std::process::{Child, Command, ExitStatus};

use leaderelection::clock::LocalInstant;
use rustix::process::{Pid, Signal, kill_process};
use rustix::stdio::stdin;
use tokio::signal::unix::{SignalKind, signal};

use super::channel::{self, Listener, Speaker};
use super::family::{Below, Family, adopt_orphans, reap_strays};
use super::orphans::Orphans;
use super::words::{Order, Report};
use super::{itself, start};
use crate::environment;
use crate::exit::{Exit, Failure};
use crate::output::LogFormat;

/// The program, its arguments, and its environment.
#[derive(Debug)]
pub(super) struct CommandLine {
    words: Vec<OsString>,
    identity: String,
    /// The URL of the lock, or those of the slots' locks.
    locks: Vec<String>,
    log_format: LogFormat,
    /// Variables that the command does not get.
    hidden: Vec<String>,
}

impl CommandLine {
    /// Fails now, rather than at the start of a term, if the program does not exist.
    pub(super) fn new(
        words: &[OsString],
        identity: &str,
        locks: Vec<String>,
        log_format: LogFormat,
    ) -> Result<Self, Failure> {
        if let Some(program) = words.first()
            && !exists(program)
        {
            let message = format!("{}: command not found", program.display());
            return Err(Failure::new(Exit::Code(127), message));
        }
        Ok(Self {
            words: words.to_vec(),
            identity: identity.to_owned(),
            locks,
            log_format,
            hidden: environment::set().collect(),
        })
    }

    /// Keeps variables from the command.
    pub(super) fn hide(&mut self, names: &[&str]) {
        self.hidden.extend(names.iter().map(|name| (*name).to_owned()));
    }

    /// The URL of the lock that is led, which is that of the slot if there are slots.
    fn lock(&self, slot: Option<u32>) -> &str {
        let index = usize::try_from(slot.unwrap_or_default()).unwrap_or(usize::MAX);
        self.locks.get(index).map(String::as_str).unwrap_or_default()
    }

    /// The failure if the program cannot be executed.
    pub(super) fn cannot_run(&self, error: &io::Error) -> Failure {
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
pub(super) struct Limits {
    /// The command is not started after this moment.
    pub(super) start_until: LocalInstant,
    /// The watchdog kills the command at this moment, unless it is told a later one.
    pub(super) live_until: LocalInstant,
}

/// Gives orders to the watchdog of a command.
#[derive(Clone, Debug)]
pub(super) struct Orders {
    watchdog: Pid,
    speaker: Speaker,
}

impl Orders {
    /// Gives an order. Fails if the watchdog is gone, or does not listen.
    pub(super) fn give(&self, order: Order) -> io::Result<()> {
        self.speaker.say(order)?;
        // A watchdog that somebody has stopped watches over nothing.
        Ok(kill_process(self.watchdog, Signal::CONT)?)
    }
}

/// A started command, and all that it started. If this is dropped before they are gone, the watchdog kills them.
#[derive(Debug)]
pub(super) struct Running {
    watchdog: Child,
    orders: Orders,
    reports: Listener,
    children: tokio::signal::unix::Signal,
    /// The process group of the command.
    group: Option<Pid>,
    /// The watchdog has reported the end of the command.
    ended: bool,
    /// Nothing is left.
    gone: bool,
    /// Present once the watchdog has been killed.
    orphans: Option<Orphans>,
}

impl Running {
    /// Starts the command in a process group of its own, under a watchdog.
    pub(super) fn start(line: &CommandLine, fencing_token: u64, slot: Option<u32>, limits: Limits) -> io::Result<Self> {
        adopt_orphans();
        // The signal handler is installed before the start, so that no end of a child is missed.
        let children = signal(SignalKind::child())?;
        let mut command = Command::new(itself::path());
        command
            .arg0("leaderelect")
            .args([itself::WATCHDOG, "--start-until", &limits.start_until.as_nanos().to_string()])
            .args(["--live-until", &limits.live_until.as_nanos().to_string()])
            .args(["--log-format", line.log_format.as_arg(), "--"])
            .args(&line.words)
            .env("LEADERELECTION_IDENTITY", &line.identity)
            .env("LEADERELECTION_FENCING_TOKEN", fencing_token.to_string())
            .env("LEADERELECTION_LOCK", line.lock(slot))
            // A separate process group does not get the signals that a terminal sends to our group.
            .process_group(0);
        // These may be secrets, and a leaderelect below the command would take them for its own.
        for name in &line.hidden {
            command.env_remove(name);
        }
        if let Some(slot) = slot {
            command.env("LEADERELECTION_SLOT", slot.to_string());
        }
        // Only the terminal's foreground process group may read from the terminal: the system stops other readers.
        let nothing = if io::stdin().is_terminal() { Some(File::open("/dev/null")?) } else { None };
        let socket = channel::give(&mut command, nothing.as_ref().map_or(stdin(), AsFd::as_fd))?;
        let watchdog = command.spawn()?;
        // The watchdog's end of the socket is only the watchdog's.
        drop(command);
        let (speaker, reports) = channel::split(socket)?;
        let orders = Orders { watchdog: Pid::from_child(&watchdog), speaker };
        Ok(Self { watchdog, orders, reports, children, group: None, ended: false, gone: false, orphans: None })
    }

    pub(super) fn orders(&self) -> Orders {
        self.orders.clone()
    }

    /// The process group of the command, if the command was started.
    pub(super) fn group(&self) -> Option<Pid> {
        self.group
    }

    fn below(&self) -> Below {
        match &self.orphans {
            Some(orphans) => orphans.below(),
            None => Below { root: self.orders.watchdog, aside: None, group: self.group },
        }
    }

    /// The processes that are left.
    pub(super) fn left(&self) -> Family {
        Family::find(self.below())
    }

    /// Returns the next report: about the [end](Report::Ended) of the command exactly once, and then, as the last,
    /// [that nothing is left](Report::Gone). Cancellation safe.
    pub(super) async fn next(&mut self) -> Report {
        let report = self.receive().await;
        self.ended |= matches!(report, Report::Ended(_) | Report::NotRun(_));
        self.gone |= report == Report::Gone;
        report
    }

    async fn receive(&mut self) -> Report {
        loop {
            if let Some(orphans) = &mut self.orphans {
                return orphans.next(&mut self.children, self.orders.watchdog, self.ended).await;
            }
            tokio::select! {
                biased;
                report = self.reports.hear() => match report {
                    Some(Report::Started(pid)) => self.group = Some(pid),
                    Some(report) => return report,
                    None => {
                        tracing::error!("the watchdog is gone: ending the command");
                        // A process that ends closes its sockets first, and only then gives its children away.
                        let _ = self.watchdog.kill();
                        let _ = self.watchdog.wait();
                        self.orphans = Some(Orphans::left_behind(self.group));
                        self.terminate();
                    }
                },
                _ = self.children.recv() => reap_strays(&[Some(self.orders.watchdog), self.group]),
            }
        }
    }

    /// Sends SIGTERM to all processes.
    pub(super) fn terminate(&self) {
        if self.orphans.is_some() || self.orders.give(Order::Terminate).is_err() {
            self.left().signal(Signal::TERM);
        }
    }

    /// Kills all processes, until nothing is left.
    pub(super) fn kill(&mut self) {
        let _ = self.orders.give(Order::Kill);
        if let Some(orphans) = &mut self.orphans {
            orphans.killing = true;
        }
        // The watchdog does this too, and again, if it runs.
        self.left().signal(Signal::KILL);
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if self.gone {
            // A stopped watchdog would never end by itself.
            let _ = self.watchdog.kill();
            let _ = self.watchdog.wait();
        } else if self.orphans.is_none() {
            let _ = kill_process(self.orders.watchdog, Signal::CONT);
        }
    }
}

/// Returns the exit code that a shell would report.
pub(super) fn exit(status: ExitStatus) -> Exit {
    match (status.code(), status.signal()) {
        (Some(code), _) => Exit::Code(u8::try_from(code).unwrap_or(u8::MAX)),
        (None, Some(signal)) => Exit::by_signal(signal),
        (None, None) => Exit::Internal,
    }
}
