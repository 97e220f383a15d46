//! The work of a leader: runs the command, and ends it in time.

use std::io;
use std::os::unix::process::ExitStatusExt as _;
use std::sync::Arc;
use std::time::Duration;

use leaderelection::Leadership;
use rustix::process::Signal;
use tokio_util::sync::CancellationToken;

use super::course::{Course, Ended, left_running};
use super::term::{Outcome, Term};
use super::variables::Variables;
use crate::commands::notify::Notifier;
use crate::exit::{Exit, Failure};
use crate::output::Output;
use crate::supervise::command::{CommandLine, Running};
use crate::supervise::words::{NotRun, Report};

/// The time that processes get to die of SIGKILL before a loss counts as one that left them running.
const TIME_TO_DIE: Duration = Duration::from_secs(5);

/// The job of running the command in every term.
#[derive(Debug)]
pub(super) struct Job {
    /// `None` if the process only holds the lock.
    command: Option<CommandLine>,
    variables: Variables,
    /// The command runs again in the next term.
    again: bool,
    shutdown: CancellationToken,
    output: Output,
    notifier: Notifier,
    pub(super) course: Course,
}

impl Job {
    pub(super) fn new(
        command: Option<CommandLine>,
        variables: Variables,
        again: bool,
        course: Course,
        shutdown: CancellationToken,
        output: Output,
        notifier: Notifier,
    ) -> Self {
        Self { command, variables, again, shutdown, output, notifier, course }
    }

    /// Tells the user something before the work begins.
    pub(super) fn tell(&self, what: std::fmt::Arguments<'_>) {
        self.output.say(what);
    }

    /// Ends what the elector has dropped. Fails if it cannot be ended.
    pub(super) async fn end_dropped(&self) -> Result<(), Failure> {
        let Some(mut running) = self.course.take_dropped() else { return Ok(()) };
        running.kill();
        let gone = async { while running.next().await != Report::Gone {} };
        match tokio::time::timeout(TIME_TO_DIE, gone).await {
            Ok(()) => {
                self.course.end(Ended::Lost { how: "was killed" });
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
        let Some(command) = &self.command else { return self.hold(&leadership).await };
        let limits = self.course.limits(&leadership);
        let running = match Running::start(command, &self.variables.of_term(token, slot), limits) {
            Ok(running) => running,
            Err(error) => return self.cannot_start(&error),
        };
        self.course.begin(&leadership, limits, running.orders());
        let mut held = Held { course: &self.course, running: Some(running) };
        let Some(running) = &mut held.running else { return };
        let outcome = Term::new(&self.course, &self.output, &leadership, running).run().await;
        held.running = None;
        drop(held);
        let over = outcome.lost || !leadership.is_valid();
        let ended = self.ended(command, outcome, over);
        if matches!(ended, Ended::NotStarted(_)) {
            // The next term would end in the same way.
            self.course.finish();
        }
        // A history tells it, if one is kept.
        leadership.tell_result(ended.to_string());
        self.course.end(ended);
        if self.course.is_finishing() {
            self.notifier.stops();
            self.shutdown.cancel();
        } else {
            leadership.step_down();
        }
    }

    /// Holds the lock until the term ends. Scripts read the token.
    async fn hold(&self, leadership: &Leadership) {
        self.course.hold(leadership);
        if let Err(failure) = self.output.raw(format!("{}\n", leadership.fencing_token()).as_bytes()) {
            self.course.end(Ended::NotStarted(failure));
            return self.shutdown.cancel();
        }
        leadership.lost().await;
    }

    fn cannot_start(&self, error: &io::Error) {
        let failure = Failure::new(Exit::Code(126), format!("cannot start the command: {error}"));
        self.course.end(Ended::NotStarted(failure));
        self.shutdown.cancel();
    }

    /// `over` if leadership was over when the end was known: while this process was stopped, the watchdog may have
    /// killed the command, and then both ends are news at once.
    fn ended(&self, command: &CommandLine, Outcome { end, lost, too_long }: Outcome, over: bool) -> Ended {
        match end {
            Ok(status) if over && status.signal() == Some(Signal::KILL.as_raw()) => Ended::Lost { how: "was killed" },
            Err(NotRun::TooLate) => Ended::Lost { how: "was not started" },
            Err(NotRun::Failed(errno)) => {
                Ended::NotStarted(command.cannot_run(&io::Error::from_raw_os_error(errno)).into())
            }
            _ if lost => Ended::Lost { how: "was ended with SIGTERM" },
            Ok(_) if too_long => Ended::TooLong,
            Ok(status) => {
                if self.again {
                    self.output.say(format_args!("the command ended with {status}"));
                }
                Ended::ByItself(Exit::of(status))
            }
        }
    }
}

/// The command while the work holds it. What the elector drops with the work is kept: nothing may be released before
/// it has ended.
struct Held<'a> {
    course: &'a Course,
    running: Option<Running>,
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        self.course.leave_off(self.running.take());
    }
}
