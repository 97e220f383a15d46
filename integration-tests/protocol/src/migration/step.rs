//! The steps of the processes, the network and the two locks.

use std::sync::Arc;
use std::time::Duration;

use leaderelection::election::{Answer, Command, Effect, EndReason, Failure, Input, Request, WorkEnd};
use leaderelection::migration::view::{Half, Versions, order};
use leaderelection::{StoreErrorKind, Version};

use super::world::{Call, NAMES, Node, Phase, Put, Setup, Source, Stored, Violation, World};

/// One step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Action {
    /// The time goes on by one unit. While a request is under way, this makes it a slow one.
    Tick,
    /// A request of a process to one of the locks is carried out and answered.
    Step(usize, Half),
    /// A request of a process fails without an effect.
    Lose(usize),
    /// A request of a process is carried out, and its answer is lost.
    Doubt(usize),
    /// The process gives up waiting for a write, which may still land.
    Delay(usize),
    /// A write lands for whose answer nobody waits.
    Arrive(usize),
    /// A process crashes, and begins anew.
    Crash(usize),
    /// A process is asked to stop, and begins anew in the next phase.
    Roll(usize),
}

impl World {
    pub(super) fn possible(&self, setup: &Setup, actions: &mut Vec<Action>) {
        if self.violation.is_some() {
            return;
        }
        let may_fail = self.faults < setup.faults;
        let is_quiet = self.nodes.iter().all(|node| node.call.is_none());
        if is_quiet || may_fail {
            actions.push(Action::Tick);
        }
        for (index, node) in self.nodes.iter().enumerate() {
            match &node.call {
                None => {}
                Some(Call::Look(found)) => {
                    let unread = node.phase.halves().iter().filter(|half| found[place(**half)].is_none());
                    let orders = if setup.any_order { 2 } else { 1 };
                    actions.extend(unread.take(orders).map(|half| Action::Step(index, *half)));
                    if may_fail {
                        actions.push(Action::Lose(index));
                    }
                }
                Some(Call::Write { left, .. }) => {
                    actions.extend(left.first().map(|put| Action::Step(index, put.half)));
                    if may_fail {
                        actions.extend([Action::Lose(index), Action::Doubt(index), Action::Delay(index)]);
                    }
                }
            }
            if self.crashes < setup.crashes {
                actions.push(Action::Crash(index));
            }
            if !node.stops && self.may_roll(setup, node) {
                actions.push(Action::Roll(index));
            }
        }
        actions.extend((0..self.late.len()).map(Action::Arrive));
    }

    /// The rule of the rollouts (M8).
    fn may_roll(&self, setup: &Setup, node: &Node) -> bool {
        let Some(next) = setup.rolls.and_then(|direction| node.phase.next(direction)) else { return false };
        let is_last = next != Phase::Both;
        let is_left = self.nodes.iter().all(|other| other.phase == Phase::Both || other.phase == next);
        !is_last
            || (setup.all_at_once || is_left) && (setup.hasty || self.led != Some(opposite(next)) && self.led.is_some())
    }

    pub(super) fn take(&mut self, setup: &Setup, action: Action) {
        match action {
            Action::Tick => self.tick(),
            Action::Step(index, half) => self.step(index, half),
            Action::Lose(index) => self.fail(index),
            Action::Doubt(index) => {
                if let Some(put) = self.put_of(index) {
                    let _ = self.put(&put);
                }
                self.fail(index);
            }
            Action::Delay(index) => {
                self.late.extend(self.put_of(index));
                self.fail(index);
            }
            Action::Arrive(number) => {
                let put = self.late.remove(number);
                if self.put(&put).is_some() {
                    self.idle = 0;
                }
            }
            Action::Crash(index) => {
                self.crashes += 1;
                self.idle = 0;
                let Node { phase, ids, .. } = self.nodes[index];
                self.nodes[index] = Node::new(setup, index, phase, ids);
                self.begin(index);
            }
            Action::Roll(index) => {
                self.nodes[index].stops = true;
                self.hand(index, Input::Command(Command::Stop));
            }
        }
        for index in 0..self.nodes.len() {
            let Node { phase, ids, stops, .. } = self.nodes[index];
            if stops && self.nodes[index].election.is_idle() {
                let next = setup.rolls.and_then(|direction| phase.next(direction)).unwrap_or(phase);
                self.nodes[index] = Node::new(setup, index, next, ids);
                self.begin(index);
            }
        }
    }

    pub(super) fn begin(&mut self, index: usize) {
        self.hand(index, Input::Begin { stand_back: Duration::ZERO, ends_with_work: false, job: None });
    }

    fn tick(&mut self) {
        if self.nodes.iter().any(|node| node.call.is_some()) {
            self.disturbed();
        }
        self.now += 1;
        self.idle = if self.leaders() > 0 { 0 } else { self.idle + 1 };
        for index in 0..self.nodes.len() {
            if self.nodes[index].election.wake_at().is_some_and(|at| at <= self.moment()) {
                self.hand(index, Input::Tick);
            }
        }
    }

    fn disturbed(&mut self) {
        self.faults += 1;
        self.idle = 0;
    }

