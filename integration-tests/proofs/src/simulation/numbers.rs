//! The objects of a sequenced lock: one for each write, until it is removed.

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;
use leaderelection_sequenced::steps::complete;

use super::state::State;

/// The objects of a lock, and the states that the lock had.
#[derive(Debug, Default)]
pub(super) struct Numbers {
    /// An object that is created at a number that had been removed never counts.
    pub(super) objects: BTreeMap<u64, Stored>,
    /// The true history: the state of each number that was the highest when it was created. `None` for a deletion.
    states: Vec<Option<State>>,
}

/// One object.
#[derive(Clone, Debug)]
pub(super) struct Stored {
    pub(super) content: Bytes,
    /// The `Last-Modified` of the object.
    pub(super) written: Option<Duration>,
}

impl Numbers {
    /// The highest number that ever existed.
    pub(super) fn highest(&self) -> u64 {
        self.states.len() as u64
    }

    /// Adds the next state, which somebody has just written.
    pub(super) fn append(&mut self, state: Option<State>, deleted_at: Option<Duration>) {
        let (body, written) = match &state {
            Some(state) => (state.object.body.clone(), state.written),
            None => (Bytes::new(), deleted_at),
        };
        self.states.push(state);
        self.objects.insert(self.highest(), Stored { content: complete(&body), written });
    }

    /// The state at a number.
    pub(super) fn state(&self, number: u64) -> Option<&State> {
        self.states.get(usize::try_from(number).ok()?.checked_sub(1)?)?.as_ref()
    }

    /// Returns `true` if the lock did not exist at some moment since `highest` was the highest number.
    pub(super) fn was_absent_since(&self, highest: u64) -> bool {
        let index = usize::try_from(highest).unwrap_or(usize::MAX);
        index == 0 || self.states.get(index - 1..).is_none_or(|states| states.iter().any(Option::is_none))
    }
}
