//! One run: a queue of events in true time.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::time::Duration;

use leaderelection::election::{self, Command, EndReason, Failure, Request, WorkEnd};
use leaderelection::session::{Effect, Input, LockId, Member, PeerRequest, Rules};
use leaderelection::StoreErrorKind;

use super::node::{Ids, Node, Process, Seat, Target, Work};
use super::oracle::{Oracle, Property, Stats};
use super::store::{Ask, Key, Reply, Store};
use crate::simulation::dice::Dice;
use crate::simulation::faults::{self, Fate};
use crate::simulation::scenario::{NODES, Scenario, Timings, Trouble};

/// The duration of a run.
pub(super) const RUN_LENGTH: Duration = Duration::from_secs(40 * 60);
/// The number of locks.
const LOCKS: u32 = 50;

/// The result of a run.
#[derive(Clone, Debug)]
pub struct Run {
    /// The seed.
    pub seed: u64,
    /// The statistics.
    pub stats: Stats,
    /// The promise that was broken, and how.
    pub violation: Option<(Property, String)>,
    /// The last events.
    pub story: String,
}

#[derive(Clone, Debug)]
enum Event {
    /// The node's process looks at its clock.
    Wake {
        process: u64,
        at: Duration,
    },
    Arrive {
        process: u64,
        target: Target,
        id: u64,
        ask: Ask,
        fate: Fate,
        is_second: bool,
    },
    Return {
        process: u64,
        target: Target,
        id: u64,
        reply: Reply,
    },
    WorkEnds {
        process: u64,
        lock: u32,
        token: u64,
    },
    Start(usize),
    Trouble,
    /// Faults begin, or end.
    Calm(bool),
    /// Every lock must have a leader.
    Check,
    MustHaveEnded(u64),
    End,
}

struct World {
    now: Duration,
    queue: BinaryHeap<Reverse<(Duration, u64)>>,
    events: BTreeMap<u64, Event>,
    drawn: u64,
    scenario: Scenario,
    balance: bool,
    lists: bool,
    dice: Dice,
    store: Store,
    nodes: Vec<Node>,
    oracle: Oracle,
    calm: bool,
    outage_until: Duration,
    processes: u64,
    is_over: bool,
}

/// Runs one seed, and remembers the last `lines` events.
#[must_use]
pub fn run(seed: u64, lines: usize) -> Run {
    let mut dice = Dice::new(seed);
    let mut scenario = Scenario::draw(&mut dice);
    // A second process with one identity does not open a session while the first has one.
    scenario.sharing_identity = 0;
    (scenario.operator_deletes, scenario.other_timings) = (false, None);
    let (slowest, fastest) = scenario.rates;
    let nodes = (0..NODES)
        .map(|_| Node {
            rate: dice.pick(&[slowest, fastest, dice_rate(seed, slowest, fastest)]),
            origin: dice.within(0, 1_000_000_000_000),
            process: None,
            frozen_until: Duration::ZERO,
            link_down_until: Duration::ZERO,
        })
        .collect();
    let mut world = World {
        now: Duration::ZERO,
        queue: BinaryHeap::new(),
        events: BTreeMap::new(),
        drawn: 0,
        balance: dice.chance(0.5),
        lists: dice.chance(0.5),
        scenario,
        store: Store::default(),
        nodes,
        oracle: Oracle::new(LOCKS as usize, lines),
        calm: false,
        outage_until: Duration::ZERO,
        processes: 0,
        is_over: false,
        dice,
    };
    world.begin();
    while !world.is_over && world.oracle.violation.is_none() {
        let Some(Reverse((at, number))) = world.queue.pop() else { break };
        world.now = at;
        if let Some(event) = world.events.remove(&number) {
            world.happens(event);
        }
    }
    Run { seed, stats: world.oracle.stats, violation: world.oracle.violation.clone(), story: world.oracle.story() }
}

fn dice_rate(seed: u64, slowest: u64, fastest: u64) -> u64 {
    Dice::new(seed ^ 0x5eed).within(slowest, fastest)
}

