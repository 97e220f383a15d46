//! The work of a leader: runs the command, and ends it in time.

use std::io;
use std::os::unix::process::ExitStatusExt as _;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use leaderelection::clock::{Clock as _, LocalInstant, SystemClock};
use leaderelection::{Leadership, Timings};
use rustix::process::{Pid, Signal, kill_process_group};
use tokio_util::sync::CancellationToken;

use super::command::{CommandLine, Running, exit};
use super::signals;
use crate::exit::{Exit, Failure};
use crate::output::Output;

/// The time that processes left behind by a command get to end.
const PATIENCE_WITH_LEFTOVERS: Duration = Duration::from_secs(5);

/// The end of the command.
#[derive(Debug)]
pub(super) enum Ended {
    NotStarted(Failure),
    ByItself(Exit),
    /// This process ended the command, because leadership was lost.
    Lost {
        how: &'static str,
    },
}

/// The job of running the command in every term.
#[derive(Debug)]
pub(super) struct Job {
    command: CommandLine,
    /// The time from the loss of leadership until another candidate may lead.
    gap: Duration,
    /// The interval between checks whether the lease was renewed.
    renewals: Duration,
    shutdown: CancellationToken,
    output: Output,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    begun: bool,
    /// The process group of the running command.
    group: Option<Pid>,
    /// The current term is the last one.
    finishing: bool,
    end: Option<Ended>,
}

impl Job {
    pub(super) fn new(command: CommandLine, timings: &Timings, shutdown: CancellationToken, output: Output) -> Self {
        let gap = timings.lease_duration().saturating_sub(timings.renew_deadline());
        let state = Mutex::default();
        Self { command, gap, renewals: timings.retry_period() / 2, shutdown, output, state }
    }

    /// Returns `true` if the command of any term was started.
    pub(super) fn has_begun(&self) -> bool {
        self.with(|state| state.begun)
    }

    /// Takes the end of the last command; `None` if no command ran, or if its end could not be observed.
    pub(super) fn take_end(&self) -> Option<Ended> {
        self.with(|state| state.end.take())
    }

    /// Returns `true` if a signal to the command made its term the last one.
    pub(super) fn is_finishing(&self) -> bool {
        self.with(|state| state.finishing)
    }

    /// Passes the signal on to the command; returns `false` if none runs.
    pub(super) fn on_signal(&self, signal: Signal) -> bool {
        self.with(|state| {
            let passed_on = state.group.is_some_and(|group| kill_process_group(group, signal).is_ok());
            state.finishing |= passed_on && signals::ends_the_campaign(signal);
            passed_on
        })
    }

    /// Does the work of one term.
    pub(super) async fn lead(self: Arc<Self>, leadership: Leadership) {
        if !leadership.is_valid() {
            return;
        }
        let token = leadership.fencing_token();
        self.output.say(format_args!("leading with fencing token {token}"));
        let mut running = match Running::start(&self.command, token) {
            Ok(running) => running,
            Err(error) => return self.cannot_start(error),
        };
        self.with(|state| (state.begun, state.group, state.end) = (true, Some(running.group()), None));
        let ended = self.run_to_its_end(&leadership, &mut running).await;
        drop(running);
        let finishing = self.with(|state| {
            state.group = None;
            state.end = Some(ended);
            state.finishing
        });
        if finishing {
            self.shutdown.cancel();
        } else {
            leadership.step_down();
        }
    }

    fn cannot_start(&self, error: io::Error) {
        let failure = Failure::new(Exit::Code(126), format!("cannot start the command: {error}"));
        self.with(|state| state.end = Some(Ended::NotStarted(failure)));
        self.shutdown.cancel();
    }

    async fn run_to_its_end(&self, leadership: &Leadership, running: &mut Running) -> Ended {
        let lost = loop {
            self.keep_watchdog(leadership, running);
            tokio::select! {
                biased;
                () = running.ended() => break false,
                () = leadership.lost() => break true,
                () = tokio::time::sleep(self.renewals) => {}
            }
        };
        if lost {
            running.signal(Signal::TERM);
            self.output.say("leadership is lost: ending the command");
            tokio::select! {
                biased;
                () = running.ended() => {}
                () = SystemClock.sleep_until(self.kill_at(leadership)) => {
                    running.signal(Signal::KILL);
                    running.ended().await;
                }
            }
        }
        // While this process was stopped, the watchdog may have killed the command. Then both ends are news at once.
        let over = lost || !leadership.is_valid();
        let status = running.clean_up(self.patience(leadership)).await;
        match status {
            Ok(status) if over && status.signal() == Some(Signal::KILL.as_raw()) => Ended::Lost { how: "was killed" },
            _ if lost => Ended::Lost { how: "was ended with SIGTERM" },
            Ok(status) => Ended::ByItself(exit(status)),
            Err(error) => {
                Ended::NotStarted(Failure::new(Exit::Internal, format!("cannot wait for the command: {error}")))
            }
        }
    }

    /// Tells the watchdog about every renewal, and replaces a watchdog that has ended.
    fn keep_watchdog(&self, leadership: &Leadership, running: &mut Running) {
        // This deadline is later than our own kill, and early enough for the processes to end in time.
        let deadline = leadership.valid_until() + self.gap * 3 / 4;
        if running.watchdog.allow_until(deadline).is_err()
            && let Err(error) = running.renew_watchdog(deadline)
        {
            tracing::error!(%error, "the command runs without a watchdog; do not stop this process");
        }
    }

    /// Waits, while this process leads, for the time that processes left behind by a command get.
    async fn patience(&self, leadership: &Leadership) {
        tokio::select! {
            biased;
            () = tokio::time::sleep(PATIENCE_WITH_LEFTOVERS) => {}
            () = async {
                leadership.lost().await;
                SystemClock.sleep_until(self.kill_at(leadership)).await;
            } => {}
        }
    }

    fn kill_at(&self, leadership: &Leadership) -> LocalInstant {
        leadership.valid_until() + self.gap / 2
    }

    fn with<T>(&self, work: impl FnOnce(&mut State) -> T) -> T {
        work(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
