//! The results of steps: what a policy asks of the kernel, and the effects that a driver carries out.

use leaderelection_protocol::lease::{Effect, Kind, ReadError, Stage, Why};
use std::time::Duration;

use super::action::{Action, Deed};
use super::setup::Setup;
use super::tiny::{Id, TheJob};
use super::world::{Answer, Node, Request, Scene, Spoilt, World};
use crate::kit::{Flight, Work};
use crate::model::Violation;

impl World {
    pub(super) fn take(&mut self, setup: &Setup, action: Action) {
        self.scene = None;
        match action {
            Action::Tick => self.advance(setup),
            Action::ArriveLate(at) => {
                let late = self.net.late.remove(at);
                if let Request::Write(write) = late.request
                    && self.commit(setup, late.sender, &write).is_some()
                {
                    self.scene = Some(Scene::LateWrite);
                }
            }
            Action::Delete => (self.cell, self.is_deleted) = (None, true),
            Action::Spoil => self.spoilt = Spoilt::Now,
            Action::Repair => self.spoilt = Spoilt::Over,
            Action::Ask(to) => {
                self.requests += 1;
                let (version, to) = (self.unused(), self.name_of(setup, to));
                if let Some(cell) = &mut self.cell {
                    std::sync::Arc::make_mut(&mut cell.found.record).preferred = Some(to);
                    (cell.found.version, cell.age) = (version, 0);
                }
            }
            Action::Foreign => self.foreign_writes(setup),
            Action::Node(index, deed) => self.act(setup, index, deed),
        }
        (0..self.nodes.len()).for_each(|index| self.carry_out(setup, index));
        self.check_terms(setup);
        self.canonical(setup);
    }

    fn act(&mut self, setup: &Setup, index: usize, deed: Deed) {
        let (now, node) = (setup.now(), &mut self.nodes[index]);
        match deed {
            Deed::Poll => node.lease.tick(now),
            Deed::Read => {
                if node.lease.begin_read().is_ok() {
                    self.net.put(index, (), Flight::Sent(Request::Read));
                    if !setup.slow_reads {
                        self.arrive(setup, index);
                        self.answer(setup, index);
                    }
                }
            }
            Deed::Acquire | Deed::Renew | Deed::Release | Deed::Request => self.write(setup, index, deed),
            Deed::Arrive => self.arrive(setup, index),
            Deed::Answer => self.answer(setup, index),
            Deed::AnswerAndEnd => {
                self.answer(setup, index);
                self.nodes[index].lease.end_term(now, None);
            }
            Deed::Lost | Deed::Refused => self.fail(setup, index, deed),
            Deed::EndTerm => {
                let to = (setup.requests > 0).then(|| self.name_of(setup, (index + 1) % self.nodes.len()));
                self.nodes[index].lease.end_term(now, to);
            }
            Deed::Withdraw => {
                node.lease.tick(now);
                let has_asked = node.lease.unanswered().next().is_some() || node.lease.writes() == Some(Kind::Acquire);
                let stage = node.lease.stage();
                node.has_withdrawn |= stage == Stage::Won || stage == Stage::Candidate && has_asked;
                node.lease.withdraw(now);
            }
            Deed::GiveUp => node.lease.give_up(now),
            Deed::WorkEnds(succeeded) => {
                node.seat.work = Work::None;
                node.has_succeeded |= succeeded;
                node.lease.work_ended(now, succeeded);
            }
            Deed::Crash => {
                self.orphan(setup, index);
                self.net.forget(index);
                if let Some(cell) = &mut self.cell {
                    cell.writer.take_if(|writer| *writer == index);
                }
                self.nodes[index] = Node::new(setup, index);
            }
            Deed::Begin => {
                self.orphan(setup, index);
                let node = &mut self.nodes[index];
                (node.seat.work, node.has_succeeded, node.has_withdrawn) = (Work::None, false, false);
                node.lease.begin(now, setup.has_job(index).then_some(TheJob));
            }
            Deed::Hint(id) => node.lease.hint(now, id),
            Deed::Reconfigure => {
                self.reconfigures += 1;
                node.is_retimed = !node.is_retimed;
                node.lease.set_limits(now, setup.limits(index, node.is_retimed));
            }
        }
    }

    fn name_of(&self, setup: &Setup, index: usize) -> Id {
        Id(if setup.shared { 0 } else { u16::try_from(index).expect("few candidates") })
    }

    /// Uses a permit, if there is one.
    fn write(&mut self, setup: &Setup, index: usize, deed: Deed) {
        let (id, now, node) = (self.unused(), setup.now(), &mut self.nodes[index]);
        let permit = match deed {
            Deed::Acquire => node.lease.may_acquire(now),
            Deed::Renew => node.lease.may_renew(now),
            Deed::Release => node.lease.may_release(now),
            _ => node.lease.may_request(now),
        };
        let Ok(permit) = permit else { return };
        let write = permit.write(|| id, ());
        let broken = match write.kind() {
            Kind::Release if node.has_work() => Some(Violation::EarlyRelease),
            Kind::Release if setup.has_job(index) && node.has_succeeded && !write.record().is_done => {
                Some(Violation::MissingMark)
            }
            Kind::Acquire if write.expected().is_none() && node.blocked > 0 => Some(Violation::Haste),
            _ => None,
        };
        self.violate(broken);
        self.requests += u8::from(write.kind() == Kind::Request);
        self.net.put(index, (), Flight::Sent(Request::Write(write)));
    }

