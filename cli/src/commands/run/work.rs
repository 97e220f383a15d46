//! The work of a leader: runs the command, and ends it in time.

use std::io;
use std::os::unix::process::ExitStatusExt as _;
use std::sync::Arc;
use std::time::Duration;

use leaderelection::clock::{Clock as _, SystemClock};
use leaderelection::{FencingToken, LeaderCallbacks, Leadership};
use rustix::process::Signal;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use super::hooks::{Hooks, Variables};
use super::state::{CommandState, Ended, left_running};
use super::term::{Outcome, RunTerm};
use crate::commands::notify::Notifier;
use crate::exit::{Exit, Failure};
use crate::output::Output;
use crate::supervise::command::{CommandLine, Running};
use crate::supervise::messages::{NotRun, Report};
use crate::supervise::start::is_shortage;

/// The time that processes get to die of SIGKILL before a loss counts as one that left them running.
const TIME_TO_DIE: Duration = Duration::from_secs(5);

/// The time for which a start is tried again that fails for want of something. After that, other candidates may do better.
const PATIENCE_WITH_SHORTAGE: Duration = Duration::from_secs(60);

/// The pauses between these tries.
const SHORTEST_PAUSE: Duration = Duration::from_millis(500);
const LONGEST_PAUSE: Duration = Duration::from_secs(8);

/// A command that could not be started.
struct NotStarted {
    failure: Failure,
    error: io::Error,
}

/// The job of running the command in every term.
#[derive(Debug)]
pub(super) struct Job {
    /// `None` if the process only holds the lock.
    pub(super) command: Option<CommandLine>,
    pub(super) identity: String,
    /// The URL of the lock, or those of the slots' locks.
    pub(super) locks: Vec<String>,
    /// The command runs again in the next term.
    pub(super) again: bool,
    pub(super) shutdown: CancellationToken,
    pub(super) output: Output,
    pub(super) notifier: Notifier,
    pub(super) state: CommandState,
    pub(super) hooks: Arc<Hooks>,
}

impl Job {
    /// The callbacks of the elector of one lock.
    pub(super) fn callbacks(self: &Arc<Self>) -> LeaderCallbacks {
        let (leading, waiting) = (Arc::clone(self), Arc::clone(self));
        LeaderCallbacks::new()
            .on_start_leading(move |leadership| Arc::clone(&leading).lead(leadership, None))
            .on_new_leader(move |leader| {
                if leader != waiting.identity {
                    waiting.output.say(format_args!("waiting: {leader} leads"));
                    waiting.notifier.waits_for(leader);
                }
            })
    }

    /// Ends what the elector has dropped. Fails if it cannot be ended.
    pub(super) async fn end_dropped(&self) -> Result<(), Failure> {
        let Some(mut running) = self.state.take_dropped() else { return Ok(()) };
        running.kill();
        let gone = async { while running.next().await != Report::Gone {} };
        match tokio::time::timeout(TIME_TO_DIE, gone).await {
            Ok(()) => {
                self.end(Ended::Lost { how: "was killed" });
                Ok(())
            }
            Err(_) => Err(left_running(&running.left().to_string())),
        }
    }

    /// Does the work of one term, of a slot if there are slots.
    pub(super) async fn lead(self: Arc<Self>, leadership: Leadership, slot: Option<u32>) {
        if !leadership.is_valid() {
            return;
        }
        let token = leadership.fencing_token();
        match slot {
            None => self.output.say(format_args!("leading with fencing token {token}")),
            Some(slot) => self.output.say(format_args!("holding slot {slot} with fencing token {token}")),
        }
        self.notifier.leads(token);
        let variables = self.variables(token, slot);
        self.hooks.begin(&variables);
        let _watched = self.hooks.watch(&leadership, self.state.handles());
        let Some(command) = &self.command else { return self.hold(&leadership).await };
        // The next term would end in the same way, but for a shortage.
        let (ended, is_last) = match self.run(command, &variables, &leadership).await {
            Ok(ended) => (ended, false),
            Err(NotStarted { failure, error }) => (Ended::NotStarted(failure), !is_shortage(&error)),
        };
        // A history tells it, if one is kept.
        leadership.report_result(ended.to_string());
        self.end(ended);
        if is_last {
            self.state.finish();
        }
        if self.state.is_finishing() {
            self.notifier.stops();
            self.shutdown.cancel();
        } else {
            leadership.step_down();
        }
    }