impl World {
    fn begin(&mut self) {
        for node in 0..NODES {
            let at = self.dice.up_to(self.scenario.timings.lease * 4);
            self.at(at, Event::Start(node));
        }
        self.at(Duration::ZERO, Event::Trouble);
        // The faults stop for long enough to see that every lock has a leader: twice, if there is time.
        let longest = self.longest_without_leader();
        let parts = if longest < RUN_LENGTH / 3 { 2 } else { 1 };
        for part in 1..=parts {
            let end = RUN_LENGTH / parts * part;
            let calm_from = end.saturating_sub(longest);
            self.at(calm_from, Event::Calm(true));
            self.at(end, Event::Check);
            self.at(end, Event::Calm(false));
        }
        self.at(RUN_LENGTH, Event::End);
    }

    /// The longest time until every lock has a leader after the last fault: a freeze, a pause that the store asked for, the
    /// lease of a session that crashed, and that of a session under the same identity before another opens; then looks at all
    /// sessions and locks, and the waits of all ranks, with a few requests that take as long as they may.
    fn longest_without_leader(&self) -> Duration {
        let Timings { lease, retry, timeout, .. } = self.scenario.timings;
        let look_around = self.rules("").look_around;
        let local = lease * 11 + retry * 40 + look_around * 3 + timeout * 12;
        local.mul_f64(1e6 / self.scenario.rates.0 as f64)
    }

    fn rules(&self, identity: &str) -> Rules {
        let Timings { lease, deadline, retry, .. } = self.scenario.timings;
        let mut rules = Rules::new(election::Rules::new(identity, lease, deadline, retry));
        rules.balance = self.balance;
        rules.reads_per_listing = if self.lists { 2 } else { 100 };
        rules
    }

    fn at(&mut self, at: Duration, event: Event) {
        self.drawn += 1;
        self.events.insert(self.drawn, event);
        self.queue.push(Reverse((at.max(self.now), self.drawn)));
    }

    fn node_of(&self, process: u64) -> Option<usize> {
        self.nodes.iter().position(|node| node.process.as_ref().is_some_and(|alive| alive.number == process))
    }

    /// Returns the node of a process that runs; puts the event off if the process is frozen.
    fn awake(&mut self, process: u64, event: &Event) -> Option<usize> {
        let node = self.node_of(process)?;
        let until = self.nodes[node].frozen_until;
        if until > self.now {
            self.at(until, event.clone());
            return None;
        }
        Some(node)
    }

    fn happens(&mut self, event: Event) {
        match &event {
            Event::Wake { process, at } => {
                if let Some(node) = self.awake(*process, &event)
                    && let Some(process) = &mut self.nodes[node].process
                    && process.wakes_at.take_if(|wakes_at| wakes_at == at).is_some()
                {
                    self.step(node, Input::Tick);
                }
            }
            Event::Arrive { process, target, id, ask, fate, is_second } => {
                self.arrive(*process, target, *id, ask, *fate, *is_second);
            }
            Event::Return { process, target, id, reply } => {
                if let Some(node) = self.awake(*process, &event)
                    && let Some(process) = &mut self.nodes[node].process
                    && process.in_flight.get(target).is_some_and(|(now, _)| now == id)
                {
                    process.in_flight.remove(target);
                    let input = input(target, reply.clone());
                    self.step(node, input);
                }
            }
            Event::WorkEnds { process, lock, token } => {
                if let Some(node) = self.awake(*process, &event) {
                    self.end_work(node, *lock, *token);
                }
            }
            Event::Start(node) => self.start(*node),
            Event::Trouble => self.trouble(),
            Event::Calm(calm) => self.set_calm(*calm),
            Event::Check => self.check(),
            Event::MustHaveEnded(process) => {
                let ended = self.node_of(*process).is_none();
                self.oracle.demand(ended, Property::EndsWhenStopped, || format!("p{process} still runs"));
            }
            Event::End => self.is_over = true,
        }
    }

    fn start(&mut self, node: usize) {
        if self.nodes[node].process.is_some() {
            return;
        }
        self.processes += 1;
        let number = self.processes;
        let identity = if self.scenario.new_identity_on_restart { format!("p{number}") } else { format!("n{node}") };
        let mut member = Member::new(self.rules(&identity));
        for lock in 0..LOCKS {
            member.add_lock(&format!("shard-{lock}"));
        }
        self.nodes[node].process = Some(Process {
            number,
            member,
            seats: vec![Seat { leads: None, ended: None, work: Work::None }; LOCKS as usize],
            in_flight: BTreeMap::new(),
            lease_end: None,
            stopped_at: None,
            wakes_at: None,
            ids: Ids { process: number, drawn: 0, dice: self.dice.fork() },
        });
        self.oracle.log(self.now, || format!("p{number} starts on node {node} as {identity}"));
        self.step(node, Input::Begin);
        for lock in 0..LOCKS {
            self.compete(node, lock, Duration::ZERO);
        }
    }

