//! The possible steps from a state, and their results.

use std::time::Duration;

use leaderelection::StoreErrorKind;
use leaderelection::election::{self, Answer, Command, Failure, Request, WorkEnd};
use leaderelection::sessions::machine::{Effect, Input, PeerRequest};

use super::node::{Ask, Node, Reply, Source, Target, id};
use super::promise::Violation;
use super::setup::Setup;
use super::world::World;
use crate::kit::{Flight, Late, Work};

/// One step.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Action {
    /// Advances all clocks.
    Tick,
    /// Delivers a write whose sender no longer waits for the answer.
    ArriveLate(usize),
    /// Lets an event happen to a node.
    Node(usize, Deed),
}

/// An event that happens to a node.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Deed {
    /// The node reads its clock and does what is due.
    Poll,
    /// A request reaches the store. The answer to a read is delivered at once.
    Arrive(Target),
    /// The node gets an answer.
    Answer(Target),
    /// The node no longer waits for an answer. The request may still arrive.
    GiveUp(Target),
    /// The store refused a request before the request had any effect.
    Refuse(Target),
    /// The node is asked to stop.
    Stop,
    /// The node is asked to step down from a lock.
    StepDown(usize),
    /// The work of a term has ended, after the term itself.
    WorkStopped(usize),
    /// The node crashes and starts again with the same identity.
    Crash,
}

impl World {
    pub(super) fn possible(&self, setup: &Setup, actions: &mut Vec<Action>) {
        if setup.at_once_or_late
            && let Some((index, target)) = self.first_flight()
        {
            return actions
                .extend([Deed::Arrive(target.clone()), Deed::GiveUp(target)].map(|deed| Action::Node(index, deed)));
        }
        actions.push(Action::Tick);
        for (index, node) in self.nodes.iter().enumerate() {
            let mut push = |deed| actions.push(Action::Node(index, deed));
            push(Deed::Poll);
            for (target, flight) in self.net.of(index) {
                let is_write = match flight {
                    Flight::Sent(ask) => {
                        push(Deed::Arrive(target.clone()));
                        !matches!(ask, Ask::Read)
                    }
                    Flight::Answered(_) => {
                        push(Deed::Answer(target.clone()));
                        true
                    }
                };
                // A read without an answer is no more than a pause.
                if setup.losses && is_write {
                    push(Deed::GiveUp(target.clone()));
                }
                if setup.losses && matches!(flight, Flight::Sent(_)) && is_write {
                    push(Deed::Refuse(target.clone()));
                }
            }
            for (lock, seat) in node.seats.iter().enumerate() {
                if seat.work != Work::None && !seat.leads {
                    push(Deed::WorkStopped(lock));
                }
                if setup.step_downs && seat.leads {
                    push(Deed::StepDown(lock));
                }
            }
            if setup.stops && !node.stopped {
                push(Deed::Stop);
            }
            if setup.crashes {
                push(Deed::Crash);
            }
        }
        actions.extend((0..self.net.late.len()).map(Action::ArriveLate));
    }

    /// Returns a request that is on its way.
    fn first_flight(&self) -> Option<(usize, Target)> {
        let first = |index| self.net.of(index).first().map(|(target, _)| (index, target.clone()));
        (0..self.nodes.len()).find_map(first)
    }

    pub(super) fn after(&self, setup: &Setup, action: &Action) -> World {
        let mut world = self.clone();
        match action {
            Action::Tick => {
                world.advance();
                for index in 0..world.nodes.len() {
                    let violation = world.nodes[index].look(setup);
                    world.violate(violation);
                }
            }
            Action::ArriveLate(orphan) => {
                let Late { sender, about: to, request } = world.net.late.remove(*orphan);
                if let Ask::Write(write) = request
                    && world.applies(&to, &write)
                {
                    world.write(setup, sender, &to, write);
                }
            }
            Action::Node(index, deed) => world.act(setup, *index, deed),
        }
        world.canonical(setup)
    }

