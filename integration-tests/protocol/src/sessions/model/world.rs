//! The state of all processes and objects, and the properties that must hold in every state.

use std::collections::BTreeMap;
use std::time::Duration;

use leaderelection::session::{Rules, SessionId};
use leaderelection::{LeaderElectionRecord, Version, election};
use stateright::{Model, Property};

use super::node::{Node, Target, Work};
use super::step::{Action, Deed};
use crate::reach::{Goal, Mover, Reach};

/// The advance of a clock in one step.
pub const TICK: u64 = 2;

/// Kinds of requests.
#[derive(Clone, Copy, Debug, Default)]
pub struct Slow {
    /// Reads and listings.
    pub reads: bool,
    /// Writes to a process's own session.
    pub own: bool,
    /// Writes to other sessions, and deletions.
    pub peers: bool,
    /// Writes to locks.
    pub locks: bool,
}

/// One question to the checker.
#[derive(Clone, Debug)]
pub struct Setup {
    /// The identity of each node.
    pub nodes: Vec<&'static str>,
    /// The number of locks.
    pub locks: usize,
    /// Lease duration, renew deadline and retry period in clock units. A clock advances by [`TICK`] units in one step.
    pub timings: [u64; 3],
    /// The longest pause between two looks at all locks, in clock units.
    pub look_around: u64,
    /// The time after which the object of an ended session is deleted, in clock units.
    pub delete_after: Option<u64>,
    /// The number of requests that a member sends at a time, besides those for its own session.
    pub at_a_time: usize,
    /// `true` if members list the locks and the sessions, and read only what has changed.
    pub lists: bool,
    /// The token of the last explored term of a lock.
    pub last_token: u64,
    /// The number of sessions that each node opens.
    pub sessions: usize,
    /// The number of writes that may be on their way after their senders stopped waiting. Further writes are lost.
    pub late_writes: usize,
    /// The requests that take time, so that anything may happen before they arrive and before they are answered. A node
    /// makes any other request, and gets its answer, in one step.
    pub slow: Slow,
    /// `true` if a slow write either arrives and is answered at once, or is given up at once and arrives at any later
    /// moment, if it is not lost.
    pub at_once_or_late: bool,
    /// `true` if slow requests are lost. A node that crashes loses its requests in any case.
    pub losses: bool,
    /// `true` if nodes crash, and start again with the same identity.
    pub crashes: bool,
    /// `true` if nodes are asked to stop.
    pub stops: bool,
    /// `true` if nodes are asked to step down from one lock.
    pub step_downs: bool,
    /// `true` if work ends at any moment after it was told to.
    pub late_work: bool,
}

impl Setup {
    /// The rules of the node at `index`.
    pub fn rules(&self, index: usize) -> Rules {
        let [lease, renew, retry] = self.timings.map(Duration::from_nanos);
        let mut rules = Rules::new(election::Rules::new(self.nodes[index], lease, renew, retry));
        rules.look_around = Duration::from_nanos(self.look_around);
        rules.delete_after = self.delete_after.map(Duration::from_nanos);
        rules.at_a_time = self.at_a_time;
        rules.reads_per_listing = if self.lists { 0 } else { 100 };
        rules
    }

    /// Changes a setting.
    ///
    /// # Panics
    ///
    /// Panics if there is no such setting.
    pub fn set(&mut self, name: &str, value: u64) {
        let count = usize::try_from(value).expect("a small number");
        match name {
            "locks" => self.locks = count,
            "lease" => self.timings[0] = value,
            "renew" => self.timings[1] = value,
            "retry" => self.timings[2] = value,
            "look_around" => self.look_around = value,
            "delete_after" => self.delete_after = Some(value),
            "at_a_time" => self.at_a_time = count,
            "lists" => self.lists = value > 0,
            "last_token" => self.last_token = value,
            "sessions" => self.sessions = count,
            "late_writes" => self.late_writes = count,
            "slow_reads" => self.slow.reads = value > 0,
            "slow_own" => self.slow.own = value > 0,
            "slow_peers" => self.slow.peers = value > 0,
            "slow_locks" => self.slow.locks = value > 0,
            "at_once_or_late" => self.at_once_or_late = value > 0,
            "losses" => self.losses = value > 0,
            "crashes" => self.crashes = value > 0,
            "stops" => self.stops = value > 0,
            "step_downs" => self.step_downs = value > 0,
            "late_work" => self.late_work = value > 0,
            _ => panic!("no setting is called {name}"),
        }
    }

    /// Returns the reading of every clock, which never changes: all remembered moments move into the past instead.
    pub fn now(&self) -> u64 {
        4 * self.timings[0] + 4 * self.timings[2] + self.look_around + self.delete_after.unwrap_or_default()
    }
}

/// An object.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Cell {
    /// The content of the object.
    pub(super) record: LeaderElectionRecord,
    /// The version of the object.
    pub(super) version: Version,
    /// The node that wrote the record; `None` if the node has crashed since, because a restarted node is another process.
    pub(super) writer: Option<usize>,
}

/// A write that is on its way although its sender no longer waits.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Orphan {
    pub(super) writer: Option<usize>,
    pub(super) target: Target,
    pub(super) write: election::Write,
}

