//! The window of a term: many threads read it while one thread extends it.
//!
//! The integration tests compile this file again with another mutex, and explore every interleaving of its callers.

use std::sync::Arc;
use std::time::Duration;

use crate::clock::{Clock, LocalInstant};
use crate::election::{Command, Term};
use crate::util::sync::Mutex;

/// The time in which a term is valid. Once anybody has seen the window closed, it stays closed.
#[derive(Debug)]
pub(crate) struct Window {
    state: Mutex<WindowState>,
    /// The window of the session that holds the lock, if one does. Its times then count instead of those in `state`.
    session: Option<Arc<Window>>,
}

#[derive(Debug)]
struct WindowState {
    sent_at: LocalInstant,
    valid_until: LocalInstant,
    closed: bool,
    /// The command from within this process that closed the window, until the elector takes it.
    command: Option<Box<Command>>,
}

impl Window {
    pub(crate) fn new(term: &Term) -> Self {
        let (sent_at, valid_until) = (term.sent_at, term.valid_until);
        Self { state: Mutex::new(WindowState { sent_at, valid_until, closed: false, command: None }), session: None }
    }

    /// Creates a window that is open only while the window of `session` is.
    #[allow(dead_code, reason = "the driver of sessions is behind a feature")]
    pub(crate) fn of_session(session: Arc<Self>) -> Self {
        let (sent_at, valid_until) = (LocalInstant::default(), LocalInstant::default());
        let state = WindowState { sent_at, valid_until, closed: false, command: None };
        Self { state: Mutex::new(state), session: Some(session) }
    }

    /// Returns the remaining time of the window; zero if the window is closed.
    pub(crate) fn remaining(&self, clock: &dyn Clock) -> Duration {
        self.remaining_in(&self.state.lock(), clock)
    }

    /// Returns the end of the window, even after it has closed.
    pub(crate) fn valid_until(&self) -> LocalInstant {
        self.session.as_ref().map_or_else(|| self.state.lock().valid_until, |session| session.valid_until())
    }

    /// Returns the moment at which the last renewal was sent.
    pub(crate) fn sent_at(&self) -> LocalInstant {
        self.session.as_ref().map_or_else(|| self.state.lock().sent_at, |session| session.sent_at())
    }

    /// Moves the end of the window, and returns `true`. Returns `false` if the window is already closed: others may
    /// have seen it closed.
    pub(crate) fn extend(&self, term: &Term, clock: &dyn Clock) -> bool {
        let mut state = self.state.lock();
        let is_open = !self.remaining_in(&state, clock).is_zero();
        if is_open {
            (state.sent_at, state.valid_until) = (term.sent_at, term.valid_until);
        }
        is_open
    }

    /// Closes the window and keeps the command for the elector. Returns `false` if the window was already closed.
    pub(crate) fn close_by(&self, command: Command, clock: &dyn Clock) -> bool {
        let mut state = self.state.lock();
        let is_open = !self.remaining_in(&state, clock).is_zero();
        if is_open {
            (state.command, state.closed) = (Some(Box::new(command)), true);
        }
        is_open
    }

    /// Closes the window.
    pub(crate) fn close(&self) {
        self.state.lock().closed = true;
    }

    /// Returns `true` if a call has closed the window, and `false` if it is open or has only expired.
    #[allow(dead_code, reason = "the tests of interleavings compile this file by itself")]
    pub(crate) fn is_closed(&self) -> bool {
        self.state.lock().closed
    }

    /// Takes the command that closed the window.
    pub(crate) fn take_command(&self) -> Option<Command> {
        self.state.lock().command.take().map(|command| *command)
    }

    /// Returns the remaining time. The clock is read while the state is locked, so that nobody sees the window closed just
    /// before a renewal extends it.
    fn remaining_in(&self, state: &WindowState, clock: &dyn Clock) -> Duration {
        match &self.session {
            _ if state.closed => Duration::ZERO,
            Some(session) => session.remaining(clock),
            None => state.valid_until.saturating_since(clock.now()),
        }
    }
}
