//! One command from its start until nothing of it is left.

use std::os::unix::process::ExitStatusExt as _;
use std::process::ExitStatus;
use std::time::Duration;

use futures_util::future::OptionFuture;
use leaderelection::Leadership;
use leaderelection::clock::{Clock as _, LocalInstant, SystemClock};
use rustix::process::Signal;
use tokio::signal::unix::{self, SignalKind};

use super::state::CommandState;
use crate::output::Output;
use crate::supervise::command::Running;
use crate::supervise::messages::{NotRun, Order, Report};
use crate::supervise::signals;
use crate::supervise::terminal::Foreground;

/// The time that processes get to end after SIGTERM when the command has ended.
const PATIENCE_WITH_LEFTOVERS: Duration = Duration::from_secs(5);

/// The time after which a process that was killed counts as one that cannot be ended.
const TIME_TO_DIE: Duration = Duration::from_secs(2);

/// The end of one command.
pub(super) struct Outcome {
    pub(super) end: Result<ExitStatus, NotRun>,
    /// Leadership was lost before everything had ended.
    pub(super) lost: bool,
    /// The command was ended because it ran for too long.
    pub(super) too_long: bool,
}

pub(super) struct RunTerm<'a> {
    state: &'a CommandState,
    output: &'a Output,
    leadership: &'a Leadership,
    running: &'a mut Running,
    end: Option<Result<ExitStatus, NotRun>>,
    lost: bool,
    too_long: bool,
    /// The moment at which the command has run for too long.
    end_at: Option<LocalInstant>,
    /// The next step towards the end.
    next: Option<(LocalInstant, Step)>,
    foreground: Option<Foreground>,
    /// The command was stopped because it is not in the foreground of its terminal.
    wants_foreground: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Kill,
    /// Tell the user what does not die.
    Name,
}

impl<'a> RunTerm<'a> {
    pub(super) fn new(
        state: &'a CommandState,
        output: &'a Output,
        leadership: &'a Leadership,
        running: &'a mut Running,
    ) -> Self {
        Self {
            state,
            output,
            leadership,
            running,
            end: None,
            lost: false,
            too_long: false,
            end_at: state.end_at(),
            next: None,
            foreground: None,
            wants_foreground: false,
        }
    }

    /// Returns when nothing of the command is left.
    pub(super) async fn run(mut self) -> Outcome {
        let mut resumed = unix::signal(SignalKind::from_raw(Signal::CONT.as_raw())).ok();
        loop {
            tokio::select! {
                biased;
                report = self.running.next() => match report {
                    Report::Gone => {
                        let end = self.end.unwrap_or(Err(NotRun::Failed(0)));
                        return Outcome { end, lost: self.lost, too_long: self.too_long };
                    }
                    report => self.on_report(report),
                },
                _ = self.leadership.lost(), if !self.lost => self.on_loss(),
                () = self.state.told_to_end() => self.on_signal(),
                Some(step) = OptionFuture::from(self.next.map(due)) => self.take(step),
                Some(()) = OptionFuture::from(self.end_at.map(|at| due((at, ())))), if self.end.is_none() && !self.lost => {
                    self.on_max_runtime();
                }
                Some(_) = OptionFuture::from(resumed.as_mut().map(unix::Signal::recv)), if self.wants_foreground => {
                    self.give_foreground();
                }
            }
        }
    }

    fn on_report(&mut self, report: Report) {
        match report {
            Report::Ended(status) => {
                let interrupted = [Signal::INT, Signal::QUIT].map(|signal| Some(signal.as_raw()));
                if self.foreground.take().is_some() && interrupted.contains(&status.signal()) {
                    // The terminal sent the signal to its foreground, which was not this process.
                    self.state.finish();
                }
                self.end = Some(Ok(status));
                self.running.terminate();
                self.kill_by(SystemClock.now() + PATIENCE_WITH_LEFTOVERS);
            }
            Report::NotRun(why) => self.end = Some(Err(why)),
            Report::Stopped(signal) => self.on_stop(signal),
            Report::Refused(signal) => {
                self.state.cannot_signal(signal, self.running.left().to_string());
            }
            Report::Watching(_) | Report::Started(_) | Report::Gone => {}
        }
    }

    fn on_loss(&mut self) {
        self.lost = true;
        self.running.terminate();
        self.output.say(format_args!("{}; stopping the command", self.state.why_lost()));
        self.kill_by(self.state.kill_at(self.leadership.valid_until()));
    }

    fn on_signal(&mut self) {
        self.kill_by(self.state.kill_after());
    }

    fn on_max_runtime(&mut self) {
        (self.too_long, self.end_at) = (true, None);
        self.output.say("the command exceeded --max-runtime; stopping it");
        self.running.terminate();
        self.kill_by(self.state.kill_after());
    }

    fn kill_by(&mut self, at: LocalInstant) {
        self.next = Some(killing_by(self.next, at));
    }

    fn take(&mut self, step: Step) {
        match step {
            Step::Kill => {
                if self.end.is_none() && !self.lost {
                    self.output.say("the command is still running after SIGTERM; killing it");
                }
                self.running.kill();
                self.next = Some((SystemClock.now() + TIME_TO_DIE, Step::Name));
            }
            Step::Name => {
                self.state.cannot_end(self.running.left().to_string());
                // Nothing is left to be done but to wait.
                self.next = Some((LocalInstant::from_nanos(u64::MAX), Step::Name));
            }
        }
    }

    fn on_stop(&mut self, signal: Signal) {
        self.foreground = None;
        let name = signals::name(signal);
        if matches!(signal, Signal::TTIN | Signal::TTOU) {
            self.give_foreground();
            if self.wants_foreground {
                self.output.say(format_args!(
                    "{name} stopped the command, which wants to use the terminal, and the lease is kept; bring \
                     leaderelect to the foreground, or end it"
                ));
            }
        } else if let Some(group) = self.running.group() {
            self.output.say(format_args!(
                "{name} stopped the command, and the lease is kept; continue the command with `kill -CONT -{group}`, \
                 or end leaderelect"
            ));
        }
    }

    fn give_foreground(&mut self) {
        self.foreground = self.running.group().and_then(|group| Foreground::give_to(group).ok());
        self.wants_foreground = self.foreground.is_none();
        if !self.wants_foreground {
            let _ = self.running.orders().give(Order::PassOn(Signal::CONT));
        }
    }
}

/// The next step when a command is to be killed at a moment. Nothing puts the moment off.
fn killing_by(next: Option<(LocalInstant, Step)>, at: LocalInstant) -> (LocalInstant, Step) {
    match next {
        Some((before, Step::Name)) => (before, Step::Name),
        Some((before, Step::Kill)) => (before.min(at), Step::Kill),
        None => (at, Step::Kill),
    }
}

async fn due<T>((at, then): (LocalInstant, T)) -> T {
    SystemClock.sleep_until(at).await;
    then
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_puts_a_kill_off() {
        let [one, two, three] = [1, 2, 3].map(LocalInstant::from_nanos);
        assert_eq!(killing_by(None, two), (two, Step::Kill));
        for (at, then) in [(one, one), (two, two), (three, two)] {
            assert_eq!(killing_by(Some((two, Step::Kill)), at), (then, Step::Kill));
            assert_eq!(killing_by(Some((two, Step::Name)), at), (two, Step::Name), "it was killed before");
        }
    }
}
