//! The state of everything, and what must be true of it.

use std::time::Duration;

use leaderelection::election::Rules;
use leaderelection::{LeaderElectionRecord, Version};
use stateright::{Model, Property};

use super::node::{Node, Work};
use super::step::Action;

/// What the work of a term is like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Manner {
    /// It begins and ends when it is told to.
    Prompt,
    /// It begins when it is told to, and ends whenever it likes.
    EndsLate,
    /// It is polled for the first time whenever it likes, and ends when it is told to.
    BeginsLate,
}

/// One question to the checker.
#[derive(Clone, Debug)]
pub struct Setup {
    /// Each node's identity and how far its clock advances in a step.
    pub nodes: Vec<(&'static str, u64)>,
    /// Lease duration in clock units.
    pub lease: u64,
    /// Renew deadline in clock units.
    pub renew: u64,
    /// Retry period in clock units.
    pub retry: u64,
    /// No term after the one with this token is explored.
    pub last_token: u64,
    /// How many writes may be on their way without anybody waiting for them; more are lost.
    pub late_writes: usize,
    /// Whether a read's answer is delivered when it is made. A slow read is then one that is made late.
    pub instant_reads: bool,
    /// Whether the clocks' rates are within the bound that exclusion needs. If not, it is not asked for.
    pub trusted_clocks: bool,
    /// Whether nodes crash, and start again with the same identity.
    pub crashes: bool,
    /// Whether nodes are asked to stop.
    pub stops: bool,
    /// What the work of a term is like.
    pub work: Manner,
    /// Whether nodes release their lease at the end of a term.
    pub releases: bool,
    /// Whether an operator deletes the object, once. No more is promised then than that nobody is hasty.
    pub deletion: bool,
    /// Whether an operator asks for another leader, once.
    pub transfers: bool,
    /// Whether answers may be wrong: a conflict or a refusal after the write was applied.
    pub lies: bool,
    /// Whether nothing but exclusion is asked for, so that a history goes on when it breaks another promise.
    pub only_exclusion: bool,
}

impl Setup {
    /// The rules of the node at `index`.
    pub fn rules(&self, index: usize) -> Rules {
        let nanos = Duration::from_nanos;
        let mut rules = Rules::new(self.nodes[index].0, nanos(self.lease), nanos(self.renew), nanos(self.retry));
        rules.release_on_cancel = self.releases;
        rules
    }

    /// What a clock shows, always: everything else is moved instead. Far enough from zero for the
    /// longest time that matters.
    pub fn now(&self) -> u64 {
        4 * self.lease + 4 * self.retry
    }
}

/// The object.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Cell {
    /// What it says.
    pub record: LeaderElectionRecord,
    /// Its version: its write id, unless an operator wrote a request into it.
    pub version: Version,
    /// The node that wrote it, unless it has crashed since: what is started again is another process.
    pub writer: Option<usize>,
}

/// A property that a step has broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Violation {
    /// Two terms had one token, or the first write of a term landed and its token was not larger than those
    /// of all terms whose first write had landed before. With clocks within their bound, the terms also
    /// begin in this order. Without it, one may begin when the next one has, because its answer was late:
    /// then its token is the smaller one, and the fence keeps it out.
    Tokens,
    /// A term that had ended was valid again.
    Revival,
    /// A term was given up as taken over although the object still was its own.
    SpuriousLoss,
    /// A write replaced the lease of another that was alive.
    Erasure,
    /// A lease was released while the work still ran.
    EarlyRelease,
    /// The work of a term ran on when its lease was over, although the machine had looked at the clock.
    Overrun,
    /// A candidacy was over while its work still ran, and had not been given up.
    EarlyEnd,
    /// A candidate that was asked to stop went for another term.
    Disobedience,
    /// Another leader was told of before this one was told that it leads no more.
    Order,
    /// A record was created anew while a lease that had been seen was unexpired.
    Haste,
    /// A clash of identities was reported when the object was not what another process, or an earlier life
    /// of this one, wrote under the same identity.
    FalseClash,
}

