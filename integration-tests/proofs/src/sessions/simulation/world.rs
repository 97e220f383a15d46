//! One run: a queue of events in true time.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt::Debug;
use std::time::Duration;

use leaderelection::StoreErrorKind;
use leaderelection::election::{self, PeerMessage};
use leaderelection::sessions::machine::{SessionConfig, SessionId};

use super::drills::Drills;
use super::node::{Change, Node};
use super::oracle::{Oracle, Stats};
use super::store::Store;
use crate::kit::{Run, Simulation, Timeline};
use crate::sessions::wire::{Ask, Key, Target};
use crate::simulation::clock::Course;
use crate::simulation::dice::Dice;
use crate::simulation::faults::Fate;
use crate::simulation::scenario::{NODES, Scenario, Trouble};
use crate::simulation::timings::Timings;

/// The duration of a run.
pub(super) const RUN_LENGTH: Duration = Duration::from_secs(40 * 60);
/// The number of locks.
pub(super) const LOCKS: u32 = 50;

/// Five members that lead many locks through sessions.
#[derive(Clone, Copy, Debug)]
pub struct Sessions;

impl Simulation for Sessions {
    type Stats = Stats;

    fn hours(&self) -> f64 {
        10.0
    }

    fn conditions(&self, seed: u64) -> impl Debug {
        Scenario::draw(&mut Dice::new(seed))
    }

    fn run(&self, seed: u64, events: usize) -> Run<Stats> {
        run(seed, events)
    }
}

/// A request in flight to the store.
#[derive(Clone, Debug)]
pub(super) struct Parcel {
    pub(super) process: u64,
    pub(super) target: Target,
    pub(super) id: u64,
    pub(super) ask: Ask,
    pub(super) fate: Fate,
    pub(super) is_second: bool,
}

/// The number of messages that a liar remembers.
pub(super) const REMEMBERED: usize = 40;

/// Liars say a larger number than any session.
pub(super) const LARGE: u64 = 1 << 40;

/// The messages so far. The channel has a chance of its own, so that runs without messages have the histories that they had before
/// there were any.
#[derive(Debug)]
pub(super) struct Messages {
    pub(super) said: VecDeque<(SessionId, PeerMessage)>,
    pub(super) number: u64,
    pub(super) dice: Dice,
}

impl Messages {
    pub(super) fn new(seed: u64) -> Self {
        Self { said: VecDeque::new(), number: 0, dice: Dice::new(seed ^ LARGE) }
    }
}

/// Something that happens at a moment.
type Event = Box<dyn FnOnce(&mut World)>;

pub(super) struct World {
    /// The events to come, by moment, and by number if several come at one moment.
    pub(super) queue: BTreeMap<(Duration, u64), Event>,
    pub(super) drawn: u64,
    pub(super) scenario: Scenario,
    pub(super) balance: bool,
    pub(super) lists: bool,
    /// Every listing takes almost the request timeout.
    pub(super) lists_slowly: bool,
    /// Operators change locks.
    pub(super) operates: bool,
    /// Operators delete locks, and nothing else goes wrong.
    pub(super) deletes: bool,
    /// Operators delete sessions, and no request fails.
    pub(super) deletes_sessions: bool,
    /// Nothing goes wrong but what is planned.
    pub(super) drills: Option<Drills>,
    /// The locks that somebody asked to be handed over.
    pub(super) asked: BTreeSet<u32>,
    /// The locks whose tokens have no successor, with their last tokens.
    pub(super) spoilt: Vec<(u32, u64)>,
    pub(super) dice: Dice,
    pub(super) store: Store,
    pub(super) nodes: Vec<Node>,
    pub(super) messages: Messages,
    pub(super) oracle: Oracle,
    pub(super) timeline: Timeline,
    pub(super) calm: bool,
    /// The change of the members that is in flight while nothing else happens.
    pub(super) change: Option<Change>,
    pub(super) outage_until: Duration,
    pub(super) processes: u64,
    pub(super) is_over: bool,
}

