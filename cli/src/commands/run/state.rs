//! The state of the command, as the work of a term and the loop beside the election share it.

use std::fmt;
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Duration;

use leaderelection::clock::{Clock as _, LocalInstant, SystemClock};
use leaderelection::{FencingToken, LeaderHandle, Leadership, Timings};
use rustix::process::Signal;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::locks;
use super::loss::Loss;
use crate::exit::{Exit, Failure};
use crate::supervise::command::{Limits, Orders, Running};
use crate::supervise::messages::Order;
use crate::supervise::signals;

/// The time that the elector gets to tell of the end of a term.
const TIME_TO_TELL: Duration = Duration::from_secs(1);

/// The exit code for a command that ran too long, as that of `timeout`.
pub(super) const TOO_LONG: Exit = Exit::Code(124);

/// The end of the command.
#[derive(Debug)]
pub(super) enum Ended {
    NotStarted(Failure),
    ByItself(Exit),
    /// This process ended the command, because it ran longer than it may.
    TooLong,
    /// This process ended the command, because leadership was lost.
    Lost {
        how: &'static str,
    },
}

impl fmt::Display for Ended {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotStarted(failure) => failure.fmt(f),
            Self::ByItself(exit) => write!(f, "exit code {}", exit.code()),
            Self::TooLong => f.write_str("ran too long"),
            Self::Lost { how } => write!(f, "the command {how}"),
        }
    }
}

#[derive(Debug)]
pub(super) struct CommandState {
    /// The time from the loss of leadership until another candidate may lead.
    gap: Duration,
    /// The time that a command gets to end by itself.
    kill_after: Duration,
    /// The time for which a command may run.
    max_runtime: Option<Duration>,
    state: Mutex<State>,
    /// The user wants to leave processes behind that cannot be ended.
    leave: CancellationToken,
    has_dropped: Notify,
    /// A signal that ends the command was passed on.
    told_to_end: Notify,
    /// The handles of the locks, which tell why terms ended.
    handles: OnceLock<Vec<LeaderHandle>>,
}

#[derive(Debug, Default)]
struct State {
    /// The token of the last term with work.
    token: Option<FencingToken>,
    current: Option<Current>,
    /// The current term is the last one.
    finishing: bool,
    /// A signal that should end the command could not be passed on.
    refused: bool,
    /// The processes that cannot be ended, after the message about them.
    unended: Option<String>,
    end: Option<Ended>,
    /// The command that ran when the elector dropped the work.
    dropped: Option<Running>,
}

/// The term of the running command.
#[derive(Debug)]
struct Current {
    orders: Orders,
    leadership: Leadership,
    /// The deadline that the watchdog knows.
    told: LocalInstant,
}

impl CommandState {
    pub(super) fn new(timings: &Timings, kill_after: Duration, max_runtime: Option<Duration>) -> Self {
        let gap = timings.lease_duration().saturating_sub(timings.renew_deadline());
        let (leave, has_dropped, told_to_end) = (CancellationToken::new(), Notify::new(), Notify::new());
        let (state, handles) = (Mutex::default(), OnceLock::new());
        Self { gap, kill_after, max_runtime, state, leave, has_dropped, told_to_end, handles }
    }

    /// Tells where the reasons for the ends of terms are found.
    pub(super) fn observe(&self, handles: Vec<LeaderHandle>) {
        // Set once.
        let _ = self.handles.set(handles);
    }

    /// The views of the locks.
    pub(super) fn handles(&self) -> Vec<LeaderHandle> {
        self.handles.get().cloned().unwrap_or_default()
    }

    /// The end of the term of the last command, if this process did not ask for that end.
    pub(super) fn loss(&self) -> Option<Loss> {
        Loss::find(self.handles.get()?, self.with(|state| state.token)?)
    }

    /// Says that leadership is lost, and why.
    pub(super) fn why_lost(&self) -> String {
        self.loss().map_or_else(|| "leadership is lost".to_owned(), |loss| loss.words("", "is"))
    }

    /// The end of the term of the last command, which the elector may tell a moment after the work has noticed it.
    pub(super) fn told_loss(&self) -> impl Future<Output = Option<Loss>> + Send + use<> {
        let found = self.handles.get().cloned().zip(self.with(|state| state.token));
        async move {
            let (handles, token) = found?;
            let mut watched = handles.clone();
            let told = async {
                while Loss::find(&handles, token).is_none() {
                    locks::changed(&mut watched).await;
                }
            };
            let _ = tokio::time::timeout(TIME_TO_TELL, told).await;
            Loss::find(&handles, token)
        }
    }

    /// The moments that a command is bound by that starts now.
    pub(super) fn limits(&self, leadership: &Leadership) -> Limits {
        Limits { start_until: leadership.valid_until(), live_until: self.live_until(leadership.valid_until()) }
    }

    /// The work of a term has begun: with a command that was started under these limits, or without one, to hold the lock.
    pub(super) fn begin(&self, leadership: &Leadership, command: Option<(Limits, Orders)>) {
        let current = |(limits, orders): (Limits, Orders)| Current {
            orders,
            leadership: leadership.clone(),
            told: limits.live_until,
        };
        let (token, current) = (Some(leadership.fencing_token()), command.map(current));
        self.with(|state| *state = State { token, current, ..State::default() });
    }

    /// The work is over. If anything may still run, the elector has dropped the work.
    pub(super) fn leave_off(&self, dropped: Option<Running>) {
        if dropped.is_some() {
            self.has_dropped.notify_one();
        }
        self.with(|state| (state.current, state.dropped) = (None, dropped));
    }