    fn answer(&mut self, setup: &Setup, index: usize) {
        let (now, node) = (setup.now(), &mut self.nodes[index]);
        match self.net.take(index, &()) {
            Some(Flight::Answered(Answer::Read(answer, known_for))) => {
                let shown = answer.as_ref().ok().and_then(Option::as_ref).and_then(|found| found.record.write_id);
                let is_own = self.cell.as_ref().is_some_and(|cell| {
                    cell.writer == Some(index)
                        && shown.is_some()
                        && shown == cell.found.record.write_id
                        && cell.found.record.holder.is_some()
                });
                if setup.deletion
                    && let Ok(Some(found)) = &answer
                    && node.lease.watch().found().is_none_or(|known| known.version != found.version)
                {
                    let blocks = found.record.holder.is_some() && !is_own;
                    let lease = u64::try_from(found.record.lease.as_nanos()).expect("a short lease");
                    node.blocked = if blocks { lease } else { 0 };
                }
                let before = node.lease.term(now);
                node.lease.read_answered(now, answer, Duration::from_nanos(known_for));
                let after = node.lease.term(now);
                if is_own && before.is_some() && after.is_none() {
                    self.violate(Some(Violation::SpuriousLoss));
                } else if is_own && after.is_some() && before != after {
                    self.scene = Some(Scene::OwnLateWrite);
                }
            }
            Some(Flight::Answered(Answer::Written(version))) => node.lease.write_answered(now, version),
            Some(sent) => self.net.put(index, (), sent),
            None => {}
        }
    }

    fn fail(&mut self, setup: &Setup, index: usize, deed: Deed) {
        let is_read = match self.net.get(index, &()) {
            Some(Flight::Sent(Request::Read) | Flight::Answered(Answer::Read(..))) => true,
            Some(_) => false,
            None => return,
        };
        if deed == Deed::Lost {
            self.orphan(setup, index);
        }
        self.net.take(index, &());
        let (now, lease) = (setup.now(), &mut self.nodes[index].lease);
        if is_read {
            lease.read_answered(now, Err(ReadError::Failed), Duration::ZERO);
        } else {
            lease.write_answered(now, None);
        }
    }

    /// Carries out the effects of a candidate, as a driver does.
    fn carry_out(&mut self, setup: &Setup, index: usize) {
        while let Some(effect) = self.nodes[index].lease.next_effect() {
            let node = &mut self.nodes[index];
            let broken = match effect {
                Effect::Start(term) => {
                    let this = 1 << term.token();
                    let is_new = self.started & this == 0 && (setup.lawless || self.started < this);
                    let broken = if node.has_withdrawn {
                        Some(Violation::Disobedience)
                    } else if node.has_work() {
                        Some(Violation::EarlyEnd)
                    } else if term.token() == 0 || node.seat.has_begun(term.token()) || !is_new && !setup.deletion {
                        Some(Violation::Tokens)
                    } else {
                        (self.is_marked && setup.has_job(index)).then_some(Violation::Repetition)
                    };
                    self.started |= this;
                    (node.seat.work, node.has_succeeded) = (Work::Running, false);
                    broken
                }
                Effect::Stop { token, why, .. } => {
                    let is_own = self.cell.as_ref().is_some_and(|cell| {
                        let record = &cell.found.record;
                        cell.writer == Some(index) && record.token == token && record.holder.is_some()
                    });
                    if node.seat.work == Work::Running && !setup.late_work && !setup.has_job(index) {
                        node.seat.work = Work::None;
                        node.lease.work_ended(setup.now(), false);
                    }
                    let is_spurious = why == Why::Lost && is_own && !setup.spoils && !setup.deletion;
                    is_spurious.then_some(Violation::SpuriousLoss)
                }
                Effect::DropWork => {
                    node.seat.drop_work();
                    None
                }
                Effect::Abandon => {
                    // It may have ended in the step that gives it up.
                    if node.has_work() {
                        node.seat.work = Work::Abandoned;
                    }
                    None
                }
                Effect::Finished => {
                    node.has_withdrawn = false;
                    let broken = node.has_work().then_some(Violation::EarlyEnd);
                    self.orphan(setup, index);
                    broken
                }
                Effect::Released => {
                    self.scene = Some(Scene::Released);
                    None
                }
                Effect::Extend(term) => (node.lease.term(setup.now()) != Some(term)).then_some(Violation::Revival),
                Effect::Acquired { .. } => None,
            };
            self.violate(broken);
        }
    }

    /// Compares the terms that are valid now with those that have ended. While work may run, and is not late, nobody else leads:
    /// the clocks run alike in such setups.
    fn check_terms(&mut self, setup: &Setup) {
        let is_in_time = |node: &Node| node.lease.deadline().is_some_and(|at| setup.now() < at);
        let works = |node: &Node| node.seat.work == Work::Running && is_in_time(node);
        let works = self.nodes.iter().position(|node| setup.late_work && works(node));
        let leads = |(other, node): (usize, &Node)| Some(other) != works && node.leading(setup).is_some();
        let overruns = works.is_some() && self.nodes.iter().enumerate().any(leads);
        self.violate(overruns.then_some(Violation::Overrun));
        for index in 0..self.nodes.len() {
            let valid = self.nodes[index].leading(setup);
            let revives = self.nodes[index].seat.revives(valid) && !setup.deletion;
            let is_false = self.nodes[index].lease.is_job_done() && !self.is_marked;
            self.violate(revives.then_some(Violation::Revival));
            self.violate(is_false.then_some(Violation::FalseReport));
        }
    }
}
