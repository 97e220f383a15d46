//! The view that a leader's work has of its term.

pub(crate) mod window;

use std::fmt::Debug;
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::clock::{Clock, LocalInstant};
use crate::election::{Command, Term};
use crate::term::{FencingToken, TermEndReason};

use window::Window;

/// One term of leadership, as its work sees it. Clones are views of the same term.
///
/// A term that has ended never becomes valid again: a later term has a `Leadership` of its own.
///
/// Losing leadership cannot undo a request that has already been sent. To keep an earlier leader from writing a
/// resource, send the [fencing token](Self::fencing_token) with each request, and let the resource reject smaller tokens.
#[derive(Clone, Debug)]
pub struct Leadership {
    term: Arc<TermState>,
}

#[derive(Debug)]
struct TermState {
    fencing_token: FencingToken,
    clock: Arc<dyn Clock>,
    window: Window,
    /// Notified when `ended` is set.
    lost: Notify,
    /// The token that is cancelled when the term ends; created by whoever needs it first.
    token: OnceLock<CancellationToken>,
    listener: Weak<dyn TermListener>,
    /// The result that the work has reported, if any.
    result: OnceLock<Box<str>>,
    /// The reason for the end of the term. Set after the window has closed, so that a valid term never has one.
    ended: OnceLock<Box<TermEndReason>>,
}

/// The elector of a term, which the term wakes when there is an event.
pub(crate) trait TermListener: Debug + Send + Sync {
    /// Called once when a command has closed the term, and once when its work has ended.
    fn wake(&self);
}

impl Leadership {
    pub(crate) fn new(
        fencing_token: FencingToken,
        window: Window,
        clock: Arc<dyn Clock>,
        listener: Weak<dyn TermListener>,
    ) -> Self {
        let (lost, token, result, ended) = (Notify::new(), OnceLock::new(), OnceLock::new(), OnceLock::new());
        Self { term: Arc::new(TermState { fencing_token, clock, window, lost, token, listener, result, ended }) }
    }

    /// The token of the term. It is larger than the tokens of all earlier terms, and no other term has it.
    #[must_use]
    pub fn fencing_token(&self) -> FencingToken {
        self.term.fencing_token
    }

    /// Returns `true` if the term is valid right now. Every call compares the deadline with the clock.
    ///
    /// Once `is_valid()` has returned `false` for a term, it stays `false`, even if a late renewal is committed.
    #[must_use]
    pub fn is_valid(&self) -> bool {
        !self.remaining().is_zero()
    }

    /// The time for which the term stays valid unless the lease is renewed; zero when the term is over.
    #[must_use]
    pub fn remaining(&self) -> Duration {
        self.term.window.remaining(&*self.term.clock)
    }

    /// The moment at which leadership ends unless the lease is renewed, on this process's monotonic clock.
    #[must_use]
    pub fn valid_until(&self) -> LocalInstant {
        self.term.window.valid_until()
    }

    /// Completes when the term is over, and returns the reason. Cancellation safe.
    ///
    /// If the window expires, this future completes only once the elector notices that. The elector notices it only
    /// while the future that runs it is polled, such as that of `campaign`, or of the session's `run`.
    /// [`is_valid`](Self::is_valid) does not depend on that.
    ///
    /// ```
    /// use leaderelection::{LeaderCallbacks, TermEndReason};
    ///
    /// let callbacks = LeaderCallbacks::new().on_start_leading(|leadership| async move {
    ///     // ... start the controller ...
    ///     match leadership.lost().await {
    ///         TermEndReason::Cancelled => println!("the program ends"),
    ///         reason => eprintln!("lost term {}: {reason}", leadership.fencing_token()),
    ///     }
    /// });
    /// # drop(callbacks);
    /// ```
    pub async fn lost(&self) -> TermEndReason {
        loop {
            // Created before the check, because a waiter is notified only of what happens after its creation.
            let lost = self.term.lost.notified();
            if let Some(reason) = self.end_reason() {
                return reason.clone();
            }
            lost.await;
        }
    }