    fn compete(&mut self, node: usize, lock: u32, stand_back: Duration) {
        self.step(node, Input::Compete { lock: LockId(lock), stand_back, ends_with_work: false });
    }

    /// Takes one step of a process, and carries out its effects.
    fn step(&mut self, node: usize, input: Input) {
        let local = self.nodes[node].local(self.now);
        let Some(process) = &mut self.nodes[node].process else { return };
        process.member.handle(local, input, &mut process.ids);
        while let Some(effect) = self.nodes[node].process.as_mut().and_then(|process| process.member.next()) {
            self.carry_out(node, effect);
        }
        let Some(process) = &self.nodes[node].process else { return };
        let overruns = process.lease_end.is_some_and(|end| local >= end)
            && process.seats.iter().any(|seat| seat.work == Work::Running);
        self.oracle.demand(!overruns, Property::WorkWithinLease, || format!("work of p{} runs", process.number));
        if let Some(at) = process.member.wake_at() {
            let (at, number) = (self.nodes[node].true_at(at), process.number);
            let at = at.max(self.now + Duration::from_nanos(1));
            if process.wakes_at != Some(at) {
                self.at(at, Event::Wake { process: number, at });
            }
            if let Some(process) = &mut self.nodes[node].process {
                process.wakes_at = Some(at);
            }
        }
    }

    fn carry_out(&mut self, node: usize, effect: Effect) {
        let Some(process) = &mut self.nodes[node].process else { return };
        let number = process.number;
        match effect {
            Effect::Own { session, request } => {
                let session = session.to_string();
                self.send(node, Target::Own(session.clone()), ask(Key::Session(session), request));
            }
            Effect::Lock { lock, request } => self.send(node, Target::Lock(lock.0), ask(Key::Lock(lock.0), request)),
            Effect::Peer { session, request } => {
                let key = Key::Session(session.to_string());
                let ask = match request {
                    PeerRequest::Look => Ask::Read(key),
                    PeerRequest::End(write) => Ask::Write(key, write),
                    PeerRequest::Delete(version) => Ask::Delete(key, version),
                };
                self.send(node, Target::Peer(session.to_string()), ask);
            }
            Effect::ListSessions => self.send(node, Target::Sessions, Ask::ListSessions),
            Effect::ListLocks => self.send(node, Target::Locks, Ask::ListLocks),
            Effect::Start { lock, term, reason } => {
                self.oracle
                    .log(self.now, || format!("p{number} leads {} with {}: {reason}", lock.0, term.fencing_token));
                let seat = &mut process.seats[lock.0 as usize];
                let revived = seat.ended >= Some(term.fencing_token) || seat.leads.is_some();
                (seat.leads, seat.work) = (Some(term.fencing_token), Work::Running);
                self.oracle.stats.terms += 1;
                self.oracle.demand(!revived, Property::NoRevival, || format!("p{number} leads {} again", lock.0));
                self.extend(node, term.valid_until);
            }
            Effect::Extend { valid_until } => self.extend(node, valid_until),
            Effect::Stop { lock, fencing_token, reason, .. } => {
                self.oracle.log(self.now, || format!("p{number} stops leading {}: {reason}", lock.0));
                let seat = &mut process.seats[lock.0 as usize];
                seat.ended = seat.ended.max(seat.leads.take());
                self.oracle.stats.hand_overs += u64::from(matches!(reason, EndReason::Transferred { .. }));
                let lease = self.scenario.timings.lease;
                let lasts = match self.dice.below(4) {
                    0 => self.dice.up_to(lease * 2),
                    _ => self.dice.up_to(Duration::from_millis(50)),
                };
                self.at(self.now + lasts, Event::WorkEnds { process: number, lock: lock.0, token: fencing_token });
            }
            Effect::DropWork { lock } => {
                // Some work cannot be dropped at once.
                if let Some(token) = process.seats[lock.0 as usize].ended
                    && self.dice.chance(0.9)
                {
                    self.at(self.now, Event::WorkEnds { process: number, lock: lock.0, token });
                }
                if let Some(process) = &mut self.nodes[node].process {
                    let seat = &mut process.seats[lock.0 as usize];
                    if seat.work == Work::Running {
                        seat.work = Work::Abandoned;
                    }
                }
            }
            Effect::Abandon { lock } => process.seats[lock.0 as usize].work = Work::Abandoned,
            Effect::Finished { lock, outcome } if process.stopped_at.is_none() => {
                let cools_down = outcome.reason().is_some_and(EndReason::cools_down);
                let stand_back = if cools_down { self.scenario.timings.lease } else { Duration::ZERO };
                self.compete(node, lock.0, stand_back);
            }
            Effect::Ended => {
                let works = process.seats.iter().any(|seat| seat.leads.is_some());
                self.oracle.demand(!works, Property::ReleaseAfterWork, || format!("p{number} ends, and leads"));
                self.oracle.log(self.now, || format!("p{number} has ended"));
                self.nodes[node].process = None;
                let at = self.now + self.dice.up_to(self.scenario.timings.lease * 3);
                self.at(at, Event::Start(node));
            }
            Effect::Fact(fact) => self.oracle.log(self.now, || format!("p{number}: {fact:?}")),
            _ => {}
        }
    }

