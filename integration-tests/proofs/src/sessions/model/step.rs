//! The possible steps from a state, and their results.

use std::time::Duration;

use leaderelection::StoreErrorKind;
use leaderelection::election::{self, Answer, Command, Failure, WorkEnd};
use leaderelection::sessions::machine::{Effect, Input, SessionId};

use super::message::Message;
use super::node::{Node, Source, id};
use super::setup::Setup;
use super::world::World;
use crate::kit::{Flight, Late, Work};
use crate::model::Violation;
use crate::sessions::wire::{Ask, Target};

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
    /// The answer to a request is an error. A request whose outcome is left open may still arrive.
    Error(Target, StoreErrorKind),
    /// The node is asked to stop.
    Stop,
    /// The node is asked to step down from a lock.
    StepDown(usize),
    /// The work of a term has ended, after the term itself.
    WorkStopped(usize),
    /// The node gets a message of another session.
    Message(SessionId, Message),
    /// The node crashes and starts again with the same identity.
    Crash,
}

impl World {
    pub(super) fn possible(&self, setup: &Setup, actions: &mut Vec<Action>) {
        if setup.at_once_or_late
            && let Some((index, target)) = self.first_flight()
        {
            return actions.extend(
                [Deed::Arrive(target.clone()), Deed::Error(target, StoreErrorKind::Ambiguous)]
                    .map(|deed| Action::Node(index, deed)),
            );
        }
        actions.push(Action::Tick);
        for (index, node) in self.nodes.iter().enumerate() {
            let mut push = |deed| actions.push(Action::Node(index, deed));
            push(Deed::Poll);
            for (target, flight) in self.net.of(index) {
                let is_write = match flight {
                    Flight::Sent(ask) => {
                        push(Deed::Arrive(target.clone()));
                        !ask.is_read()
                    }
                    Flight::Answered(_) => {
                        push(Deed::Answer(target.clone()));
                        true
                    }
                };
                // A read without an answer is no more than a pause.
                if setup.losses && is_write {
                    push(Deed::Error(target.clone(), StoreErrorKind::Ambiguous));
                }
                if setup.losses && matches!(flight, Flight::Sent(_)) && is_write {
                    push(Deed::Error(target.clone(), StoreErrorKind::Rejected));
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
            for (session, kind) in self.possible_messages(setup, index) {
                push(Deed::Message(session, kind));
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

    /// Returns a request that is in flight.
    fn first_flight(&self) -> Option<(usize, Target)> {
        let first = |index| self.net.of(index).first().map(|(target, _)| (index, target.clone()));
        (0..self.nodes.len()).find_map(first)
    }

    pub(super) fn take(&mut self, setup: &Setup, action: &Action) {
        match action {
            Action::Tick => {
                self.advance();
                for index in 0..self.nodes.len() {
                    let violation = self.nodes[index].check_terms(setup);
                    self.violate(violation);
                }
            }
            Action::ArriveLate(orphan) => {
                let Late { sender, about: to, request } = self.net.late.remove(*orphan);
                if let Ask::Write(write) = request
                    && self.applies(&to, &write)
                {
                    self.write(setup, sender, &to, write);
                }
            }
            Action::Node(index, deed) => self.act(setup, *index, deed),
        }
        self.canonical(setup);
    }

    fn act(&mut self, setup: &Setup, index: usize, deed: &Deed) {
        match deed {
            Deed::Poll => self.step(setup, index, Input::Tick),
            Deed::Arrive(target) => {
                let is_read = matches!(self.net.get(index, target), Some(Flight::Sent(ask)) if ask.is_read());
                self.arrive(setup, index, target);
                if is_read || setup.at_once_or_late {
                    self.take_answer(setup, index, target);
                }
            }
            Deed::Answer(target) => self.take_answer(setup, index, target),
            Deed::Error(target, kind) => self.fail(setup, index, target, *kind),
            Deed::Stop => {
                self.nodes[index].stopped = true;
                self.step(setup, index, Input::Stop);
            }
            Deed::StepDown(lock) => {
                self.step(setup, index, Input::Command { lock: id(*lock), command: Command::StepDown });
            }
            Deed::Message(session, kind) => self.on_message(setup, index, session, *kind),
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
            self.step(
                setup,
                index,
                Input::Compete { lock, stand_back, ends_with_work: false, job: None, one_attempt: false },
            );
        }
    }

    fn end_work(&mut self, setup: &Setup, index: usize, lock: usize) {
        self.nodes[index].seats[lock].work = Work::None;
        self.step(setup, index, Input::WorkEnded { lock: id(lock), end: WorkEnd::Complete });
    }

    /// Takes one step of a node's machine, and carries out the effects as a driver does.
    pub(super) fn step(&mut self, setup: &Setup, index: usize, input: Input) {
        let Node { member, opened, .. } = &mut self.nodes[index];
        member.handle(setup.now(), input, &mut Source { ids: &mut self.ids, identity: setup.nodes[index], opened });
        while let Some(effect) = self.nodes[index].member.next() {
            self.carry_out(setup, index, effect);
        }
        let node = &mut self.nodes[index];
        let violation = node.after_step(setup).or_else(|| node.check_terms(setup));
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
        let effect = match Ask::ordered_by(effect) {
            Ok((target, ask)) => return self.send(setup, index, target, ask),
            Err(effect) => effect,
        };
        match effect {
            Effect::Lock { lock, effect: election::Effect::Start { term, .. } } => {
                let lock = lock.0 as usize;
                let seat = &mut self.nodes[index].seats[lock];
                seat.leads = true;
                seat.work = Work::Running;
                self.extend(setup, index, term.valid_until);
                let this = 1 << term.fencing_token;
                let broken = self.started[lock] >= this || term.fencing_token == 0;
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

    fn send(&mut self, setup: &Setup, index: usize, target: Target, ask: Ask) {
        self.orphan(setup, index, &target);
        let violation = self.nodes[index].may_send(&target, &ask);
        self.violate(violation);
        self.net.put(index, target, Flight::Sent(ask));
    }

    fn take_answer(&mut self, setup: &Setup, index: usize, target: &Target) {
        if let Some(Flight::Answered(reply)) = self.net.take(index, target) {
            self.step(setup, index, reply);
        }
    }

    /// Tells a node that its request failed. A request that was not refused may arrive later.
    fn fail(&mut self, setup: &Setup, index: usize, target: &Target, kind: StoreErrorKind) {
        let failure = Failure { kind, retry_after: None };
        let reply = match self.net.get(index, target) {
            None => return,
            Some(Flight::Sent(ask)) => ask.failed(target, failure),
            Some(Flight::Answered(Input::Deleted { .. })) => target.deleted(Err(failure)),
            Some(Flight::Answered(_)) => target.answered(Answer::Written(Err(failure))),
        };
        if kind == StoreErrorKind::Ambiguous {
            self.orphan(setup, index, target);
        }
        self.net.take(index, target);
        self.step(setup, index, reply);
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

fn is_slow(flight: &Flight<Ask, Input>, setup: &Setup, target: &Target) -> bool {
    match (flight, target) {
        (Flight::Sent(ask), _) if ask.is_read() => setup.slow.reads,
        (_, Target::Own(_)) => setup.slow.own,
        (_, Target::Peer(_)) => setup.slow.peers,
        (_, Target::Lock(_)) => setup.slow.locks,
        (_, Target::Sessions | Target::Locks) => false,
    }
}
