//! The state of all nodes and of the object, and the properties that must hold in every state.

use std::time::Duration;

use leaderelection::election::Rules;
use leaderelection::{LeaderElectionRecord, Version};
use stateright::{Model, Property};

use super::action::{Action, Deed};
use super::job::Progress;
use super::node::Node;
use super::properties;
use crate::reach::{Goal, Mover, Reach};

/// The number of times that the time before a request for the lease doubles at most.
pub(super) const MOST_DOUBLINGS: u8 = 1;

/// The behaviour of the work of a term.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Manner {
    /// The work begins and ends as soon as it is told to.
    Prompt,
    /// The work begins as soon as it is told to, and ends at any later moment.
    EndsLate,
    /// The work is polled for the first time at any later moment, and ends as soon as it is told to.
    BeginsLate,
}

/// One question to the checker.
#[derive(Clone, Debug)]
pub struct Setup {
    /// The identity of each node, and the advance of its clock in one step.
    pub nodes: Vec<(&'static str, u64)>,
    /// Lease duration in clock units.
    pub lease: u64,
    /// The lease duration of all nodes but the first, if it differs: timings are changed at one node after the other.
    pub other_lease: Option<u64>,
    /// The number of times that a node gets other timings while it runs: the longer of two pairs of lease and deadline, or
    /// the first pair again.
    pub reconfigures: usize,
    /// The part by which the other timings are longer.
    pub longer: u64,
    /// The rank of the first node and that of the others.
    pub ranks: (u8, u8),
    /// The first node takes the lease back.
    pub takes_back: bool,
    /// Renew deadline in clock units.
    pub renew: u64,
    /// Retry period in clock units.
    pub retry: u64,
    /// The pause between the reads of a candidate while the leader renews, if it is longer than the retry period.
    pub follower: Option<u64>,
    /// The token of the last explored term.
    pub last_token: u64,
    /// The number of writes that may be on their way after their senders stopped waiting. Further writes are lost.
    pub late_writes: usize,
    /// `true` if the answer to a read is delivered as soon as the read arrives. A slow read then arrives late.
    pub instant_reads: bool,
    /// `true` if the clocks' rates are within the bound that exclusion needs. Without this bound, exclusion is not
    /// checked.
    pub trusted_clocks: bool,
    /// `true` if nodes crash, and start again with the same identity.
    pub crashes: bool,
    /// `true` if nodes are asked to stop and to step down.
    pub stops: bool,
    /// `true` if the work of a term may fail at any moment.
    pub fails: bool,
    /// The behaviour of the work of a term.
    pub work: Manner,
    /// `true` if nodes release their lease at the end of a term.
    pub releases: bool,
    /// `true` if an operator deletes the object, once. Then only [`Violation::Haste`] is checked.
    pub deletion: bool,
    /// The number of times that an operator asks for another leader.
    pub transfers: usize,
    /// `true` if somebody replaces the record by something that is none, once, and puts it back later.
    pub spoils: bool,
    /// `true` if nodes take a lease under their own identity at once, as after a restart.
    pub reclaims: bool,
    /// `true` if answers may be wrong: a conflict or a refusal after the write was applied.
    pub lies: bool,
    /// `true` if answers may ask a node to send nothing for a lease duration.
    pub waits: bool,
    /// The number of nodes that are candidates for one job, which has to succeed only once. The others have no job.
    pub jobs: usize,
    /// The clock by which the store tells how old the object is; `None` if it does not tell.
    pub store_clock: Option<StoreClock>,
    /// The number of words of peers, true and false, that count at some node.
    pub words: usize,
    /// `true` if only exclusion is checked. A history then continues after another promise was broken.
    pub only_exclusion: bool,
}

/// The clocks of the store's servers (rule 19).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoreClock {
    /// The advance of the store's clocks in one step.
    pub rate: u64,
    /// The time by which an answer makes the object older than it is, because two clocks disagree.
    pub error: u64,
    /// The time by which the candidates expect the store's clocks to disagree.
    pub slack: u64,
}