    /// Notes a window that was opened or moved, and checks that no other process leads the same locks.
    fn extend(&mut self, node: usize, valid_until: leaderelection::clock::LocalInstant) {
        let Timings { lease, deadline, .. } = self.scenario.timings;
        let Some(process) = &mut self.nodes[node].process else { return };
        process.lease_end = Some(valid_until + (lease - deadline));
        for lock in 0..LOCKS {
            let leading = self.nodes[node].leading(self.now, lock);
            let seat = self.nodes[node].process.as_ref().map(|process| process.seats[lock as usize]);
            let believed = seat.is_some_and(|seat| seat.leads.is_some());
            let revived = leading.is_some() && seat.is_some_and(|seat| seat.ended >= leading);
            self.oracle.demand(!revived, Property::NoRevival, || format!("node {node} and lock {lock}"));
            if !believed || !self.scenario.clocks_bounded {
                continue;
            }
            let others =
                (0..NODES).find(|other| *other != node && self.nodes[*other].leading(self.now, lock).is_some());
            self.oracle.demand(others.is_none(), Property::Exclusion, || {
                format!("nodes {node} and {others:?} lead lock {lock}")
            });
        }
    }

    fn end_work(&mut self, node: usize, lock: u32, token: u64) {
        let Some(process) = &mut self.nodes[node].process else { return };
        let seat = &mut process.seats[lock as usize];
        if seat.work != Work::None && seat.leads.is_none() && seat.ended == Some(token) {
            seat.work = Work::None;
            self.step(node, Input::WorkEnded { lock: LockId(lock), end: WorkEnd::Complete });
        }
    }

    fn send(&mut self, node: usize, target: Target, ask: Ask) {
        let Timings { timeout, .. } = self.scenario.timings;
        self.oracle.stats.requests += 1;
        self.drawn += 1;
        let id = self.drawn;
        let Some(process) = &mut self.nodes[node].process else { return };
        let number = process.number;
        if let Ask::Write(key, write) = &ask {
            self.oracle.stats.writes += 1;
            let works = |seat: &Seat| seat.work == Work::Running;
            let early = write.record.is_released()
                && match &target {
                    Target::Own(_) => process.seats.iter().any(works),
                    Target::Lock(lock) => works(&process.seats[*lock as usize]),
                    _ => false,
                };
            self.oracle.demand(!early, Property::ReleaseAfterWork, || format!("p{number} releases {key:?}"));
        }
        process.in_flight.insert(target.clone(), (id, ask.clone()));
        let share = if self.calm { 0.0 } else { self.scenario.trouble.of_requests() };
        let fate = if self.dice.chance(share) {
            Fate::bad(&self.scenario, &mut self.dice)
        } else {
            Fate::good(&self.scenario, &mut self.dice)
        };
        let ambiguous = Failure { kind: StoreErrorKind::Ambiguous, retry_after: None };
        let late = Event::Return { process: number, target: target.clone(), id, reply: ask.failed(ambiguous) };
        let gives_up = self.nodes[node].true_at(self.nodes[node].local(self.now) + timeout);
        self.at(gives_up, late);
        let is_cut_off = self.nodes[node].link_down_until > self.now || self.outage_until > self.now;
        if let Some(arrives) = fate.arrives.filter(|_| !is_cut_off) {
            let first = Event::Arrive { process: number, target, id, ask, fate, is_second: false };
            self.at(self.now + arrives, first);
        }
    }