    /// Runs the command to its end. Where the system lacks something to start it, such as room for one more process, tries
    /// again for a while.
    async fn run(
        &self,
        command: &CommandLine,
        variables: &Variables,
        leadership: &Leadership,
    ) -> Result<Ended, NotStarted> {
        let (give_up, mut pause) = (SystemClock.now() + PATIENCE_WITH_SHORTAGE, SHORTEST_PAUSE);
        loop {
            let not_started = match self.attempt(command, variables, leadership).await {
                Err(not_started) if is_shortage(&not_started.error) => not_started,
                done => return done,
            };
            if !leadership.is_valid() && !self.shutdown.is_cancelled() {
                return Ok(Ended::Lost { how: "was not started" });
            }
            if SystemClock.now() >= give_up || !leadership.is_valid() {
                return Err(not_started);
            }
            tracing::warn!(error = %not_started.failure, "cannot start the command; retrying");
            tokio::select! {
                _ = leadership.lost() => {}
                () = sleep(pause) => {}
            }
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    async fn attempt(
        &self,
        command: &CommandLine,
        variables: &Variables,
        leadership: &Leadership,
    ) -> Result<Ended, NotStarted> {
        let limits = self.state.limits(leadership);
        let running = Running::start(command, variables, limits).map_err(|error| NotStarted {
            failure: Failure::new(Exit::Code(126), format!("cannot start the command: {error}")),
            error,
        })?;
        self.state.begin(leadership, Some((limits, running.orders())));
        let mut held = Held { state: &self.state, output: &self.output, running: Some(running) };
        let Some(running) = &mut held.running else { return Ok(Ended::Lost { how: "was not started" }) };
        let outcome = RunTerm::new(&self.state, &self.output, leadership, running).run().await;
        held.running = None;
        drop(held);
        let over = outcome.lost || !leadership.is_valid();
        self.ended(command, outcome, over)
    }

    /// The environment variables that tell the command of its term.
    fn variables(&self, fencing_token: FencingToken, slot: Option<u32>) -> Variables {
        let index = usize::try_from(slot.unwrap_or_default()).unwrap_or(usize::MAX);
        let mut variables = vec![
            ("LEADERELECTION_IDENTITY", self.identity.clone()),
            ("LEADERELECTION_FENCING_TOKEN", fencing_token.to_string()),
            ("LEADERELECTION_LOCK", self.locks.get(index).cloned().unwrap_or_default()),
        ];
        variables.extend(slot.map(|slot| ("LEADERELECTION_SLOT", slot.to_string())));
        variables
    }

    /// Holds the lock until the term ends. Scripts read the token.
    async fn hold(&self, leadership: &Leadership) {
        self.state.begin(leadership, None);
        if let Err(failure) = self.output.raw(format!("{}\n", leadership.fencing_token()).as_bytes()) {
            self.end(Ended::NotStarted(failure));
            return self.shutdown.cancel();
        }
        leadership.lost().await;
        if !self.shutdown.is_cancelled() {
            self.hooks.on_loss(self.state.told_loss());
        }
    }

    /// The command of a term has ended.
    fn end(&self, ended: Ended) {
        // A hook starts when the work has told the elector of its end.
        self.hooks.on_end(&ended, self.state.is_finishing(), self.state.told_loss());
        self.state.end(ended);
    }

    /// `over` if leadership was over when the end was known: while this process was stopped, the watchdog may have
    /// killed the command, and then both ends are news at once.
    fn ended(
        &self,
        command: &CommandLine,
        Outcome { end, lost, too_long }: Outcome,
        over: bool,
    ) -> Result<Ended, NotStarted> {
        Ok(match end {
            Ok(status) if over && status.signal() == Some(Signal::KILL.as_raw()) => Ended::Lost { how: "was killed" },
            Err(NotRun::TooLate) => Ended::Lost { how: "was not started" },
            Err(NotRun::Failed(errno)) => {
                let error = io::Error::from_raw_os_error(errno);
                return Err(NotStarted { failure: command.cannot_run(&error), error });
            }
            _ if lost => Ended::Lost { how: "was terminated with SIGTERM" },
            Ok(_) if too_long => Ended::TooLong,
            Ok(status) => {
                if self.again {
                    self.output.say(format_args!("the command ended with {status}"));
                }
                Ended::ByItself(Exit::of(status))
            }
        })
    }
}

/// The command while the work holds it. What the elector drops with the work is kept: nothing may be released before
/// it has ended.
struct Held<'a> {
    state: &'a CommandState,
    output: &'a Output,
    running: Option<Running>,
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        // After a freeze, the elector may drop the work before the work has noticed the loss.
        if self.running.is_some() {
            self.output.say(format_args!("{}; killing the command", self.state.why_lost()));
        }
        self.state.leave_off(self.running.take());
    }
}