impl Setup {
    /// The rules of the node at `index` after other timings were set, or the first timings again.
    pub fn rules_after(&self, index: usize, is_longer: bool) -> Rules {
        let mut rules = self.rules(index);
        if is_longer {
            let longer = Duration::from_nanos(self.longer);
            (rules.lease_duration, rules.renew_deadline) =
                (rules.lease_duration + longer, rules.renew_deadline + longer);
        }
        rules
    }

    /// The rules of the node at `index`.
    pub fn rules(&self, index: usize) -> Rules {
        let nanos = Duration::from_nanos;
        let lease = self.lease_of(index);
        // A longer lease has a longer deadline, so that the leader uses the time that others must wait.
        let renew = self.renew + lease.saturating_sub(self.lease);
        let mut rules = Rules::new(self.nodes[index].0, nanos(lease), nanos(renew), nanos(self.retry));
        rules.follower_interval = nanos(self.follower_interval());
        rules.rank = self.rank_of(index);
        rules.take_back = self.takes_back && index == 0;
        rules.settle_doublings = MOST_DOUBLINGS;
        rules.reclaim_own_identity = self.reclaims;
        rules.release_on_cancel = self.releases;
        rules.store_clock_slack = self.store_clock.map(|clock| nanos(clock.slack));
        if self.words > 0 {
            rules.infrequent_interval = nanos(lease + 2 * self.retry);
        }
        rules
    }

    /// The lease duration of the node at `index`, in clock units.
    pub fn lease_of(&self, index: usize) -> u64 {
        self.other_lease.filter(|_| index > 0).unwrap_or(self.lease)
    }

    /// The pause between the reads of a candidate while the leader renews.
    pub fn follower_interval(&self) -> u64 {
        self.follower.unwrap_or(self.retry)
    }

    /// The rank of the node at `index`.
    pub fn rank_of(&self, index: usize) -> u8 {
        if index == 0 { self.ranks.0 } else { self.ranks.1 }
    }

    /// Returns `true` if the nodes have unequal ranks.
    pub fn has_ranks(&self) -> bool {
        self.ranks.0 != self.ranks.1
    }

    /// The longest lease duration of a node.
    pub fn longest_lease(&self) -> u64 {
        self.lease.max(self.other_lease.unwrap_or_default()) + self.longer
    }

    /// The greatest age of a past event that matters.
    pub fn longest_memory(&self) -> u64 {
        self.longest_lease() * if self.takes_back { 1 << MOST_DOUBLINGS } else { 1 }
    }

    /// Returns the reading of every clock, which never changes: all remembered moments move into the past instead. The
    /// reading is far enough from zero for the longest time that matters.
    pub fn now(&self) -> u64 {
        4 * self.longest_lease() + 4 * self.retry
    }
}

/// The object.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Cell {
    /// The content of the object.
    pub record: LeaderElectionRecord,
    /// The version of the object: the write id, unless an operator wrote a request into the record.
    pub version: Version,
    /// The node that wrote the record; `None` if the node has crashed since, because a restarted node is another
    /// process.
    pub writer: Option<usize>,
    /// The time since the last write by the store's clock, in a setup in which the store tells it.
    pub age: u64,
}

/// The state of a record that is replaced once by something that is none, and put back later.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Spoilt {
    /// The record was not replaced yet.
    NotYet,
    /// The object cannot be read.
    Now,
    /// The record is back, with its version, as on a store whose versions are a hash of the content.
    Over,
}