    /// The reason for the end of the term, as [`lost`](Self::lost) returns it; `None` while `lost` would still wait.
    ///
    /// This is what ended leadership. If the elector finds another reason before it releases the lease, the run's
    /// [outcome](crate::RunOutcome::reason) has that other reason.
    #[must_use]
    pub fn end_reason(&self) -> Option<&TermEndReason> {
        self.term.ended.get().map(|reason| &**reason)
    }

    /// Runs `work` until it is complete, or until the term is over. Returns `None` if the term was over first.
    ///
    /// `work` is dropped at an await when [`lost`](Self::lost) completes. If the window expires, this depends on the
    /// elector, as described there. Cancellation safe if `work` is.
    ///
    /// ```
    /// # async fn reconcile_forever() -> std::io::Error { std::future::pending().await }
    /// # fn demo() -> leaderelection::LeaderCallbacks {
    /// leaderelection::LeaderCallbacks::new().on_start_leading(|leadership| async move {
    ///     match leadership.run_until_lost(reconcile_forever()).await {
    ///         Some(error) => eprintln!("cannot reconcile: {error}"),
    ///         None => eprintln!("not the leader any more"),
    ///     }
    /// })
    /// # }
    /// ```
    pub async fn run_until_lost<F: Future>(&self, work: F) -> Option<F::Output> {
        tokio::select! {
            biased;
            _ = self.lost() => None,
            output = work => Some(output),
        }
    }

    /// Returns a token that is cancelled when the term is over. If the window expires, this depends on the elector, as
    /// [`lost`](Self::lost) does. Cancelling the token has no effect on the term.
    #[must_use]
    pub fn cancellation_token(&self) -> CancellationToken {
        self.term.token.get_or_init(CancellationToken::new).child_token()
    }

    /// Records the result of the work, such as `exit code 0`, in the
    /// [history](crate::LeaderElectionConfigBuilder::keep_history), which keeps the first 1,024 characters. Only the
    /// first result of a term counts, and only if it is reported before the elector handles the end of the term. So
    /// report it while the term [is valid](Self::is_valid).
    pub fn report_result(&self, result: impl Into<String>) {
        // This fails if a result is already set. The first one stays.
        let _ = self.term.result.set(result.into().into_boxed_str());
    }

    /// The result that the work has reported, if any.
    pub(crate) fn result(&self) -> Option<&str> {
        self.term.result.get().map(|result| &**result)
    }

    /// Ends the term now, as [`LeaderHandle::step_down`](crate::LeaderHandle::step_down) does.
    pub fn step_down(&self) {
        self.command(Command::StepDown);
    }

    /// Closes the window now, and keeps `command` until the elector takes it. Only the first command counts. Returns `false` if
    /// the term was already over.
    pub(crate) fn command(&self, command: Command) -> bool {
        let reason = TermEndReason::from(&command);
        let is_closed_by_this = self.term.window.close_by(command, &*self.term.clock);
        if is_closed_by_this {
            self.notify_lost(reason);
            self.tell_listener();
        }
        is_closed_by_this
    }

    /// Takes the command that closed the window.
    pub(crate) fn take_command(&self) -> Option<Command> {
        self.term.window.take_command()
    }

    /// Moves the end of the window, and returns `true`. Returns `false` if the window is already closed: others may
    /// have seen it closed.
    pub(crate) fn extend(&self, term: Term) -> bool {
        self.term.window.extend(&term, &*self.term.clock)
    }

    /// Ends the term for all clones. Only the first reason counts.
    pub(crate) fn close(&self, reason: TermEndReason) {
        self.term.window.close();
        self.notify_lost(reason);
    }

    /// Wakes the elector of this term, because there is an event for it.
    pub(crate) fn tell_listener(&self) {
        if let Some(listener) = self.term.listener.upgrade() {
            listener.wake();
        }
    }

    /// Wakes everyone who waits for the end of the term. The window must already be closed.
    fn notify_lost(&self, reason: TermEndReason) {
        self.term.ended.get_or_init(|| Box::new(reason));
        self.term.lost.notify_waiters();
        // Created if there is none. Otherwise, another thread could create the token just after this one has found
        // none, and nobody would cancel it.
        self.term.token.get_or_init(CancellationToken::new).cancel();
    }