/// A property that a step has broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Violation {
    /// Two terms of a lock had one token, or the first write of a term landed with a token that was not larger than all
    /// before.
    Tokens,
    /// A term that had ended was valid again.
    Revival,
    /// A term was given up as taken over although lock and session still were the term's own.
    SpuriousLoss,
    /// A write replaced the lock of a valid term, or a session that was valid, of another node.
    Erasure,
    /// A lock or a session was released while work ran that needed it.
    EarlyRelease,
    /// The work of a term ran on when its lease was over, although the machine had looked at the clock.
    Overrun,
}

/// All nodes and objects, and the writes that are on their way although their senders no longer wait.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct World {
    pub(super) nodes: Vec<Node>,
    pub(super) sessions: BTreeMap<SessionId, Cell>,
    pub(super) locks: Vec<Option<Cell>>,
    pub(super) orphans: Vec<Orphan>,
    /// The tokens of all terms of each lock that have begun, as sets of bits.
    pub(super) started: Vec<u64>,
    pub(super) violation: Option<Violation>,
    pub(super) deleted: bool,
    /// The number of different ids in this state.
    pub(super) ids: usize,
}

impl World {
    /// Returns the number of nodes that lead a lock at this moment, each by its own clock.
    pub fn leaders(&self, setup: &Setup, lock: usize) -> usize {
        self.nodes.iter().filter(|node| node.leading(setup, lock).is_some()).count()
    }
}

impl Model for Setup {
    type State = World;
    type Action = Action;

    fn init_states(&self) -> Vec<World> {
        let mut world = World {
            nodes: (0..self.nodes.len()).map(|index| Node::new(self, index, 0)).collect(),
            sessions: BTreeMap::new(),
            locks: vec![None; self.locks],
            orphans: Vec::new(),
            started: vec![0; self.locks],
            violation: None,
            deleted: false,
            ids: 0,
        };
        for index in 0..world.nodes.len() {
            world.begin(self, index);
        }
        vec![world.canonical(self)]
    }

    fn actions(&self, world: &World, actions: &mut Vec<Action>) {
        if world.violation.is_none() {
            world.possible(self, actions);
        }
    }

    fn next_state(&self, world: &World, action: Action) -> Option<World> {
        let next = world.after(self, &action);
        (next != *world).then_some(next)
    }

    fn within_boundary(&self, world: &World) -> bool {
        let tokens = world.locks.iter().flatten().all(|cell| cell.record.leader_transitions <= self.last_token);
        tokens && world.nodes.iter().all(|node| node.opened <= self.sessions)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        fn never(world: &World, violation: Violation) -> bool {
            world.violation != Some(violation)
        }
        let mut properties = vec![
            Property::always("exclusion", |setup: &Setup, world: &World| {
                (0..setup.locks).all(|lock| world.leaders(setup, lock) <= 1)
            }),
            Property::always("tokens", |_, world: &World| never(world, Violation::Tokens)),
            Property::always("no revival", |_, world: &World| never(world, Violation::Revival)),
            Property::always("no spurious loss", |_, world: &World| never(world, Violation::SpuriousLoss)),
            Property::always("no erasure", |_, world: &World| never(world, Violation::Erasure)),
            Property::always("no early release", |_, world: &World| never(world, Violation::EarlyRelease)),
            Property::always("no overrun", |_, world: &World| never(world, Violation::Overrun)),
            // An empty exploration would prove the properties above.
            Property::sometimes("every lock has a leader", |setup: &Setup, world: &World| {
                (0..setup.locks).all(|lock| world.leaders(setup, lock) == 1)
            }),
            Property::sometimes("an ended session", |_, world: &World| {
                world.sessions.values().any(|cell| cell.record.is_released())
            }),
        ];
        if self.last_token > 0 {
            properties.push(Property::sometimes("another term", |setup: &Setup, world: &World| {
                (0..setup.locks).any(|lock| world.started[lock].count_ones() > 1)
            }));
        }
        if self.sessions > 1 {
            properties.push(Property::sometimes("another session", |setup: &Setup, world: &World| {
                let leads = |node: &Node| (0..setup.locks).any(|lock| node.leading(setup, lock).is_some());
                world.nodes.iter().any(|node| node.opened > 1 && leads(node))
            }));
        }
        if self.delete_after.is_some() {
            properties.push(Property::sometimes("a deleted session", |_, world: &World| world.deleted));
        }
        if self.late_writes > 0 {
            properties.push(Property::sometimes("a late write", |_, world: &World| !world.orphans.is_empty()));
        }
        if self.late_work {
            properties.push(Property::sometimes("work that is given up", |_, world: &World| {
                world.nodes.iter().flat_map(|node| &node.seats).any(|seat| seat.work == Work::Abandoned)
            }));
        }
        if self.step_downs && self.slow.locks {
            properties.push(Property::sometimes("a released lock", |_, world: &World| {
                world.locks.iter().flatten().any(|cell| cell.record.is_released())
            }));
        }
        properties
    }
}

impl Reach for Setup {
    fn goals(&self) -> Vec<Goal> {
        let locks = |node| (0..self.locks).map(move |lock| Goal { node, lock });
        (0..self.nodes.len()).flat_map(locks).collect()
    }

    fn is_reached(&self, world: &World, goal: Goal) -> bool {
        world.nodes[goal.node].leading(self, goal.lock).is_some()
    }

    fn mover(&self, action: &Action) -> Mover {
        match action {
            Action::Tick => Mover::Time,
            Action::Node(node, Deed::Poll | Deed::Arrive(_) | Deed::Answer(_) | Deed::WorkStopped(_)) => {
                Mover::Node(*node)
            }
            _ => Mover::Other,
        }
    }
}
