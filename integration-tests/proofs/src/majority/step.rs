//! The steps of the processes, the network and the locks.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use leaderelection::election::{Command, Effect, EndReason, Input, Request, RunOutcome, WorkEnd};
use leaderelection::majority::plan::Put;
use leaderelection::{LeaderElectionRecord, StoreErrorKind, Version};

use super::action::Action;
use super::call::{Call, Left};
use super::promise::Violation;
use super::setup::{NAMES, Setup, UNIT};
use super::world::{Node, Stored, World};
use crate::kit::Late;
use crate::phase::next;

impl World {
    pub(super) fn take(&mut self, setup: &Setup, action: Action) {
        match action {
            Action::Tick => self.tick(),
            Action::Step(index, part) => self.step(setup, index, part),
            Action::Lose(index) => self.fail(index),
            Action::Doubt(index) => {
                if let Some(put) = self.put_of(index) {
                    let _ = self.put(setup, &put);
                }
                self.fail(index);
            }
            Action::Delay(index) => {
                let put = self.put_of(index);
                self.leave(put);
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
            Action::Release(part) => self.release(part),
            Action::Stop(part) => {
                (self.gone, self.idle) = (Some(part), 0);
                (0..self.nodes.len()).for_each(|index| self.drop_gone(index));
            }
            Action::Restore(part) => {
                (self.is_restored, self.idle) = (true, 0);
                self.locks[part] = self.backups[part].take();
            }
        }
        for index in 0..self.nodes.len() {
            let Node { phase, stops, .. } = self.nodes[index];
            if stops && self.nodes[index].election.is_idle() {
                // A process that begins does not know for how long a dead leader has been silent.
                if self.faults + self.crashes > 0 {
                    self.idle = 0;
                }
                let next = setup.rolls.and_then(|rolls| next(&rolls, phase)).unwrap_or(phase);
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
            match self.next_parts(index).first() {
                None => self.tick(),
                Some(part) => self.step(setup, index, *part),
            }
        }
    }

    pub(super) fn tick(&mut self) {
        if self.nodes.iter().any(|node| node.call.is_some() || node.rest.is_some()) {
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

    pub(super) fn disturbed(&mut self) {
        self.faults += 1;
        self.idle = 0;
    }

    /// Hands an input to the election of a process, and carries out what it orders.
    pub(super) fn hand(&mut self, index: usize, input: Input) {
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
                        // Beside a lock that is gone, half of another's try may be all that answers.
                        EndReason::Emptied => self.releases == 0 && self.gone.is_none(),
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
        let rest = node.rest.take();
        let call = match request {
            Request::Look => Call::Look(Box::default()),
            Request::Write(write) => {
                let (record, expected) = (write.record, write.expected);
                let left = Left::of((node.phase, &mut node.view), &record, expected.as_ref());
                Call::Write { purpose: write.purpose, record, left, written: BTreeMap::new(), error: None }
            }
        };
        node.call = Some(call);
        self.leave(rest.map(|rest| rest.left.puts).into_iter().flatten());
        self.drop_gone(index);
    }

    /// Lets writes land at some later moment, or never.
    pub(super) fn leave(&mut self, puts: impl IntoIterator<Item = Put>) {
        self.late.extend(puts.into_iter().map(|request| Late { sender: None, about: (), request }));
    }

    /// Gives up the requests of a process to a lock that does not answer.
    pub(super) fn drop_gone(&mut self, index: usize) {
        let Some(gone) = self.gone else { return };
        let node = &mut self.nodes[index];
        match &mut node.call {
            None => {}
            Some(Call::Look(_)) => return self.finish_look(index),
            Some(Call::Write { left, error, .. }) => {
                let before = left.puts.len();
                left.forget(gone);
                if left.puts.len() < before {
                    *error = Some(StoreErrorKind::Ambiguous);
                }
                return self.finish_write(index);
            }
            Some(Call::Return(puts, _)) => {
                puts.retain(|put| put.part != gone);
                return self.finish_return(index);
            }
        }
        node.rest.iter_mut().for_each(|rest| rest.left.forget(gone));
        node.rest.take_if(|rest| rest.left.is_done());
    }

    /// Releases a lock as an operator does.
    pub(super) fn release(&mut self, part: usize) {
        (self.releases, self.idle) = (self.releases + 1, 0);
        if let Some(lock) = &mut self.locks[part] {
            let mut record = LeaderElectionRecord::new("", UNIT);
            record.leader_transitions = lock.record.leader_transitions;
            record.take_backs = lock.record.take_backs;
            record.write_id = Some(self.ids.unused());
            *lock = Stored { record: Arc::new(record), version: self.ids.version(), written: lock.written };
        }
    }

    /// Carries out a request of a process to one of the locks.
    fn step(&mut self, setup: &Setup, index: usize, part: usize) {
        let (now, place) = (self.now, self.nodes[index].phase.place(part));
        let mut call = self.nodes[index].call.take();
        match &mut call {
            None => self.step_rest(setup, index, part),
            Some(Call::Look(looks)) => {
                looks.insert(place, self.locks[part].as_ref().map(|stored| stored.shown(now)));
                self.nodes[index].call = call;
                self.finish_look(index);
            }
            Some(Call::Write { left, written, error, .. }) => {
                let Some(put) = left.take(part) else { return };
                let is_refused = setup.is_refused && index == 0 && part == 1;
                match if is_refused { None } else { self.put(setup, &put) } {
                    Some(version) => {
                        written.insert(place, version);
                    }
                    None if is_refused => *error = error.or(Some(StoreErrorKind::Fatal)),
                    None => {
                        *error = Some(StoreErrorKind::Conflict);
                        if left.in_turn {
                            left.puts.clear();
                        }
                    }
                }
                self.nodes[index].call = call;
                self.finish_write(index);
            }
            Some(Call::Return(puts, _)) => {
                let put = puts.remove(0);
                let _ = self.put(setup, &put);
                self.nodes[index].call = call;
                self.finish_return(index);
            }
        }
    }

    /// Carries out a request whose answer a process takes in the background.
    fn step_rest(&mut self, setup: &Setup, index: usize, part: usize) {
        let Some(mut rest) = self.nodes[index].rest.take() else { return };
        let place = self.nodes[index].phase.place(part);
        if let Some(put) = rest.left.take(part) {
            if let Some(version) = self.put(setup, &put) {
                self.nodes[index].view.wrote_late(&rest.record, place, version);
            }
        } else {
            rest.left.reads.retain(|read| *read != part);
            let found = self.locks[part].as_ref().map(|stored| stored.shown(self.now));
            self.nodes[index].view.read_late(&rest.record, place, found.as_ref());
        }
        self.nodes[index].rest = Some(rest).filter(|rest| !rest.left.is_done());
    }

    /// Carries out a write, if its condition holds.
    pub(super) fn put(&mut self, setup: &Setup, put: &Put) -> Option<Version> {
        if self.gone == Some(put.part) {
            return None;
        }
        let lock = &mut self.locks[put.part];
        let holds = lock.as_ref().map(|stored| &stored.version) == put.expected.as_ref();
        if !holds && setup.careless != Some(put.part) {
            return None;
        }
        let broken = lock.as_ref().filter(|_| setup.job).and_then(|replaced| replaced.broken_by(&put.record));
        self.violation = self.violation.or(broken);
        if let Some(backup) = self.backups.get_mut(put.part) {
            backup.clone_from(lock);
        }
        let written = setup.ages.then(|| self.now.cast_signed());
        let stored = Stored { record: Arc::clone(&put.record), version: self.ids.version(), written };
        Some(lock.insert(stored).version.clone())
    }
}
