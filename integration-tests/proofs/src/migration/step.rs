//! The steps of the processes, the network and the two locks.

use std::sync::Arc;
use std::time::Duration;

use leaderelection::election::{
    Answer, Command, Effect, EndReason, Failure, Input, Purpose, Request, RunOutcome, WorkEnd,
};
use leaderelection::migration::view::{Half, Versions, order};
use leaderelection::{LeaderElectionRecord, StoreErrorKind, Version};

use super::phase::Phase;
use super::promise::Violation;
use super::setup::{NAMES, Setup, UNIT};
use super::world::{Call, Node, Put, Stored, World};
use crate::kit::Late;

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
    /// An operator releases one of the locks.
    Release(Half),
}

impl World {
    pub(super) fn possible(&self, setup: &Setup, actions: &mut Vec<Action>) {
        if self.violation.is_some() {
            return;
        }
        let is_eventful = self.now <= setup.eventful;
        let may_fail = is_eventful && self.faults < setup.faults;
        let is_quiet = self.nodes.iter().all(|node| node.call.is_none());
        if is_quiet || may_fail {
            actions.push(Action::Tick);
        }
        let orders = if setup.any_order { 2 } else { 1 };
        for (index, node) in self.nodes.iter().enumerate() {
            let halves = self.next_halves(index);
            actions.extend(halves.iter().take(orders).map(|half| Action::Step(index, *half)));
            if may_fail && node.call.is_some() {
                actions.push(Action::Lose(index));
                if self.put_of(index).is_some() {
                    actions.extend([Action::Doubt(index), Action::Delay(index)]);
                }
            }
            if is_eventful && self.crashes < setup.crashes {
                actions.push(Action::Crash(index));
            }
            if is_eventful && !node.stops && self.may_roll(setup, node) {
                actions.push(Action::Roll(index));
            }
        }
        if is_eventful {
            actions.extend((0..self.late.len()).map(Action::Arrive));
            if self.releases < setup.releases {
                let is_held = |half: &Half| self.locks[*half as usize].as_ref().is_some_and(Stored::is_held);
                actions.extend([Half::Old, Half::New].into_iter().filter(is_held).map(Action::Release));
            }
        }
    }

    /// The rule of the rollouts (M8).
    fn may_roll(&self, setup: &Setup, node: &Node) -> bool {
        let Some(next) = setup.rolls.and_then(|direction| node.phase.next(direction)) else { return false };
        let is_last = next != Phase::Both;
        let is_left = self.nodes.iter().all(|other| other.phase == Phase::Both || other.phase == next);
        !is_last
            || (setup.all_at_once || is_left) && (setup.hasty || [Some(next), Some(Phase::Both)].contains(&self.led))
    }

    pub(super) fn take(&mut self, setup: &Setup, action: Action) {
        match action {
            Action::Tick => self.tick(),
            Action::Step(index, half) => self.step(setup, index, half),
            Action::Lose(index) => self.fail(index),
            Action::Doubt(index) => {
                if let Some(put) = self.put_of(index) {
                    let _ = self.put(setup, &put);
                }
                self.fail(index);
            }
            Action::Delay(index) => {
                let put = self.put_of(index);
                self.late.extend(put.map(|request| Late { sender: None, about: (), request }));
                self.fail(index);
            }
            Action::Arrive(number) => {
                let put = self.late.remove(number).request;
                if self.put(setup, &put).is_some() {
                    self.idle = 0;
                }
            }
            Action::Crash(index) => {
                self.crashes += 1;
                self.idle = 0;
                let phase = self.nodes[index].phase;
                self.nodes[index] = Node::new(setup, index, phase);
                self.begin(index);
            }
            Action::Roll(index) => {
                self.nodes[index].stops = true;
                self.hand(index, Input::Command(Command::Stop));
            }
            Action::Release(half) => self.release(half),
        }
        for index in 0..self.nodes.len() {
            let Node { phase, stops, .. } = self.nodes[index];
            if stops && self.nodes[index].election.is_idle() {
                // A process that begins does not know for how long a dead leader has been silent.
                if self.faults + self.crashes > 0 {
                    self.idle = 0;
                }
                let next = setup.rolls.and_then(|direction| phase.next(direction)).unwrap_or(phase);
                self.nodes[index] = Node::new(setup, index, next);
                self.begin(index);
            }
        }
    }

    pub(super) fn begin(&mut self, index: usize) {
        let job = self.nodes[index].job.clone();
        self.hand(index, Input::Begin { stand_back: Duration::ZERO, ends_with_work: job.is_some(), job });
    }

