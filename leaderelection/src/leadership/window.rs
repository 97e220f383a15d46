//! The window of a term, which many threads read while one moves its end.
//!
//! The integration tests compile this file again with another mutex, and run every interleaving of its callers.

use std::time::Duration;

use crate::clock::{Clock, LocalInstant};
use crate::election::{Command, Term};
use crate::sync::{Mutex, MutexGuard, PoisonError};

/// The time in which a term is valid. Once the window was seen closed, it stays closed.
#[derive(Debug)]
pub(crate) struct Window {
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    sent_at: LocalInstant,
    valid_until: LocalInstant,
    closed: bool,
    /// The order with which the term was closed from within this process.
    command: Option<Command>,
}

impl Window {
    pub(crate) fn new(term: &Term) -> Self {
        let (sent_at, valid_until) = (term.sent_at, term.valid_until);
        Self { state: Mutex::new(State { sent_at, valid_until, closed: false, command: None }) }
    }

    /// Returns the rest of the window; zero if the window is closed.
    pub(crate) fn remaining(&self, clock: &dyn Clock) -> Duration {
        self.state().remaining(clock)
    }

    /// Returns the end of the window, also of a closed one.
    pub(crate) fn valid_until(&self) -> LocalInstant {
        self.state().valid_until
    }

    /// Returns the moment at which the last renewal was sent.
    pub(crate) fn sent_at(&self) -> LocalInstant {
        self.state().sent_at
    }

    /// Moves the end of the window. Returns `false` if the window was closed before, because somebody may have seen
    /// that.
    pub(crate) fn extend(&self, term: &Term, clock: &dyn Clock) -> bool {
        let mut state = self.state();
        let is_open = state.is_open(clock);
        if is_open {
            (state.sent_at, state.valid_until) = (term.sent_at, term.valid_until);
        }
        is_open
    }

    /// Closes the window and keeps the command. Returns `false` if the window was closed before.
    pub(crate) fn close_by(&self, command: Command, clock: &dyn Clock) -> bool {
        let mut state = self.state();
        let is_open = state.is_open(clock);
        if is_open {
            (state.command, state.closed) = (Some(command), true);
        }
        is_open
    }

    /// Closes the window.
    pub(crate) fn close(&self) {
        self.state().closed = true;
    }

    /// Takes the command that closed the window.
    pub(crate) fn take_command(&self) -> Option<Command> {
        self.state().command.take()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // A clock that panics leaves the state as it was.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// The clock is read while the state is locked. A reader therefore cannot see the window closed before a renewal
    /// extends it.
    fn remaining(&self, clock: &dyn Clock) -> Duration {
        if self.closed { Duration::ZERO } else { self.valid_until.saturating_since(clock.now()) }
    }

    fn is_open(&self, clock: &dyn Clock) -> bool {
        !self.remaining(clock).is_zero()
    }
}
