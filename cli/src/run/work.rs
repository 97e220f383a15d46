//! What a leader does: it runs the command, and ends it in time.

use std::io;
use std::os::unix::process::ExitStatusExt as _;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use leaderelection::Leadership;
use leaderelection::clock::{Clock as _, LocalInstant, SystemClock};
use rustix::process::{Pid, Signal, kill_process_group};
use tokio_util::sync::CancellationToken;

use super::command::{CommandLine, Running, exit};
use super::signals;
use crate::exit::{Exit, Failure};
use crate::output::Output;
use crate::timing::Timing;

/// How long the processes that a command leaves behind may take to end.
const PATIENCE_WITH_LEFTOVERS: Duration = Duration::from_secs(5);

/// How the command ended.
#[derive(Debug)]
pub(super) enum Ended {
    NotStarted(Failure),
    ByItself(Exit),
    /// By us, because leadership was lost.
    Lost {
        how: &'static str,
    },
}

/// The command, for every term.
#[derive(Debug)]
pub(super) struct Job {
    command: CommandLine,
    /// From the loss of leadership until another may lead.
    gap: Duration,
    /// How often to see whether the lease was renewed.
    renewals: Duration,
    shutdown: CancellationToken,
    output: Output,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    begun: bool,
    /// The group of the command that runs.
    group: Option<Pid>,
    /// Whether this is the last term.
    finishing: bool,
    end: Option<Ended>,
}

impl Job {
    pub(super) fn new(command: CommandLine, timing: &Timing, shutdown: CancellationToken, output: Output) -> Self {
        let gap = timing.lease.saturating_sub(timing.renew());
        let state = Mutex::default();
        Self { command, gap, renewals: timing.retry() / 2, shutdown, output, state }
    }

    /// Whether the command of any term was started.
    pub(super) fn has_begun(&self) -> bool {
        self.with(|state| state.begun)
    }

    /// How the last command ended; `None` if there was none, or if nobody could wait for its end.
    pub(super) fn take_end(&self) -> Option<Ended> {
        self.with(|state| state.end.take())
    }

    /// Whether a signal to the command made its term the last.
    pub(super) fn is_finishing(&self) -> bool {
        self.with(|state| state.finishing)
    }

    /// Passes the signal on to the command; `false` if none runs.
    pub(super) fn on_signal(&self, signal: Signal) -> bool {
        self.with(|state| {
            let passed_on = state.group.is_some_and(|group| kill_process_group(group, signal).is_ok());
            state.finishing |= passed_on && signals::ends_the_campaign(signal);
            passed_on
        })
    }

    /// The work of one term.
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
            self.output.say("leadership is lost: ending the command");
            running.signal(Signal::TERM);
            tokio::select! {
                biased;
                () = running.ended() => {}
                () = SystemClock.sleep_until(self.kill_at(leadership)) => {
                    running.signal(Signal::KILL);
                    running.ended().await;
                }
            }
        }
        let status = running.clean_up(self.patience(leadership)).await;
        match status {
            // By us, or by the watchdog if we were stopped.
            Ok(status) if lost && status.signal() == Some(Signal::KILL.as_raw()) => Ended::Lost { how: "was killed" },
            _ if lost => Ended::Lost { how: "was ended with SIGTERM" },
            Ok(status) => Ended::ByItself(exit(status)),
            Err(error) => {
                Ended::NotStarted(Failure::new(Exit::Internal, format!("cannot wait for the command: {error}")))
            }
        }
    }

    /// The watchdog is told of every renewal, and replaced if it is gone.
    fn keep_watchdog(&self, leadership: &Leadership, running: &mut Running) {
        // Later than we ourselves kill, and early enough for processes to be gone in time.
        let deadline = leadership.valid_until() + self.gap * 3 / 4;
        if running.watchdog.allow_until(deadline).is_err()
            && let Err(error) = running.renew_watchdog(deadline)
        {
            tracing::error!(%error, "the command runs without a watchdog; do not stop this process");
        }
    }

    /// While we lead, what a command left behind has some time. Then it must go.
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