    fn act(&mut self, setup: &Setup, index: usize, deed: &Deed) {
        match deed {
            Deed::Poll => self.step(setup, index, Input::Tick),
            Deed::Arrive(target) => {
                let is_read = matches!(self.net.get(index, target), Some(Flight::Sent(Ask::Read)));
                self.arrive(setup, index, target);
                if is_read || setup.at_once_or_late {
                    self.take_answer(setup, index, target);
                }
            }
            Deed::Answer(target) => self.take_answer(setup, index, target),
            Deed::GiveUp(target) => {
                let deletes = self.net.get(index, target).is_some_and(deletes);
                self.orphan(setup, index, target);
                self.fail(setup, index, target, deletes, StoreErrorKind::Ambiguous);
            }
            Deed::Refuse(target) => {
                let deletes = self.net.take(index, target).as_ref().is_some_and(deletes);
                self.fail(setup, index, target, deletes, StoreErrorKind::Rejected);
            }
            Deed::Stop => {
                self.nodes[index].stopped = true;
                self.step(setup, index, Input::Stop);
            }
            Deed::StepDown(lock) => {
                self.step(setup, index, Input::Command { lock: id(*lock), command: Command::StepDown });
            }
            Deed::WorkStopped(lock) => self.end_work(setup, index, *lock),
            Deed::Crash => {
                while let Some((target, _)) = self.net.of(index).first() {
                    self.orphan(setup, index, &target.clone());
                }
                self.forget(index);
                self.nodes[index] = Node::new(setup, index, self.nodes[index].opened);
                self.begin(setup, index);
            }
        }
    }

    /// Lets a node begin, and compete for all locks.
    pub(super) fn begin(&mut self, setup: &Setup, index: usize) {
        self.step(setup, index, Input::Begin);
        for lock in 0..setup.locks {
            self.compete(setup, index, lock);
        }
    }

    fn compete(&mut self, setup: &Setup, index: usize, lock: usize) {
        if !self.nodes[index].stopped {
            let (lock, stand_back) = (id(lock), Duration::ZERO);
            self.step(setup, index, Input::Compete { lock, stand_back, ends_with_work: false });
        }
    }

    fn end_work(&mut self, setup: &Setup, index: usize, lock: usize) {
        self.nodes[index].seats[lock].work = Work::None;
        self.step(setup, index, Input::WorkEnded { lock: id(lock), end: WorkEnd::Complete });
    }

    /// Takes one step of a node's machine, and carries out the effects as a driver does.
    fn step(&mut self, setup: &Setup, index: usize, input: Input) {
        let Node { member, opened, .. } = &mut self.nodes[index];
        member.handle(setup.now(), input, &mut Source { ids: &mut self.ids, identity: setup.nodes[index], opened });
        while let Some(effect) = self.nodes[index].member.next() {
            self.carry_out(setup, index, effect);
        }
        let node = &mut self.nodes[index];
        let violation = node.after_step(setup).or_else(|| node.look(setup));
        self.violate(violation);
        let is_quick = |(target, flight): &&(Target, Flight<_, _>)| !is_slow(flight, setup, target);
        while let Some((target, _)) = self.net.of(index).iter().find(is_quick) {
            let target = target.clone();
            self.arrive(setup, index, &target);
            self.take_answer(setup, index, &target);
        }
        for lock in 0..setup.locks {
            if std::mem::take(&mut self.nodes[index].seats[lock].ends_now) {
                self.end_work(setup, index, lock);
            }
            if std::mem::take(&mut self.nodes[index].again[lock]) {
                self.compete(setup, index, lock);
            }
        }
    }

    fn carry_out(&mut self, setup: &Setup, index: usize, effect: Effect) {
        match effect {
            Effect::Own { session, request } => self.send(setup, index, Target::Own(session), request),
            Effect::Lock { lock, effect: election::Effect::Send(request) } => {
                self.send(setup, index, Target::Lock(lock.0 as usize), request)
            }
            Effect::Peer { session, request } => {
                let ask = match request {
                    PeerRequest::Look => Ask::Read,
                    PeerRequest::End(write) => Ask::Write(write),
                    PeerRequest::Delete(version) => Ask::Delete(version),
                };
                self.put(index, Target::Peer(session), ask);
            }
            Effect::ListSessions => self.put(index, Target::Sessions, Ask::Read),
            Effect::ListLocks => self.put(index, Target::Locks, Ask::Read),
            Effect::Lock { lock, effect: election::Effect::Start { term, .. } } => {
                let lock = lock.0 as usize;
                let seat = &mut self.nodes[index].seats[lock];
                seat.leads = true;
                seat.work = Work::Running;
                self.extend(setup, index, term.valid_until);
                let this = 1 << term.fencing_token;
                let broken = self.started[lock] >= this;
                self.started[lock] |= this;
                self.violate(broken.then_some(Violation::Tokens));
            }
            Effect::Extend(term) => self.extend(setup, index, term.valid_until),
            Effect::Lock { lock, effect: election::Effect::Stop { fencing_token, reason, .. } } => {
                let lock = lock.0 as usize;
                self.nodes[index].seats[lock].stop(setup.late_work);
                let cell = self.locks[lock].as_ref();
                let session = cell.and_then(|cell| cell.record.session.as_deref());
                let session = session.and_then(|session| self.sessions.get(session));
                let violation = Node::stops(&reason, fencing_token, cell, session, index);
                self.violate(violation);
            }
            Effect::Lock { lock, effect: election::Effect::DropWork } => {
                self.nodes[index].seats[lock.0 as usize].drop_work()
            }
            Effect::Lock { lock, effect: election::Effect::Abandon } => {
                self.nodes[index].seats[lock.0 as usize].work = Work::Abandoned
            }
            Effect::Lock { lock, effect: election::Effect::Finished(_) } => {
                self.nodes[index].again[lock.0 as usize] = true
            }
            _ => {}
        }
    }