    /// Lets a process take the lease before any other process begins.
    pub(super) fn lead_first(&mut self, setup: &Setup, index: usize) {
        self.begin(index);
        while self.leaders() == 0 {
            match self.next_halves(index).first() {
                None => self.tick(),
                Some(half) => self.step(setup, index, *half),
            }
        }
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
        self.nodes[index].election.handle(now, input, &mut self.ids);
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
                    let Node { election, job, .. } = &mut self.nodes[index];
                    if job.is_some() {
                        election.handle(now, Input::WorkEnded(WorkEnd::Complete), &mut self.ids);
                    }
                }
                Effect::Stop { reason, .. } => {
                    // No process empties or deletes a lock that another process holds.
                    let is_own = match reason {
                        EndReason::TakenOver { by } => by == NAMES[index],
                        EndReason::Emptied => self.releases == 0,
                        reason => reason == EndReason::Deleted,
                    };
                    if is_own {
                        self.violation.get_or_insert(Violation::LostToItself);
                    }
                    let Node { election, job, .. } = &mut self.nodes[index];
                    if job.is_none() {
                        election.handle(now, Input::WorkEnded(WorkEnd::Complete), &mut self.ids);
                    }
                }
                Effect::Finished(outcome) => {
                    self.nodes[index].call = None;
                    if !self.nodes[index].stops && !matches!(outcome, RunOutcome::JobDone { .. }) {
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
                    node.view.writes(&record);
                    let expected = write.expected.as_ref().and_then(Versions::read).unwrap_or_default();
                    order(&record).map(|half| put(half, expected.get(half).cloned())).to_vec()
                } else {
                    vec![put(node.phase.halves()[0], write.expected)]
                };
                Call::Write { purpose: write.purpose, left, written: Versions::default() }
            }
        };
        node.call = Some(call);
    }

    /// Releases a lock as an operator does.
    fn release(&mut self, half: Half) {
        (self.releases, self.idle) = (self.releases + 1, 0);
        if let Some(lock) = &mut self.locks[half as usize] {
            let mut record = LeaderElectionRecord::new("", UNIT);
            record.leader_transitions = lock.record.leader_transitions;
            record.take_backs = lock.record.take_backs;
            record.write_id = Some(self.ids.unused());
            *lock = Stored { record: Arc::new(record), version: self.ids.version(), written: lock.written };
        }
    }

    /// Carries out the next request of a process to one of the locks.
    fn step(&mut self, setup: &Setup, index: usize, half: Half) {
        let (phase, call) = (self.nodes[index].phase, self.nodes[index].call.take());
        match call {
            None => {}
            Some(Call::Look(mut found)) => {
                found[half as usize] = Some(self.locks[half as usize].as_ref().map(|stored| stored.shown(self.now)));
                if phase.halves().iter().any(|half| found[*half as usize].is_none()) {
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
            Some(Call::Write { purpose, mut left, mut written }) => {
                let put = left.remove(0);
                let is_refused = setup.is_refused && index == 0 && half == Half::New;
                let landed = if is_refused { None } else { self.put(setup, &put) };
                let Some(version) = landed else {
                    let kind = if is_refused { StoreErrorKind::Fatal } else { StoreErrorKind::Conflict };
                    return self.refuse(index, (&put, purpose), &written, kind);
                };
                let version = if phase == Phase::Both {
                    *written.of(half) = Some(version);
                    if !left.is_empty() {
                        self.nodes[index].call = Some(Call::Write { purpose, left, written });
                        return;
                    }
                    self.nodes[index].view.wrote(&put.record, written)
                } else {
                    version
                };
                self.hand(index, Input::Answer(Answer::Written(Ok(version))));
            }
            Some(Call::Return(put, kind)) => {
                let _ = self.put(setup, &put);
                self.tell_failure(index, kind);
            }
        }
    }

    /// Lets a write fail of which the first half may have landed.
    fn refuse(&mut self, index: usize, (put, purpose): (&Put, Purpose), written: &Versions, kind: StoreErrorKind) {
        let [first, _] = order(&put.record);
        if let Some(version) = written.get(first) {
            let node = &mut self.nodes[index];
            if let Some(record) = node.view.gives_back(&put.record, kind) {
                let put = Put { half: first, record: Arc::new(record), expected: Some(version.clone()) };
                node.call = Some(Call::Return(put, kind));
                return;
            }
            if purpose == Purpose::Acquire {
                self.violation.get_or_insert(Violation::KeptHalf);
            }
        }
        self.tell_failure(index, kind);
    }

    fn tell_failure(&mut self, index: usize, kind: StoreErrorKind) {
        self.hand(index, Input::Answer(Answer::Written(Err(Failure { kind, retry_after: None }))));
    }

    /// Lets the call of a process fail with an unknown outcome.
    fn fail(&mut self, index: usize) {
        self.disturbed();
        match self.nodes[index].call.take() {
            None => {}
            Some(Call::Look(_)) => {
                let failure = Failure { kind: StoreErrorKind::Ambiguous, retry_after: None };
                self.hand(index, Input::Answer(Answer::Read(Err(failure))));
            }
            Some(Call::Write { .. }) => self.tell_failure(index, StoreErrorKind::Ambiguous),
            Some(Call::Return(_, kind)) => self.tell_failure(index, kind),
        }
    }

    /// The locks to one of which the next request of a process goes.
    fn next_halves(&self, index: usize) -> Vec<Half> {
        let Node { phase, call, .. } = &self.nodes[index];
        match call {
            Some(Call::Look(found)) => {
                phase.halves().iter().copied().filter(|half| found[*half as usize].is_none()).collect()
            }
            _ => self.put_of(index).into_iter().map(|put| put.half).collect(),
        }
    }

    /// The write that a process sends next in its call.
    fn put_of(&self, index: usize) -> Option<Put> {
        match self.nodes[index].call.as_ref()? {
            Call::Look(_) => None,
            Call::Write { left, .. } => left.first().cloned(),
            Call::Return(put, _) => Some(put.clone()),
        }
    }

    /// Carries out a write, if its condition holds.
    fn put(&mut self, setup: &Setup, put: &Put) -> Option<Version> {
        let lock = &mut self.locks[put.half as usize];
        if lock.as_ref().map(|stored| &stored.version) != put.expected.as_ref() {
            return None;
        }
        let broken = lock.as_ref().filter(|_| setup.job).and_then(|replaced| replaced.broken_by(&put.record));
        self.violation = self.violation.or(broken);
        let written = setup.ages.then(|| self.now.cast_signed());
        let stored = Stored { record: Arc::clone(&put.record), version: self.ids.version(), written };
        Some(lock.insert(stored).version.clone())
    }
}
