//! A stopped process: no part of it runs until it continues.

use std::future::poll_fn;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};

/// Holds back all futures of a node while it is closed.
#[derive(Clone, Debug, Default)]
pub(super) struct Gate(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    closed: bool,
    waiting: Vec<Waker>,
}

impl Gate {
    /// Closes the gate. Returns `true` if it was open.
    pub(super) fn close(&self) -> bool {
        !std::mem::replace(&mut self.0.lock().unwrap().closed, true)
    }

    pub(super) fn open(&self) {
        let waiting = {
            let mut state = self.0.lock().unwrap();
            state.closed = false;
            std::mem::take(&mut state.waiting)
        };
        waiting.into_iter().for_each(Waker::wake);
    }

    pub(super) fn is_closed(&self) -> bool {
        self.0.lock().unwrap().closed
    }

    /// Returns `true` if the gate is closed, and then registers `context` to be woken on opening.
    fn holds_back(&self, context: &Context<'_>) -> bool {
        let mut state = self.0.lock().unwrap();
        if state.closed && !state.waiting.iter().any(|waker| waker.will_wake(context.waker())) {
            state.waiting.push(context.waker().clone());
        }
        state.closed
    }
}

/// Returns a future of a node, with functions that are called before and after every poll.
pub(super) fn gated<T>(
    gate: Gate,
    inner: impl Future<Output = T>,
    mut before: impl FnMut(),
    mut after: impl FnMut(),
) -> impl Future<Output = T> {
    let mut inner = Box::pin(inner);
    poll_fn(move |context| {
        if gate.holds_back(context) {
            return Poll::Pending;
        }
        before();
        let polled = inner.as_mut().poll(context);
        after();
        polled
    })
}