fn run(seed: u64, events: usize) -> Run<Stats> {
    let mut dice = Dice::new(seed);
    let mut scenario = Scenario::draw(&mut dice);
    // A second process with one identity does not open a session while the first has one.
    scenario.sharing_identity = 0;
    // These have a chance of their own, so that the other choices of a run stay as they are.
    let mut others = Dice::new(!seed);
    let spells_otherwise = others.chance(0.2);
    let drills = Drills::draw(&scenario, &mut others);
    let deletes_sessions =
        others.chance(0.5) && drills.is_none() && scenario.other_timings.is_some() && scenario.liar().is_none();
    if deletes_sessions {
        // A store that shows nothing where something is, before somebody deletes that, is outside the promise.
        scenario.trouble = Trouble::None;
    }
    // An object among the sessions that may not be read, and one that is no record. No chance is drawn for it, so that all other
    // seeds stay as they are.
    let has_strangers = seed % 5 == 3;
    let is_calm = scenario.trouble == Trouble::None && dice.chance(0.5);
    let deletes = is_calm && drills.is_none() && !deletes_sessions;
    scenario.operator_deletes = false;
    let nodes = (0..NODES)
        .map(|_| Node {
            clock: Course::draw(RUN_LENGTH, scenario.rates, &mut dice),
            process: None,
            frozen_until: Duration::ZERO,
            link_down_until: Duration::ZERO,
            blind_until: Duration::ZERO,
        })
        .collect();
    let mut world = World {
        queue: BTreeMap::new(),
        drawn: 0,
        balance: dice.chance(0.5),
        lists: dice.chance(0.5),
        lists_slowly: dice.chance(0.2),
        store: Store::new(dice.chance(0.8), spells_otherwise),
        operates: !is_calm && dice.chance(0.5),
        deletes,
        deletes_sessions,
        drills,
        asked: BTreeSet::new(),
        spoilt: Vec::new(),
        scenario,
        nodes,
        messages: Messages::new(seed),
        oracle: Oracle::new(LOCKS as usize),
        timeline: Timeline::new(events),
        calm: false,
        change: None,
        outage_until: Duration::ZERO,
        processes: 0,
        is_over: false,
        dice,
    };
    if has_strangers {
        for why in [StoreErrorKind::Fatal, StoreErrorKind::Unreadable] {
            world.store.bar(Key::Session(format!("{why:?}").into()), why);
        }
    }
    world.begin();
    while !world.is_over && world.timeline.violation().is_none() {
        let Some(((at, _), event)) = world.queue.pop_first() else { break };
        world.timeline.now = at;
        event(&mut world);
    }
    world.timeline.end(world.oracle.stats)
}

impl World {
    pub(super) fn begin(&mut self) {
        for node in 0..NODES {
            let at = self.dice.up_to(self.scenario.timings.lease * 4);
            self.at(at, move |world| world.start(node));
        }
        if self.drills.is_some() {
            return self.begin_drills();
        }
        self.at(Duration::ZERO, Self::trouble);
        self.at(Duration::ZERO, Self::lie);
        if self.deletes {
            self.at(Duration::ZERO, Self::delete);
        }
        if self.deletes_sessions {
            self.at(Duration::ZERO, Self::delete_unread_session);
        }
        // The faults stop for long enough to see that every lock has a leader: twice, if there is time.
        let longest = self.longest_without_leader();
        let change = self.change_takes();
        let parts = if longest + change < RUN_LENGTH / 3 { 2 } else { 1 };
        for part in 1..=parts {
            let end = RUN_LENGTH / parts * part;
            let check = end.saturating_sub(change);
            self.at(check.saturating_sub(longest), |world| world.set_calm(true));
            self.at(check, Self::check);
            self.plan_change(check);
            self.at(end, |world| world.set_calm(false));
        }
        self.at(RUN_LENGTH, |world| world.is_over = true);
    }

    /// Returns `true` while nothing goes wrong.
    pub(super) fn is_quiet(&self) -> bool {
        self.change.is_some() || self.drills.is_some()
    }

    /// The longest time until every lock has a leader after the last fault: a freeze, a pause that the store asked for, the
    /// lease of a session that crashed, and that of a session under the same identity before another opens; then reads all
    /// sessions and locks, and the waits of all ranks, with a few requests that take as long as they may.
    pub(super) fn longest_without_leader(&self) -> Duration {
        let (scenario, timeout) = (&self.scenario, self.scenario.longest(|timings| timings.timeout));
        let (lease, retry) = (scenario.longest(|timings| timings.lease), scenario.longest(|timings| timings.retry));
        let scan_interval = self.rules("", self.scenario.timings).scan_interval;
        // A liar postpones polls for two scans.
        let believes = if scenario.liar().is_some() { scan_interval * 2 + lease } else { Duration::ZERO };
        let local = lease * 11 + retry * 40 + scan_interval * 3 + timeout * 12 + believes;
        self.scenario.by_the_slowest_clock(local)
    }

    pub(super) fn rules(&self, identity: &str, Timings { lease, deadline, retry, .. }: Timings) -> SessionConfig {
        let mut rules = SessionConfig::new(election::ElectionConfig::new(identity, lease, deadline, retry));
        rules.balance = self.balance;
        rules.reads_per_listing = if self.lists { 2 } else { 100 };
        rules
    }

    pub(super) fn at(&mut self, at: Duration, event: impl FnOnce(&mut Self) + 'static) {
        self.drawn += 1;
        self.queue.insert((at.max(self.timeline.now), self.drawn), Box::new(event));
    }

    pub(super) fn node_of(&self, process: u64) -> Option<usize> {
        self.nodes.iter().position(|node| node.process.as_ref().is_some_and(|alive| alive.number == process))
    }

    /// Lets something happen to the node of a process, if the process still runs then, and after a freeze of it.
    pub(super) fn at_process(&mut self, at: Duration, process: u64, event: impl FnOnce(&mut Self, usize) + 'static) {
        self.at(at, move |world| {
            let Some(node) = world.node_of(process) else { return };
            let until = world.nodes[node].frozen_until;
            if until > world.timeline.now { world.at_process(until, process, event) } else { event(world, node) }
        });
    }
}