    fn extend(&mut self, setup: &Setup, index: usize, valid_until: leaderelection::clock::LocalInstant) {
        let [lease, renew, _] = setup.timings;
        self.nodes[index].lease_end = Some(valid_until + Duration::from_nanos(lease - renew));
    }

    fn send(&mut self, setup: &Setup, index: usize, target: Target, request: Request) {
        self.orphan(setup, index, &target);
        let violation = self.nodes[index].may_send(&target, &request);
        self.violate(violation);
        let ask = match request {
            Request::Look => Ask::Read,
            Request::Write(write) => Ask::Write(write),
        };
        self.put(index, target, ask);
    }

    /// Puts a request on its way, in place of one to the same target.
    fn put(&mut self, index: usize, target: Target, ask: Ask) {
        self.net.take(index, &target);
        self.net.put(index, target, Flight::Sent(ask));
    }

    fn take_answer(&mut self, setup: &Setup, index: usize, target: &Target) {
        let Some(Flight::Answered(reply)) = self.net.take(index, target) else { return };
        let input = match (target.clone(), reply) {
            (Target::Own(session), Reply::Object(answer)) => Input::Own { session, answer },
            (Target::Peer(session), Reply::Object(answer)) => Input::Peer { session, answer },
            (Target::Peer(session), Reply::Deleted(result)) => Input::Deleted { session, result },
            (Target::Lock(lock), Reply::Object(answer)) => Input::Lock { lock: id(lock), answer },
            (Target::Sessions, _) => {
                let listed = self.sessions.iter().map(|(id, cell)| (id.clone(), Some(cell.version.clone())));
                Input::Sessions(Ok(listed.collect()))
            }
            (Target::Locks, _) => {
                let listed = self.locks.iter().enumerate();
                let listed = listed.filter_map(|(lock, cell)| Some((id(lock), Some(cell.as_ref()?.version.clone()))));
                Input::Locks(Ok(listed.collect()))
            }
            (target, reply) => unreachable!("{reply:?} for {target:?}"),
        };
        self.step(setup, index, input);
    }

    /// Tells a node that its request failed.
    fn fail(&mut self, setup: &Setup, index: usize, target: &Target, deletes: bool, kind: StoreErrorKind) {
        let failure = Failure { kind, retry_after: None };
        let input = match target.clone() {
            Target::Own(session) => Input::Own { session, answer: Answer::Written(Err(failure)) },
            Target::Peer(session) if deletes => Input::Deleted { session, result: Err(failure) },
            Target::Peer(session) => Input::Peer { session, answer: Answer::Written(Err(failure)) },
            Target::Lock(lock) => Input::Lock { lock: id(lock), answer: Answer::Written(Err(failure)) },
            Target::Sessions => Input::Sessions(Err(failure)),
            Target::Locks => Input::Locks(Err(failure)),
        };
        self.step(setup, index, input);
    }

    /// Removes a request. If the request is a write, it may arrive later.
    fn orphan(&mut self, setup: &Setup, index: usize, target: &Target) {
        let flight = self.net.take(index, target);
        if let Some(Flight::Sent(request)) = flight
            && self.may_apply(setup, target, &request)
        {
            self.net.leave(index, target.clone(), request, setup.late_writes);
        }
    }

    /// Marks all writes of a node as writes of a process that no longer exists.
    fn forget(&mut self, index: usize) {
        self.net.forget(index);
        let cells = self.locks.iter_mut().flatten().chain(self.sessions.values_mut());
        cells.for_each(|cell| cell.forget(index));
    }

    pub(super) fn violate(&mut self, violation: Option<Violation>) {
        self.violation = self.violation.or(violation);
    }
}

fn is_slow(flight: &Flight<Ask, Reply>, setup: &Setup, target: &Target) -> bool {
    match (flight, target) {
        (Flight::Sent(Ask::Read), _) => setup.slow.reads,
        (_, Target::Own(_)) => setup.slow.own,
        (_, Target::Peer(_)) => setup.slow.peers,
        (_, Target::Lock(_)) => setup.slow.locks,
        (_, Target::Sessions | Target::Locks) => false,
    }
}

fn deletes(flight: &Flight<Ask, Reply>) -> bool {
    matches!(flight, Flight::Sent(Ask::Delete(_)) | Flight::Answered(Reply::Deleted(_)))
}
