//! The two locks, and the processes that compete for one of them or for both.

use std::sync::Arc;
use std::time::Duration;

use chrono::DateTime;
use leaderelection::clock::LocalInstant;
use leaderelection::election::{Draw, Election, Jitter, Purpose, Rules, Stamp};
use leaderelection::migration::view::{Half, Versions, View};
use leaderelection::{LeaderElectionRecord, StoreErrorKind, Version, VersionedRecord};
use stateright::{Model, Property};

use super::step::Action;

/// The unit of the modelled clock. All processes share the clock, because one lock's own model has clocks that drift.
pub(super) const UNIT: Duration = Duration::from_secs(1);

/// The retry period.
pub(super) const RETRY: u8 = 1;

/// The processes, the faults and the bounds of an exploration.
#[derive(Clone, Debug)]
pub struct Setup {
    /// The phase in which each process begins.
    pub phases: Vec<Phase>,
    /// The lease duration of each process, in units.
    pub leases: [u8; 2],
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
    /// The number of times that an operator releases one of the locks.
    pub releases: u8,
    /// `true` if the last process leads before the others begin, and the first takes the lease back from its worse rank.
    pub takes_back: bool,
    /// `true` if the first process may not write the new lock.
    pub is_refused: bool,
    /// The last moment of a fault, a crash, a release by an operator, or the beginning of a rollout, in units.
    pub eventful: u8,
    /// The longest time without a leader after the last of these events, in units; `None` if the exploration ends with the
    /// events, and the question is not asked.
    pub gap: Option<u8>,
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

impl Setup {
    /// The last moment that is explored: a gap that begins with the last event has become too long by then.
    fn horizon(&self) -> u8 {
        self.eventful + self.gap.map_or(0, |gap| gap + 1)
    }

    /// The highest token in the locks at the beginning.
    fn first_token(&self) -> Option<u64> {
        self.tokens.into_iter().flatten().max()
    }
}

/// A broken promise.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Violation {
    /// A term began whose token is not larger than that of every earlier term on either lock.
    TokenWentBack,
    /// A term ended because the leader took its own write for another's.
    LostToItself,
    /// A candidate kept one lock, although the other was refused.
    KeptHalf,
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

    pub(super) fn is_held(&self) -> bool {
        !self.record.is_released()
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
        /// The purpose.
        purpose: Purpose,
        /// The writes that are left, in their order.
        left: Vec<Put>,
        /// The versions of the writes that have landed.
        written: Versions,
    },
    /// A write that gives back the first half of a write, and the error of the second half.
    Return(Put, StoreErrorKind),
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
    /// The releases by an operator so far.
    pub releases: u8,
    /// The token of the last term that began.
    pub highest: Option<u64>,
    /// The phase of the process that led last.
    pub led: Option<Phase>,
    /// The units since a process led, or since the last event that a gap may follow.
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
        if setup.takes_back {
            (rules.rank, rules.take_back) = (u8::from(index > 0), index == 0);
        }
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
            releases: 0,
            highest: setup.first_token(),
            led: None,
            idle: 0,
            violation: None,
        };
        let last = world.nodes.len() - 1;
        if setup.takes_back {
            world.lead_first(setup, last);
        }
        (0..last).for_each(|index| world.begin(index));
        if !setup.takes_back {
            world.begin(last);
        }
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
        fn never(world: &World, violation: Violation) -> bool {
            world.violation != Some(violation)
        }
        fn shows(world: &World, what: impl Fn(&LeaderElectionRecord) -> bool) -> bool {
            world.locks.iter().flatten().any(|stored| what(&stored.record))
        }
        let mut properties = vec![
            Property::always("one leader", |_, world: &World| world.leaders() < 2),
            Property::always("tokens rise", |_, world: &World| never(world, Violation::TokenWentBack)),
            Property::always("no term is lost to itself", |_, world: &World| never(world, Violation::LostToItself)),
            Property::always("no half is kept", |_, world: &World| never(world, Violation::KeptHalf)),
            // An empty exploration would prove the properties above.
            Property::sometimes("half a write", |_, world: &World| {
                world.nodes.iter().any(|node| {
                    matches!(&node.call, Some(Call::Write { left, .. }) if node.phase == Phase::Both && left.len() == 1)
                })
            }),
        ];
        if self.gap.is_some() {
            properties.push(Property::always("no long gap", |setup: &Self, world: &World| {
                setup.gap.is_none_or(|gap| world.idle <= gap)
            }));
        }
        if !self.is_refused {
            properties.push(Property::sometimes("a second term", |setup: &Self, world: &World| {
                world.highest.unwrap_or(0) >= setup.first_token().map_or(1, |token| token + 2)
            }));
        }
        if self.is_refused {
            properties.push(Property::sometimes("half a write that is given back", |_, world: &World| {
                world.nodes.iter().any(|node| matches!(node.call, Some(Call::Return(..))))
            }));
        }
        if self.takes_back && self.phases.iter().all(|phase| *phase == Phase::Both) {
            properties.push(Property::sometimes("a request for the lease", |_, world: &World| {
                shows(world, |record| record.preferred_holder.is_some())
            }));
        }
        if self.rolls.is_some() && !self.hasty && !self.all_at_once {
            properties.push(Property::sometimes("the end of the move", |setup: &Self, world: &World| {
                let end = if setup.rolls == Some(Direction::Forward) { Phase::New } else { Phase::Old };
                world.led == Some(end) && world.nodes.iter().all(|node| node.phase == end)
            }));
        }
        properties
    }

    fn within_boundary(&self, world: &World) -> bool {
        world.now <= self.horizon()
    }
}
