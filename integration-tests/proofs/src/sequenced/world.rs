//! The objects of one lock, and the processes with their calls.

use std::collections::BTreeMap;

use bytes::Bytes;
use leaderelection_sequenced::steps::{Ask, Number, Place, Poll, Write};

use crate::kit::promises;

promises! {
    /// A write is acknowledged that does not follow the version that it names.
    FalseSuccess = "no false success",
    /// A write is said to have no effect, and has one or may still have one.
    FalseConflict = "no false conflict",
    /// A call shows what is not the newest object of any moment of the call.
    StaleRead = "no stale read",
    /// The highest number is removed.
    HighestRemoved = "the highest stays",
}

/// The origin of a creation: a process, and the number of its write.
pub(super) type Origin = (usize, u8);

/// An object in the store.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Created {
    pub(super) content: Bytes,
    /// The write that created the object.
    pub(super) origin: Origin,
}

/// A call of a process.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Call {
    Poll(Poll),
    /// A write of a number of this process, on an expected number.
    Write(Write, Option<Number>),
}

/// A call, with its next request.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Running {
    pub(super) call: Call,
    /// The request that is in flight.
    pub(super) ask: Ask,
    /// The numbers that a listing has read so far.
    pub(super) listed: Vec<Number>,
    /// The highest number that existed when a poll began; 0 for a write.
    pub(super) highest_before: u64,
}

/// A process.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Client {
    /// The place that the store of this process knows.
    pub(super) known: Option<Place>,
    /// The place that the process itself has seen last.
    pub(super) seen: Option<Place>,
    /// The call that is in flight.
    pub(super) running: Option<Running>,
    /// The number of writes so far.
    pub(super) writes: u8,
}

/// A request for whose answer nobody waits, and the write that sent it.
pub(super) type Late = crate::kit::Late<Origin, Ask>;

/// A state of the model.
#[derive(Clone, Debug, Default, Hash)]
pub struct World {
    pub(super) objects: BTreeMap<u64, Created>,
    /// The objects that were the highest when they were created, by number: the true history of the lock.
    pub(super) history: Vec<Created>,
    pub(super) clients: Vec<Client>,
    /// The requests for whose answers nobody waits.
    pub(super) late: Vec<Late>,
    /// The first broken promise.
    pub(super) violation: Option<Violation>,
}

impl World {
    /// The highest number that ever existed.
    pub(super) fn highest(&self) -> u64 {
        self.history.len() as u64
    }

    /// Returns `true` if an object was created at a number that had been the highest before.
    pub(super) fn has_stray(&self) -> bool {
        self.objects.iter().any(|(number, object)| self.history[*number as usize - 1].origin != object.origin)
    }

    /// Carries out the creation of an object.
    pub(super) fn create(&mut self, number: Number, content: &Bytes, origin: Origin) -> bool {
        if self.objects.contains_key(&number.get()) {
            return false;
        }
        let created = Created { content: content.clone(), origin };
        self.objects.insert(number.get(), created.clone());
        if number.get() > self.highest() {
            assert_eq!(number.get(), self.highest() + 1, "numbers are taken in order");
            self.history.push(created);
        }
        true
    }

    /// Carries out the removal of an object.
    pub(super) fn remove(&mut self, number: Number) {
        self.objects.remove(&number.get());
        if number.get() == self.highest() {
            self.violate(Violation::HighestRemoved);
        }
    }

    pub(super) fn violate(&mut self, violation: Violation) {
        self.violation.get_or_insert(violation);
    }
}