/// A property that a step has broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Violation {
    /// Two terms had one token, or the first write of a term landed with a token that was not larger than those of
    /// all terms whose first write had landed before.
    ///
    /// With clocks within their bound, the terms also begin in this order. Without the bound, a late answer may
    /// begin a term after the next term has begun. The late term has the smaller token, and the fence refuses it.
    Tokens,
    /// A term that had ended was valid again.
    Revival,
    /// A term was given up as taken over although the record still was the term's own.
    SpuriousLoss,
    /// A write replaced the valid lease of another node.
    Erasure,
    /// A lease was released while the work still ran.
    EarlyRelease,
    /// The work of a term ran on when its lease was over, although the machine had looked at the clock.
    Overrun,
    /// A candidacy was over although its work still ran and had not been given up.
    EarlyEnd,
    /// A candidate that had been asked to stop competed for another term.
    Disobedience,
    /// A node announced another leader before it ended its own term.
    Order,
    /// A candidate created the record anew before the end of a lease that it had seen.
    Haste,
    /// A request was sent before the time that the store had asked for.
    Hurry,
    /// A clash of identities was reported, but neither another process nor an earlier process of this candidate
    /// wrote the object under the same identity.
    FalseClash,
    /// A term or its work began for a job whose mark had landed.
    Repetition,
    /// A mark landed for work that had not succeeded, or by another write than the release of its term.
    FalseMark,
    /// A write dropped the mark.
    LostMark,
    /// Work had succeeded, and its candidate released the lease without the mark, or ended its candidacy without a release
    /// although the lease was still its own.
    MissingMark,
    /// A candidate said that the job was done before a mark had landed.
    FalseReport,
    /// A word that was no news changed the state of a candidate.
    Echo,
    /// A term went on, or its lease was kept, although its work had failed.
    Futility,
    /// A candidate took a free lease before the time of its rank.
    Pushing,
    /// A candidate asked for the lease without a better rank, or before its settle time was over.
    Insolence,
    /// The count of requests was lost, or did not grow by a request.
    Oblivion,
    /// A candidate would read later than two retry periods from now, although its leader may be silent from now on.
    Trust,
    /// A candidate whose read showed no renewal would read later than a retry period from now.
    Sloth,
}

/// All nodes, the object, and the writes that are on their way although their senders no longer wait.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct World {
    pub(super) nodes: Vec<Node>,
    pub(super) cell: Option<Cell>,
    pub(super) orphans: Vec<(Option<usize>, LeaderElectionRecord)>,
    /// The tokens of all terms that have begun, as a set of bits.
    pub(super) started: u64,
    pub(super) job: Progress,
    pub(super) violation: Option<Violation>,
    pub(super) deleted: bool,
    /// The number of requests of an operator.
    pub(super) transferred: usize,
    /// The number of times that a node got other timings.
    pub(super) reconfigured: usize,
    /// The number of words of peers that have counted.
    pub(super) heard: usize,
    /// The state of the record that is replaced once by something that is none.
    pub(super) spoilt: Spoilt,
    /// The number of different ids in this state.
    pub(super) ids: usize,
}

impl World {
    /// Returns the number of nodes that lead at this moment, each by its own clock.
    pub fn leaders(&self, setup: &Setup) -> usize {
        self.nodes.iter().filter(|node| node.leading(setup).is_some()).count()
    }

    /// Records a broken promise, if the setup checks more than exclusion.
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
            job: Progress::default(),
            violation: None,
            deleted: false,
            transferred: 0,
            reconfigured: 0,
            heard: 0,
            spoilt: Spoilt::NotYet,
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
        properties::of(self)
    }
}

impl Reach for Setup {
    fn goals(&self) -> Vec<Goal> {
        (0..self.nodes.len()).map(|node| Goal { node, lock: 0 }).collect()
    }

    fn is_reached(&self, world: &World, goal: Goal) -> bool {
        world.nodes[goal.node].leading(self).is_some()
    }

    fn mover(&self, action: &Action) -> Mover {
        match action {
            // Somebody puts a spoilt record back in the end.
            Action::Tick | Action::Repair => Mover::Time,
            Action::Node(node, Deed::Poll | Deed::Arrive | Deed::Answer | Deed::BeginWork | Deed::WorkStopped) => {
                Mover::Node(*node)
            }
            _ => Mover::Other,
        }
    }
}