    /// Completes when the elector has dropped the work while something ran. Cancellation safe.
    pub(super) async fn has_dropped(&self) {
        self.has_dropped.notified().await;
    }

    /// Takes what the elector has dropped.
    pub(super) fn take_dropped(&self) -> Option<Running> {
        self.with(|state| state.dropped.take())
    }

    /// Returns `true` if the work of any term has begun.
    pub(super) fn has_begun(&self) -> bool {
        self.with(|state| state.token.is_some())
    }

    /// Sets the end of the command.
    pub(super) fn end(&self, ended: Ended) {
        self.with(|state| state.end = Some(ended));
    }

    /// Takes the end of the last command; `None` if no command ran, or if its end could not be observed.
    pub(super) fn take_end(&self) -> Option<Ended> {
        self.with(|state| state.end.take())
    }

    /// Returns `true` if the last command ended with success.
    pub(super) fn has_succeeded(&self) -> bool {
        self.with(|state| matches!(state.end, Some(Ended::ByItself(Exit::Done | Exit::Code(0)))))
    }

    /// Makes the current term the last one.
    pub(super) fn finish(&self) {
        self.with(|state| state.finishing = true);
    }

    /// Returns `true` if something made the current term the last one, such as a signal to the command.
    pub(super) fn is_finishing(&self) -> bool {
        self.with(|state| state.finishing)
    }

    /// Passes the signal on to the command; returns `false` if none runs.
    pub(super) fn on_signal(&self, signal: Signal) -> bool {
        self.with(|state| {
            let Some(current) = &state.current else { return false };
            if signals::ends_the_campaign(signal) {
                state.finishing = true;
                self.told_to_end.notify_one();
            }
            if state.unended.is_some() && signals::ends_the_wait(signal) {
                self.leave.cancel();
            } else {
                // Without a watchdog, everything has been told to end.
                let _ = current.orders.give(Order::PassOn(signal));
            }
            true
        })
    }

    /// Tells the watchdog about a renewal. For every moment at which there may have been one.
    pub(super) fn tell_watchdog(&self) {
        self.with(|state| {
            let Some(current) = &mut state.current else { return };
            let deadline = self.live_until(current.leadership.valid_until());
            if deadline != current.told && current.orders.give(Order::LiveUntil(deadline)).is_ok() {
                current.told = deadline;
            }
        });
    }

    /// Tells the user about processes that cannot be ended.
    pub(super) fn cannot_end(&self, processes: String) {
        tracing::error!(
            processes,
            "cannot kill processes of the command; the lease is kept while they run; stop them, or repeat the signal to exit"
        );
        self.with(|state| state.unended = Some(processes));
    }

    /// Tells the user about a command that may not be signalled, and leaves it at the second attempt.
    pub(super) fn cannot_signal(&self, signal: Signal, processes: String) {
        let name = signals::name(signal);
        tracing::error!(
            signal = name,
            processes,
            "cannot forward a signal to the command; the lease is kept while it runs; stop it, or repeat the signal to exit"
        );
        self.with(|state| {
            if signals::ends_the_wait(signal) && std::mem::replace(&mut state.refused, true) {
                state.unended = Some(processes);
                self.leave.cancel();
            }
        });
    }

    /// Completes when the user asks to leave processes behind that cannot be ended. Cancellation safe.
    pub(super) async fn left_behind(&self) -> Failure {
        self.leave.cancelled().await;
        left_running(&self.with(|state| state.unended.clone()).unwrap_or_default())
    }

    /// Completes when the command has got a signal to end. Cancellation safe.
    pub(super) async fn told_to_end(&self) {
        self.told_to_end.notified().await;
    }

    /// The moment at which this process kills a command that is told to end now.
    pub(super) fn kill_after(&self) -> LocalInstant {
        SystemClock.now() + self.kill_after
    }

    /// The moment at which a command that starts now has run for too long.
    pub(super) fn end_at(&self) -> Option<LocalInstant> {
        self.max_runtime.map(|longest| SystemClock.now() + longest)
    }

    /// The moment at which this process kills the command because leadership was lost.
    pub(super) fn kill_at(&self, valid_until: LocalInstant) -> LocalInstant {
        self.kill_after().min(valid_until + self.gap / 2)
    }

    /// The moment at which the watchdog kills the command: later than this process, and early enough for the
    /// processes to end in time.
    fn live_until(&self, valid_until: LocalInstant) -> LocalInstant {
        valid_until + self.gap * 3 / 4
    }

    fn with<T>(&self, work: impl FnOnce(&mut State) -> T) -> T {
        work(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// The failure if processes run on that cannot be ended.
pub(super) fn left_running(processes: &str) -> Failure {
    let message = format!("cannot kill {processes}; the lease was not released; stop them before it expires");
    Failure::new(Exit::LeftRunning, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_killed_before_the_watchdog_has_to() {
        const HOUR: Duration = Duration::from_secs(3600);
        let timings = Timings::new(Duration::from_secs(15), Duration::from_secs(11), Duration::from_secs(2)).unwrap();
        let valid_until = SystemClock.now() + HOUR;
        let patient = CommandState::new(&timings, 2 * HOUR, Some(HOUR));
        assert_eq!(patient.kill_at(valid_until), valid_until + Duration::from_secs(2));
        assert_eq!(patient.live_until(valid_until), valid_until + Duration::from_secs(3));
        assert!(patient.end_at().is_some_and(|end_at| end_at >= valid_until));
        let impatient = CommandState::new(&timings, Duration::ZERO, None);
        assert!(impatient.kill_at(valid_until) < valid_until);
        assert_eq!(impatient.end_at(), None);
    }
}
