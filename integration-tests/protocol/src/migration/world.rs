//! The two locks, and the processes that compete for one of them or for both.

use std::sync::Arc;
use std::time::Duration;

use chrono::DateTime;
use leaderelection::clock::LocalInstant;
use leaderelection::election::{Draw, Election, Jitter, Rules, Stamp};
use leaderelection::migration::view::{Half, Versions, View};
use leaderelection::{LeaderElectionRecord, Version, VersionedRecord};
use stateright::{Model, Property};

use super::step::Action;

/// The unit of the modelled clock. All processes share the clock, because one lock's own model has clocks that drift.
const UNIT: Duration = Duration::from_secs(1);

/// The retry period.
const RETRY: u8 = 1;

/// The processes, the faults and the bounds of an exploration.
#[derive(Clone, Debug)]
pub struct Setup {
    /// The phase in which each process begins.
    pub phases: Vec<Phase>,
    /// The lease duration of each process, in units.
    pub leases: Vec<u8>,
    /// The renew deadline of each process, in units.
    pub deadline: u8,
    /// The token in each lock at the beginning, in a released record; `None` if there is no object.
    pub tokens: [Option<u64>; 2],
    /// The direction of the rollouts; `None` if every process stays in its phase.
    pub rolls: Option<Direction>,
    /// `true` if a rollout waits for no leader that holds both locks.
    pub hasty: bool,
    /// `true` if a rollout waits for no process of two phases before.
    pub all_at_once: bool,
    /// `true` if a look reads the two locks in any order, and `false` if it reads the old lock first.
    pub any_order: bool,
    /// The number of requests that are lost, doubted, late or slow.
    pub faults: u8,
    /// The number of crashes.
    pub crashes: u8,
    /// The last moment that is explored, in units.
    pub horizon: u8,
}

/// The locks that a process uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Phase {
    /// The old lock only.
    Old,
    /// Both.
    Both,
    /// The new lock only.
    New,
}

impl Phase {
    pub(super) fn halves(self) -> &'static [Half] {
        match self {
            Self::Old => &[Half::Old],
            Self::Both => &[Half::Old, Half::New],
            Self::New => &[Half::New],
        }
    }

    pub(super) fn next(self, direction: Direction) -> Option<Self> {
        match (self, direction) {
            (Self::Old, Direction::Forward) | (Self::New, Direction::Back) => Some(Self::Both),
            (Self::Both, Direction::Forward) => Some(Self::New),
            (Self::Both, Direction::Back) => Some(Self::Old),
            (Self::New, Direction::Forward) | (Self::Old, Direction::Back) => None,
        }
    }
}

/// The direction of the rollouts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From the old lock to the new one.
    Forward,
    /// From the new lock to the old one.
    Back,
}

/// A broken promise.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Violation {
    /// A term began whose token is not larger than that of every earlier term on either lock.
    TokenWentBack,
    /// A term ended because the leader took its own write for another's.
    LostToItself,
}

/// A record in one of the locks.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Stored {
    /// The record.
    pub record: Arc<LeaderElectionRecord>,
    /// The number of the write among all writes.
    pub version: u16,
}

impl Stored {
    pub(super) fn version(&self) -> Version {
        Version::new(self.version.to_string())
    }

    pub(super) fn shown(&self) -> VersionedRecord {
        VersionedRecord::new((*self.record).clone(), self.version())
    }
}

/// A write to one of the locks.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Put {
    /// The lock.
    pub half: Half,
    /// The record.
    pub record: Arc<LeaderElectionRecord>,
    /// The version that the write replaces; `None` if it creates the object.
    pub expected: Option<Version>,
}

/// A call of a process, and what is left of it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Call {
    /// A read of the locks; the outer `None` stands for a lock that was not read yet.
    Look(Box<[Option<Option<VersionedRecord>>; 2]>),
    /// A write.
    Write {
        /// The writes that are left, in their order.
        left: Vec<Put>,
        /// The versions of the writes that have landed.
        written: Versions,
    },
}

/// A process.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Node {
    /// The locks that the process uses.
    pub phase: Phase,
    /// The state machine of the election.
    pub election: Election,
    /// The process's knowledge of both locks.
    pub view: View,
    /// The call that is under way.
    pub call: Option<Call>,
    /// `true` if the process was asked to stop, to begin anew in the next phase.
    pub stops: bool,
    /// The number of write ids that this process and its predecessors have used.
    pub ids: u16,
}

