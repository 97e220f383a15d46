//! The steps of the processes, the network and the locks.

use std::sync::Arc;
use std::time::Duration;

use leaderelection::LeaderElectionRecord;
use leaderelection::election::{Command, Effect, Input, RunOutcome, TermEndReason, WorkEnd};
use leaderelection::implement::Version;

use super::action::{Action, Forgery};
use super::setup::{NAMES, Setup, UNIT};
use super::world::{Node, Stored, Violation, World};
use super::write::Put;
use crate::kit::Late;
use crate::phase::next;

impl World {
    pub(super) fn take(&mut self, setup: &Setup, action: Action) {
        match action {
            Action::Tick => self.tick(),
            Action::Step(index, part) => self.step(setup, index, part),
            Action::Lose(index) => self.fail(index),
            Action::Doubt(index) => {
                if let Some((lock, put)) = self.next_put(index) {
                    let _ = self.put(setup, lock, &put);
                }
                self.fail(index);
            }
            Action::Delay(index) => {
                let put = self.next_put(index);
                self.late.extend(put.map(|(about, request)| Late { sender: None, about, request }));
                self.fail(index);
            }
            Action::Arrive(number) => {
                let Late { about, request, .. } = self.late.remove(number);
                if self.put(setup, about, &request).is_some() {
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
            Action::Forge(lock, forgery) => self.forge(setup, lock, forgery),
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
        if self.nodes.iter().any(|node| node.call.is_some() || !node.background.is_empty()) {
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
                    if term.fencing_token <= self.highest.unwrap_or(0) {
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
                        TermEndReason::TakenOver { by } => by == NAMES[index],
                        // Beside a lock that is gone, half of another's try may be all that answers.
                        TermEndReason::Emptied => self.releases + self.forgeries == 0 && self.gone.is_none(),
                        reason => reason == TermEndReason::Deleted && self.forgeries == 0,
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

    /// Releases a lock as an operator does.
    pub(super) fn release(&mut self, part: usize) {
        (self.releases, self.idle) = (self.releases + 1, 0);
        if let Some(lock) = &mut self.locks[part] {
            let mut record = LeaderElectionRecord::new("", UNIT);
            record.leader_transitions = lock.record.leader_transitions;
            record.failbacks = lock.record.failbacks;
            record.write_id = Some(self.ids.unused());
            *lock = Stored { record: Arc::new(record), version: self.ids.version(), written: lock.written };
        }
    }

    /// Replaces the record of a lock by one that its writer has seen or can make.
    fn forge(&mut self, setup: &Setup, lock: usize, forgery: Forgery) {
        (self.forgeries, self.idle) = (self.forgeries + 1, 0);
        let others = self.locks.iter().enumerate().filter(|(other, _)| !setup.hostile.contains(other));
        let other = others.rev().filter_map(|(_, stored)| Some(Arc::clone(&stored.as_ref()?.record))).next();
        let all = self.locks.iter().flatten().map(|stored| &stored.record);
        let Some(newest) = all.max_by_key(|record| record.leader_transitions).cloned() else { return };
        let record = match forgery {
            Forgery::Emptied => {
                let mut record = LeaderElectionRecord::clone(&newest);
                record.holder_identity.clear();
                Some(Arc::new(record))
            }
            Forgery::Copied => other,
            Forgery::Higher => {
                let mut record = LeaderElectionRecord::new("hostile", UNIT);
                record.leader_transitions = newest.leader_transitions + 3;
                record.write_id = Some(self.ids.unused());
                Some(Arc::new(record))
            }
            Forgery::Missing => None,
        };
        let written = setup.ages.then(|| self.now.cast_signed());
        self.locks[lock] = record.map(|record| Stored { record, version: self.ids.version(), written });
    }

    /// Carries out a write, if its condition holds.
    pub(super) fn put(&mut self, setup: &Setup, number: usize, put: &Put) -> Option<Version> {
        if self.gone == Some(number) {
            return None;
        }
        let lock = &mut self.locks[number];
        let holds = lock.as_ref().map(|stored| &stored.version) == put.expected.as_ref();
        if !holds && setup.careless != Some(number) {
            return None;
        }
        let broken = lock.as_ref().filter(|_| setup.job).and_then(|replaced| replaced.broken_by(&put.record));
        self.violation = self.violation.or(broken);
        if let Some(backup) = self.backups.get_mut(number) {
            backup.clone_from(lock);
        }
        let written = setup.ages.then(|| self.now.cast_signed());
        let stored = Stored { record: Arc::clone(&put.record), version: self.ids.version(), written };
        Some(lock.insert(stored).version.clone())
    }
}