    fn arrive(&mut self, number: u64, target: &Target, id: u64, ask: &Ask, fate: Fate, is_second: bool) {
        if let faults::Reply::Refuse(refusal) = fate.reply {
            let failure = Failure { kind: refusal.kind, retry_after: refusal.retry_after };
            return self.answer(number, target, id, ask.failed(failure), fate);
        }
        let is_read = !matches!(ask, Ask::Write(..) | Ask::Delete(..));
        if let faults::Reply::False(falsehood) = fate.reply
            && (is_read || !falsehood.applied)
        {
            // The store is linearizable: a read tells the truth or nothing.
            let kind = if is_read { StoreErrorKind::Ambiguous } else { StoreErrorKind::Conflict };
            return self.answer(number, target, id, ask.failed(Failure { kind, retry_after: None }), fate);
        }
        self.judge(number, target, ask);
        let reply = self.store.answer(ask);
        if let (false, Some(again)) = (is_second, fate.again) {
            let (target, ask) = (target.clone(), ask.clone());
            self.at(self.now + again, Event::Arrive { process: number, target, id, ask, fate, is_second: true });
        }
        let reply = match fate.reply {
            faults::Reply::Lie(refusal) => ask.failed(Failure { kind: refusal.kind, retry_after: refusal.retry_after }),
            faults::Reply::False(_) => ask.failed(Failure { kind: StoreErrorKind::Conflict, retry_after: None }),
            faults::Reply::OfSecond if !is_second => return,
            faults::Reply::Honest if is_second => return,
            _ => reply,
        };
        self.answer(number, target, id, reply, fate);
    }

    fn answer(&mut self, process: u64, target: &Target, id: u64, reply: Reply, fate: Fate) {
        if let Some(returns) = fate.returns {
            self.at(self.now + returns, Event::Return { process, target: target.clone(), id, reply });
        }
    }

    /// Checks that no promise forbids a write that is about to be applied.
    fn judge(&mut self, number: u64, target: &Target, ask: &Ask) {
        if !self.store.accepts(ask) {
            return;
        }
        let is_own = matches!(target, Target::Own(_));
        match ask {
            Ask::Write(Key::Lock(lock), write) => {
                let lock = *lock;
                let owner = self.node_of(number);
                let others = (0..NODES)
                    .find(|other| Some(*other) != owner && self.nodes[*other].leading(self.now, lock).is_some());
                if self.scenario.clocks_bounded {
                    self.oracle.demand(others.is_none(), Property::NoErasure, || {
                        format!("p{number} replaces lock {lock}, which node {others:?} leads")
                    });
                }
                let (token, next) = (write.record.leader_transitions, &mut self.oracle.next_token[lock as usize]);
                let grows = write.record.is_released() && token + 1 == *next || token == *next;
                *next = (*next).max(token + 1);
                self.oracle.demand(grows, Property::Tokens, || format!("p{number} writes {token} to lock {lock}"));
                self.oracle.stats.releases += u64::from(write.record.is_released());
            }
            Ask::Write(Key::Session(session), write) => {
                let is_valid = !is_own && self.nodes.iter().any(|node| node.has_valid_session(self.now, session));
                if self.scenario.clocks_bounded {
                    self.oracle.demand(!is_valid, Property::NoErasure, || format!("p{number} ends {session}"));
                }
                self.oracle.stats.sessions += u64::from(write.expected.is_none());
                self.oracle.stats.ended_by_others += u64::from(!is_own);
                if write.record.is_released() {
                    self.oracle.log(self.now, || format!("p{number} ends session {session}"));
                }
            }
            Ask::Delete(Key::Session(session), _) => {
                let is_valid = self.nodes.iter().any(|node| node.has_valid_session(self.now, session));
                if self.scenario.clocks_bounded {
                    self.oracle.demand(!is_valid, Property::NoErasure, || format!("p{number} deletes {session}"));
                }
                self.oracle.stats.deletions += 1;
            }
            _ => {}
        }
    }