/// All nodes, the object, and the writes that are still on their way although nobody waits for them.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct World {
    pub(super) nodes: Vec<Node>,
    pub(super) cell: Option<Cell>,
    pub(super) orphans: Vec<(Option<usize>, LeaderElectionRecord)>,
    /// The tokens of all terms that have begun, as a set of bits.
    pub(super) started: u64,
    pub(super) violation: Option<Violation>,
    pub(super) deleted: bool,
    pub(super) transferred: bool,
    /// How many different ids this state mentions.
    pub(super) ids: usize,
}

impl World {
    /// How many nodes lead at this moment, each by its own clock.
    pub fn leaders(&self, setup: &Setup) -> usize {
        self.nodes.iter().filter(|node| node.leading(setup).is_some()).count()
    }

    /// Notes what is wrong, if that is asked for.
    pub(super) fn violate(&mut self, setup: &Setup, violation: Option<Violation>) {
        if !setup.only_exclusion {
            self.violation = self.violation.or(violation);
        }
    }
}

impl Model for Setup {
    type State = World;
    type Action = Action;

    fn init_states(&self) -> Vec<World> {
        let nodes = (0..self.nodes.len()).map(|index| Node::new(self, index)).collect();
        let world = World {
            nodes,
            cell: None,
            orphans: Vec::new(),
            started: 0,
            violation: None,
            deleted: false,
            transferred: false,
            ids: 0,
        };
        let mut world = world;
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
        let next = world.after(self, action);
        (next != *world).then_some(next)
    }

    fn within_boundary(&self, world: &World) -> bool {
        world.cell.as_ref().is_none_or(|cell| cell.record.leader_transitions <= self.last_token)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        fn never(world: &World, violation: Violation) -> bool {
            world.violation != Some(violation)
        }
        if self.deletion {
            return vec![
                Property::always("no haste", |_, world: &World| never(world, Violation::Haste)),
                Property::sometimes("another record", |_, world: &World| world.deleted && world.cell.is_some()),
            ];
        }
        let exclusion = Property::always("exclusion", |setup: &Setup, world: &World| {
            !setup.trusted_clocks || world.leaders(setup) <= 1
        });
        if self.only_exclusion {
            return vec![exclusion];
        }
        let mut properties = vec![
            exclusion,
            Property::always("tokens", |_, world: &World| never(world, Violation::Tokens)),
            Property::always("no revival", |_, world: &World| never(world, Violation::Revival)),
            Property::always("no spurious loss", |_, world: &World| never(world, Violation::SpuriousLoss)),
            Property::always("no erasure", |_, world: &World| never(world, Violation::Erasure)),
            Property::always("no early release", |_, world: &World| never(world, Violation::EarlyRelease)),
            Property::always("no overrun", |_, world: &World| never(world, Violation::Overrun)),
            Property::always("no early end", |_, world: &World| never(world, Violation::EarlyEnd)),
            Property::always("no disobedience", |_, world: &World| never(world, Violation::Disobedience)),
            Property::always("stop before the next leader", |_, world: &World| never(world, Violation::Order)),
            Property::always("no false clash", |_, world: &World| never(world, Violation::FalseClash)),
            // What an empty exploration would prove, too.
            Property::sometimes("a leader", |setup: &Setup, world: &World| world.leaders(setup) == 1),
        ];
        if self.last_token > 0 {
            properties.push(Property::sometimes("another term", |_, world: &World| world.started > 1));
        }
        if self.work == Manner::EndsLate {
            properties.push(Property::sometimes("work that is dropped", |_, world: &World| {
                world.nodes.iter().any(|node| node.work == Work::Dropped)
            }));
            properties.push(Property::sometimes("work that is given up", |_, world: &World| {
                world.nodes.iter().any(|node| node.work == Work::Abandoned)
            }));
        }
        if self.stops {
            properties.push(Property::sometimes("a release", |_, world: &World| {
                world.cell.as_ref().is_some_and(|cell| cell.record.is_released())
            }));
        }
        if self.transfers {
            properties.push(Property::sometimes("a request obeyed", |_, world: &World| {
                world
                    .cell
                    .as_ref()
                    .is_some_and(|cell| cell.record.is_released() && cell.record.preferred_holder.is_some())
            }));
        }
        if self.late_writes > 0 {
            properties.push(Property::sometimes("a late write", |_, world: &World| !world.orphans.is_empty()));
        }
        properties
    }
}
