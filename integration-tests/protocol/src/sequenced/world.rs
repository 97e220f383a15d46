//! The objects of one lock, and the processes with their calls.

use std::collections::BTreeMap;

use bytes::Bytes;
use leaderelection::sequenced::steps::{Ask, Look, Number, Place, Write};
use stateright::{Model, Property};

use super::action::Action;

/// The faults and the bounds of an exploration.
#[derive(Clone, Debug)]
pub struct Setup {
    /// The number of newest objects that a write keeps.
    pub keep: u64,
    /// The highest number that is explored.
    pub last_number: u64,
    /// The number of writes that each process begins.
    pub writes: Vec<u8>,
    /// The number of creations and removals that are on their way although nobody waits for them.
    pub late: usize,
    /// The order in which a listing reads the keys.
    pub listing: Listing,
    /// A process crashes, and begins anew with nothing that it knows.
    pub crashes: bool,
    /// A request fails, with an effect, with a late one, or without any.
    pub failures: bool,
    /// The lock is deleted.
    pub deletions: bool,
    /// A creation is delivered twice.
    pub duplicates: bool,
}

/// The way in which a store answers a listing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Listing {
    /// From one snapshot.
    Snapshot,
    /// Key by key, in ascending order, while other requests are carried out.
    Ascending,
}

/// A broken promise.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Violation {
    /// A write is acknowledged that does not follow the version that it names.
    FalseSuccess,
    /// A write is said to have no effect, and has one or may still have one.
    FalseConflict,
    /// A call shows what is not the newest object of any moment of the call.
    StaleRead,
    /// The highest number is removed.
    HighestRemoved,
}

/// The origin of a creation: a process, and the number of its write.
pub type Origin = (usize, u8);

/// An object in the store.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Created {
    /// The content.
    pub content: Bytes,
    /// The write that created the object.
    pub origin: Origin,
}

/// A request for whose answer nobody waits.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct InFlight {
    /// The request.
    pub ask: Ask,
    /// The write that sent the request.
    pub origin: Origin,
}

/// A call of a process.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Call {
    /// A read.
    Look(Look),
    /// A write of a number of this process, on an expected number.
    Write(Write, Option<Number>),
}

/// A call, with its next request.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Running {
    /// The call.
    pub call: Call,
    /// The request that is on its way.
    pub ask: Ask,
    /// The numbers that a listing has read so far.
    pub listed: Vec<Number>,
    /// The highest number that existed when a look began; 0 for a write.
    pub highest_before: u64,
}

/// A process.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Client {
    /// The place that the store of this process knows.
    pub known: Option<Place>,
    /// The place that the process itself has seen last.
    pub seen: Option<Place>,
    /// The call that is under way.
    pub running: Option<Running>,
    /// The number of writes so far.
    pub writes: u8,
}

/// A state of the model.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct World {
    /// The objects, by number.
    pub objects: BTreeMap<u64, Created>,
    /// The objects that were the highest when they were created, by number: the true history of the lock.
    pub history: Vec<Created>,
    /// The processes.
    pub clients: Vec<Client>,
    /// The requests for whose answers nobody waits.
    pub late: Vec<InFlight>,
    /// The first broken promise.
    pub violation: Option<Violation>,
}

impl World {
    /// The highest number that ever existed.
    #[must_use]
    pub fn highest(&self) -> u64 {
        self.history.len() as u64
    }

    /// Returns `true` if an object was created at a number that had been the highest before.
    #[must_use]
    pub fn has_stray(&self) -> bool {
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

impl Model for Setup {
    type State = World;
    type Action = Action;

    fn init_states(&self) -> Vec<World> {
        vec![World { clients: vec![Client::default(); self.writes.len()], ..World::default() }]
    }

    fn actions(&self, world: &World, actions: &mut Vec<Action>) {
        world.possible(self, actions);
    }

    fn next_state(&self, world: &World, action: Action) -> Option<World> {
        let mut next = world.clone();
        next.take(self, action);
        Some(next)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        fn never(world: &World, violation: Violation) -> bool {
            world.violation != Some(violation)
        }
        let mut properties = vec![
            Property::always("no false success", |_, world: &World| never(world, Violation::FalseSuccess)),
            Property::always("no false conflict", |_, world: &World| never(world, Violation::FalseConflict)),
            Property::always("the highest stays", |_, world: &World| never(world, Violation::HighestRemoved)),
            // An empty exploration would prove the properties above.
            Property::sometimes("the last number", |setup: &Setup, world: &World| world.highest() == setup.last_number),
            Property::sometimes("a sweep", |_, world: &World| world.highest() > 0 && !world.objects.contains_key(&1)),
            Property::sometimes("a late creation below the highest", |_, world: &World| world.has_stray()),
        ];
        // A second delivery of a creation may hide for a few reads that a place is gone.
        if !self.duplicates {
            properties.push(Property::always("no stale read", |_, world: &World| never(world, Violation::StaleRead)));
        }
        if self.deletions {
            properties.push(Property::sometimes("a write after a deletion", |_, world: &World| {
                world.history.windows(2).any(|pair| pair[0].content.len() == 1 && pair[1].content.len() > 1)
            }));
        }
        properties
    }

    fn within_boundary(&self, world: &World) -> bool {
        world.highest() <= self.last_number
    }
}
