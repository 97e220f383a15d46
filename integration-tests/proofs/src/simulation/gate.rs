//! A stopped process: no part of it runs until it continues.

use std::future::Future;
use std::pin::Pin;
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

/// A future of a node, with functions that are called before and after every poll.
pub(super) struct Gated<F, B, P> {
    gate: Gate,
    inner: Pin<Box<F>>,
    before: B,
    look: P,
}

impl<F, B: FnMut(), P: FnMut()> Gated<F, B, P> {
    pub(super) fn new(gate: Gate, inner: F, before: B, look: P) -> Self {
        Self { gate, inner: Box::pin(inner), before, look }
    }
}

impl<F: Future, B: FnMut() + Unpin, P: FnMut() + Unpin> Future for Gated<F, B, P> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        if self.gate.holds_back(context) {
            return Poll::Pending;
        }
        (self.before)();
        let polled = self.inner.as_mut().poll(context);
        (self.look)();
        polled
    }
}