    /// Hands an input to the election of a process, and carries out what it orders.
    fn hand(&mut self, index: usize, input: Input) {
        let now = self.moment();
        let Node { election, ids, .. } = &mut self.nodes[index];
        election.handle(now, input, &mut Source(index, ids));
        while let Some(effect) = self.nodes[index].election.next() {
            match effect {
                Effect::Send(request) => self.send(index, request),
                Effect::Start { term, .. } => {
                    if self.highest.is_some_and(|highest| term.fencing_token <= highest) {
                        self.violation.get_or_insert(Violation::TokenWentBack);
                    }
                    self.highest = self.highest.max(Some(term.fencing_token));
                    self.led = Some(self.nodes[index].phase);
                    self.idle = 0;
                }
                Effect::Stop { reason, .. } => {
                    // Nobody empties or deletes a lock that another process holds.
                    let is_own = match reason {
                        EndReason::TakenOver { by } => by == NAMES[index],
                        reason => matches!(reason, EndReason::Emptied | EndReason::Deleted),
                    };
                    if is_own {
                        self.violation.get_or_insert(Violation::LostToItself);
                    }
                    let Node { election, ids, .. } = &mut self.nodes[index];
                    election.handle(now, Input::WorkEnded(WorkEnd::Complete), &mut Source(index, ids));
                }
                Effect::Finished(_) => {
                    self.nodes[index].call = None;
                    if !self.nodes[index].stops {
                        self.begin(index);
                    }
                }
                _ => {}
            }
        }
    }

    fn send(&mut self, index: usize, request: Request) {
        let node = &mut self.nodes[index];
        let call = match request {
            Request::Look => Call::Look(Box::default()),
            Request::Write(write) => {
                let record = write.record;
                let put = |half, expected| Put { half, record: Arc::clone(&record), expected };
                let left = if node.phase == Phase::Both {
                    node.view.writes(&record, NAMES[index]);
                    let expected = write.expected.as_ref().and_then(Versions::read).unwrap_or_default();
                    order(&record).map(|half| put(half, expected.get(half).cloned())).to_vec()
                } else {
                    vec![put(node.phase.halves()[0], write.expected)]
                };
                Call::Write { left, written: Versions::default() }
            }
        };
        node.call = Some(call);
    }

    /// Carries out the next request of a process to one of the locks.
    fn step(&mut self, index: usize, half: Half) {
        let (phase, call) = (self.nodes[index].phase, self.nodes[index].call.take());
        match call {
            None => {}
            Some(Call::Look(mut found)) => {
                found[place(half)] = Some(self.locks[place(half)].as_ref().map(Stored::shown));
                if phase.halves().iter().any(|half| found[place(*half)].is_none()) {
                    self.nodes[index].call = Some(Call::Look(found));
                    return;
                }
                let [old, new] = (*found).map(Option::flatten);
                let shown = match phase {
                    Phase::Old => old,
                    Phase::New => new,
                    Phase::Both => self.nodes[index].view.show(old, new).0,
                };
                self.hand(index, Input::Answer(Answer::Read(Ok(shown))));
            }
            Some(Call::Write { mut left, mut written }) => {
                let put = left.remove(0);
                let answer = match self.put(&put) {
                    None => Err(Failure { kind: StoreErrorKind::Conflict, retry_after: None }),
                    Some(version) if phase != Phase::Both => Ok(version),
                    Some(version) => {
                        *written.of(half) = Some(version);
                        if !left.is_empty() {
                            self.nodes[index].call = Some(Call::Write { left, written });
                            return;
                        }
                        Ok(self.nodes[index].view.wrote(&put.record, written))
                    }
                };
                self.hand(index, Input::Answer(Answer::Written(answer)));
            }
        }
    }

    /// Lets the call of a process fail with an unknown outcome.
    fn fail(&mut self, index: usize) {
        self.disturbed();
        let failure = Failure { kind: StoreErrorKind::Ambiguous, retry_after: None };
        let answer = match self.nodes[index].call.take() {
            None => return,
            Some(Call::Look(_)) => Answer::Read(Err(failure)),
            Some(Call::Write { .. }) => Answer::Written(Err(failure)),
        };
        self.hand(index, Input::Answer(answer));
    }

    fn put_of(&self, index: usize) -> Option<Put> {
        match &self.nodes[index].call {
            Some(Call::Write { left, .. }) => left.first().cloned(),
            _ => None,
        }
    }

    /// Carries out a write, if its condition holds.
    fn put(&mut self, put: &Put) -> Option<Version> {
        let lock = &mut self.locks[place(put.half)];
        if lock.as_ref().map(Stored::version) != put.expected {
            return None;
        }
        self.writes += 1;
        let stored = Stored { record: Arc::clone(&put.record), version: self.writes };
        Some(lock.insert(stored).version())
    }
}

fn place(half: Half) -> usize {
    match half {
        Half::Old => 0,
        Half::New => 1,
    }
}

fn opposite(end: Phase) -> Phase {
    if end == Phase::New { Phase::Old } else { Phase::New }
}