    /// Does something bad, and plans the next.
    fn trouble(&mut self) {
        let lease = self.scenario.timings.lease;
        let gap = match self.scenario.trouble {
            Trouble::None => lease * 6,
            Trouble::Little => lease * 3,
            Trouble::Much => lease,
        };
        let next = self.now + self.dice.up_to(gap);
        self.at(next, Event::Trouble);
        let node = usize::try_from(self.dice.below(NODES as u64)).unwrap_or_default();
        let lasts = self.dice.delay(&self.scenario.timings, lease * 2);
        let Some(process) = &mut self.nodes[node].process else { return };
        let number = process.number;
        if self.calm {
            return;
        }
        let bad = self.scenario.trouble != Trouble::None;
        match self.dice.below(10) {
            0 | 1 if bad => {
                self.oracle.stats.crashes += 1;
                self.oracle.log(self.now, || format!("p{number} crashes"));
                self.nodes[node].process = None;
                self.at(self.now + lasts, Event::Start(node));
            }
            2 if process.stopped_at.is_none() => {
                self.oracle.stats.stops += 1;
                self.oracle.log(self.now, || format!("p{number} is asked to stop"));
                process.stopped_at = Some(self.now);
                self.step(node, Input::Stop);
                let longest = (lease * 3).mul_f64(1e6 / self.scenario.rates.0 as f64) + lease * 2;
                self.at(self.now + longest, Event::MustHaveEnded(number));
            }
            3 | 4 if bad => {
                self.oracle.stats.freezes += 1;
                self.oracle.log(self.now, || format!("p{number} is frozen for {lasts:?}"));
                self.nodes[node].frozen_until = self.now + lasts;
            }
            5 if bad => self.nodes[node].link_down_until = self.now + lasts,
            6 if bad && self.dice.chance(0.2) => {
                self.oracle.log(self.now, || format!("the store is away for {lasts:?}"));
                self.outage_until = self.now + lasts;
            }
            _ => {
                let lock = u32::try_from(self.dice.below(u64::from(LOCKS))).unwrap_or_default();
                if self.nodes[node].frozen_until <= self.now {
                    let command = match self.dice.below(3) {
                        0 => Command::TransferTo("n0".to_owned()),
                        1 => Command::StepDown,
                        _ => Command::Stop,
                    };
                    self.step(node, Input::Command { lock: LockId(lock), command });
                }
            }
        }
    }

    fn set_calm(&mut self, calm: bool) {
        self.calm = calm;
        self.oracle.log(self.now, || format!("calm: {calm}"));
        if calm {
            self.outage_until = self.now;
            self.nodes.iter_mut().for_each(|node| node.link_down_until = self.now);
            for node in 0..NODES {
                self.at(self.now, Event::Start(node));
            }
        }
    }

    /// Checks that every lock has a leader.
    fn check(&mut self) {
        if !self.scenario.clocks_bounded {
            return;
        }
        for lock in 0..LOCKS {
            let leads = (0..NODES).any(|node| self.nodes[node].leading(self.now, lock).is_some());
            self.oracle.demand(leads, Property::LeaderInTime, || format!("nobody leads lock {lock}"));
        }
    }
}

fn ask(key: Key, request: Request) -> Ask {
    match request {
        Request::Look => Ask::Read(key),
        Request::Write(write) => Ask::Write(key, write),
    }
}

fn input(target: &Target, reply: Reply) -> Input {
    match (target, reply) {
        (Target::Own(session), Reply::Object(answer)) => Input::Own { session: session.as_str().into(), answer },
        (Target::Peer(session), Reply::Object(answer)) => Input::Peer { session: session.as_str().into(), answer },
        (Target::Peer(session), Reply::Deleted(result)) => Input::Deleted { session: session.as_str().into(), result },
        (Target::Lock(lock), Reply::Object(answer)) => Input::Lock { lock: LockId(*lock), answer },
        (Target::Sessions, Reply::Sessions(listing)) => Input::Sessions(
            listing.map(|listed| listed.into_iter().map(|(id, version)| (id.as_str().into(), Some(version))).collect()),
        ),
        (Target::Locks, Reply::Locks(listing)) => Input::Locks(
            listing.map(|listed| listed.into_iter().map(|(lock, version)| (LockId(lock), Some(version))).collect()),
        ),
        (target, reply) => unreachable!("{reply:?} for {target:?}"),
    }
}