    /// The moment at which the last renewal was sent.
    pub(crate) fn renewed_at(&self) -> LocalInstant {
        self.term.window.sent_at()
    }

    /// The time since the last renewal was sent.
    pub(crate) fn renewal_age(&self) -> Duration {
        self.term.clock.now().saturating_since(self.renewed_at())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use async_trait::async_trait;
    use chrono::{DateTime, Utc};
    use futures_util::FutureExt;

    use super::*;

    #[derive(Debug, Default)]
    struct ManualClock(AtomicU64);

    #[async_trait]
    impl Clock for ManualClock {
        fn now(&self) -> LocalInstant {
            LocalInstant::from_nanos(self.0.load(Ordering::SeqCst))
        }

        fn wall_time(&self) -> DateTime<Utc> {
            DateTime::UNIX_EPOCH
        }

        async fn sleep_until(&self, _deadline: LocalInstant) -> LocalInstant {
            std::future::pending().await
        }
    }

    #[derive(Debug)]
    struct NoElector;

    impl TermListener for NoElector {
        fn wake(&self) {}
    }

    fn leadership(clock: Arc<ManualClock>) -> Leadership {
        Leadership::new(7.into(), Window::new(&term(0)), clock, Weak::<NoElector>::new())
    }

    fn term(sent_at: u64) -> Term {
        let sent_at = LocalInstant::from_nanos(sent_at);
        Term { fencing_token: 7, sent_at, valid_until: sent_at + Duration::from_nanos(10) }
    }

    #[test]
    fn a_late_renewal_does_not_extend_a_closed_window() {
        let clock = Arc::new(ManualClock::default());
        let leadership = leadership(clock.clone());
        assert!(leadership.is_valid());
        clock.0.store(9, Ordering::SeqCst);
        assert!(leadership.extend(term(9)));
        clock.0.store(19, Ordering::SeqCst);
        assert!(!leadership.extend(term(18)));
        assert!(!leadership.is_valid());
        assert_eq!(leadership.valid_until(), LocalInstant::from_nanos(19));
    }

    #[test]
    fn getters_do_not_end_an_expired_term() {
        let clock = Arc::new(ManualClock::default());
        let leadership = leadership(clock.clone());
        clock.0.store(10, Ordering::SeqCst);
        assert!(!leadership.is_valid());
        assert!(!leadership.cancellation_token().is_cancelled());
    }

    #[test]
    fn the_end_completes_all_waits_with_the_first_reason() {
        let leadership = leadership(Arc::default());
        let (before, mut lost) = (leadership.cancellation_token(), Box::pin(leadership.lost()));
        assert!(lost.as_mut().now_or_never().is_none());
        assert!(!before.is_cancelled());
        assert_eq!(leadership.end_reason(), None);
        leadership.close(TermEndReason::Deleted);
        leadership.close(TermEndReason::Cancelled);
        assert!(before.is_cancelled() && leadership.cancellation_token().is_cancelled());
        for lost in [lost.now_or_never(), leadership.lost().now_or_never(), leadership.end_reason().cloned()] {
            assert_eq!(lost, Some(TermEndReason::Deleted), "the first reason counts");
        }
    }

    #[test]
    fn cancelling_a_token_does_not_end_the_term() {
        let leadership = leadership(Arc::default());
        leadership.cancellation_token().cancel();
        assert!(leadership.is_valid() && !leadership.cancellation_token().is_cancelled());
    }

    #[test]
    fn the_first_command_counts_and_closes_the_window() {
        let leadership = leadership(Arc::default());
        assert!(leadership.command(Command::TransferTo("b".to_owned())));
        assert!(!leadership.is_valid());
        assert!(!leadership.extend(term(1)));
        assert!(!leadership.command(Command::StepDown));
        assert_eq!(leadership.end_reason(), Some(&TermEndReason::Transferred { to: "b".to_owned() }));
        assert_eq!(leadership.take_command(), Some(Command::TransferTo("b".to_owned())));
        assert_eq!(leadership.take_command(), None);
    }
}