/// A state of the model.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct World {
    /// The time.
    pub now: u8,
    /// The locks, the old one first.
    pub locks: [Option<Stored>; 2],
    /// The number of writes that have landed.
    pub writes: u16,
    /// The processes.
    pub nodes: Vec<Node>,
    /// The writes for whose answers nobody waits.
    pub late: Vec<Put>,
    /// The faults so far.
    pub faults: u8,
    /// The crashes so far.
    pub crashes: u8,
    /// The token of the last term that began.
    pub highest: Option<u64>,
    /// The phase of the process that led last.
    pub led: Option<Phase>,
    /// The units since a process led, or since the last fault.
    pub idle: u8,
    /// The first broken promise.
    pub violation: Option<Violation>,
}

impl Node {
    pub(super) fn new(setup: &Setup, index: usize, phase: Phase, ids: u16) -> Self {
        let mut rules = Rules::new(
            NAMES[index],
            UNIT * u32::from(setup.leases[index]),
            UNIT * u32::from(setup.deadline),
            UNIT * u32::from(RETRY),
        );
        rules.release_on_cancel = true;
        Self { phase, election: Election::new(rules), view: View::default(), call: None, stops: false, ids }
    }
}

/// The identities of the processes.
pub(super) const NAMES: [&str; 3] = ["a", "b", "c"];

/// The source of write ids, and of the smallest random numbers.
pub(super) struct Source<'a>(pub(super) usize, pub(super) &'a mut u16);

impl Draw for Source<'_> {
    fn jitter(&mut self) -> Jitter {
        Jitter::default()
    }

    fn stamp(&mut self) -> Stamp {
        *self.1 += 1;
        Stamp { write_id: format!("{}{}", NAMES[self.0], self.1), time: DateTime::UNIX_EPOCH }
    }
}

impl World {
    fn new(setup: &Setup) -> Self {
        let mut writes = 0;
        let locks = setup.tokens.map(|token| {
            let token = token?;
            writes += 1;
            let mut record = LeaderElectionRecord::new("", UNIT);
            record.leader_transitions = token;
            Some(Stored { record: Arc::new(record), version: writes })
        });
        let nodes = (0..setup.phases.len()).map(|index| Node::new(setup, index, setup.phases[index], 0)).collect();
        let mut world = Self {
            now: 0,
            locks,
            writes,
            nodes,
            late: Vec::new(),
            faults: 0,
            crashes: 0,
            highest: setup.tokens.into_iter().flatten().max(),
            led: None,
            idle: 0,
            violation: None,
        };
        (0..world.nodes.len()).for_each(|index| world.begin(index));
        world
    }

    pub(super) fn moment(&self) -> LocalInstant {
        LocalInstant::default() + UNIT * u32::from(self.now)
    }

    /// The number of processes that lead now.
    #[must_use]
    pub fn leaders(&self) -> usize {
        let now = self.moment();
        self.nodes.iter().filter(|node| node.election.leading(now).is_some()).count()
    }
}

impl Model for Setup {
    type State = World;
    type Action = Action;

    fn init_states(&self) -> Vec<World> {
        vec![World::new(self)]
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
        let mut properties = vec![
            Property::always("one leader", |_, world: &World| world.leaders() < 2),
            Property::always("tokens rise", |_, world: &World| world.violation != Some(Violation::TokenWentBack)),
            Property::always("no term is lost to itself", |_, world: &World| {
                world.violation != Some(Violation::LostToItself)
            }),
            Property::always("no gap is longer than a lease", |setup: &Self, world: &World| {
                // A candidate looks once per retry period, and the last unit has only begun.
                world.idle <= setup.leases.iter().max().unwrap_or(&0) + RETRY + 1
            }),
            // An empty exploration would prove the properties above.
            Property::sometimes("a second term", |setup: &Self, world: &World| {
                world.highest.unwrap_or(0) >= setup.tokens.into_iter().flatten().max().map_or(1, |token| token + 2)
            }),
            Property::sometimes("half a write", |_, world: &World| {
                world.nodes.iter().any(|node| {
                    matches!(&node.call, Some(Call::Write { left, .. }) if node.phase == Phase::Both && left.len() == 1)
                })
            }),
        ];
        if self.rolls.is_some() && !self.hasty && !self.all_at_once {
            properties.push(Property::sometimes("the end of the move", |setup: &Self, world: &World| {
                let end = if setup.rolls == Some(Direction::Forward) { Phase::New } else { Phase::Old };
                world.led == Some(end) && world.nodes.iter().all(|node| node.phase == end)
            }));
        }
        properties
    }

    fn within_boundary(&self, world: &World) -> bool {
        world.now <= self.horizon
    }
}
