//! The results of steps: the inputs of the machines, and their effects.

use std::sync::Arc;
use std::time::Duration;

use leaderelection::election::{Answer, Command, Effect, Input, Request, RunOutcome, WorkEnd};

use super::action::{Action, Deed};
use super::node::{Answered, Node};
use super::promise::Violation;
use super::setup::{Manner, Setup};
use super::world::{Spoilt, World};
use crate::kit::{Flight, Late, Work};

impl World {
    pub(super) fn take(&mut self, setup: &Setup, action: Action) {
        match action {
            Action::Tick => {
                self.advance(setup);
                for index in 0..self.nodes.len() {
                    let violation = self.nodes[index].check_terms(setup);
                    self.violate(setup, violation);
                }
            }
            Action::ArriveLate(orphan) => {
                let Late { sender, request, .. } = self.net.late.remove(orphan);
                // A write that arrives while the object is something else is not committed.
                if let Request::Write(write) = request
                    && self.spoilt != Spoilt::Now
                {
                    self.write(setup, sender, write);
                }
            }
            Action::Delete => {
                self.cell = None;
                self.net.late.clear();
                self.deleted = true;
            }
            Action::Spoil => self.spoilt = Spoilt::Now,
            Action::Repair => self.spoilt = Spoilt::Over,
            Action::RequestTransfer(to) => {
                self.transferred += 1;
                if let Some(cell) = &mut self.cell {
                    Arc::make_mut(&mut cell.record).preferred_holder = Some(setup.nodes[to].0.to_owned());
                    cell.version = self.ids.version();
                    cell.age = 0;
                }
                self.net.late.clear();
            }
            Action::Node(index, deed) => self.act(setup, index, deed),
        }
        self.canonical(setup);
    }

    fn act(&mut self, setup: &Setup, index: usize, deed: Deed) {
        match deed {
            Deed::Poll => self.step(setup, index, Input::Tick),
            Deed::Arrive => {
                self.arrive(setup, index);
                let is_read = |flight: &Flight<_, Answered>| {
                    matches!(flight, Flight::Answered(Answered { answer: Answer::Read(_), .. }))
                };
                if setup.instant_reads && self.net.get(index, &()).is_some_and(is_read) {
                    self.take_answer(setup, index);
                }
            }
            Deed::Answer => self.take_answer(setup, index),
            Deed::Error(kind, wait) => self.fail(setup, index, kind, wait),
            Deed::Stop => {
                self.nodes[index].stop_asked = true;
                self.step(setup, index, Input::Command(Command::Stop));
            }
            Deed::StepDown => self.step(setup, index, Input::Command(Command::StepDown)),
            Deed::BeginWork => self.begin_work(setup, index),
            Deed::WorkStopped => self.end_work(setup, index, WorkEnd::Complete),
            Deed::Succeed => {
                self.succeed(index);
                self.end_work(setup, index, WorkEnd::Complete);
            }
            Deed::Fail => {
                let was_valid = self.nodes[index].leading(setup).is_some();
                self.end_work(setup, index, WorkEnd::Failed);
                let releases = matches!(self.net.get(index, &()), Some(Flight::Sent(Request::Write(write))) if write.record.is_released());
                let violation = self.nodes[index].is_futile(setup, releases).filter(|_| was_valid);
                self.violate(setup, violation);
            }
            Deed::Message(kind) => self.on_message(setup, index, kind),
            Deed::Reconfigure => {
                self.reconfigured += 1;
                let node = &mut self.nodes[index];
                node.is_longer = !node.is_longer;
                let rules = setup.rules(index, node.is_longer);
                self.step(setup, index, Input::Reconfigure(Arc::new(rules)));
            }
            Deed::CompeteAgain => self.begin(setup, index),
            Deed::Crash => {
                self.orphan(setup, index);
                self.forget(index);
                self.nodes[index] = Node::new(setup, index);
                self.begin(setup, index);
            }
        }
    }

    /// Lets a node compete, as the driver of a campaign does again and again.
    pub(super) fn begin(&mut self, setup: &Setup, index: usize) {
        let node = &mut self.nodes[index];
        (node.waits, node.rests, node.stop_asked, node.term) = (false, false, false, None);
        node.well = Duration::ZERO;
        let input =
            Input::Begin { stand_back: Duration::ZERO, ends_with_work: setup.has_job(index), job: setup.job_of(index) };
        self.step(setup, index, input);
    }

    /// Begins the work, as the work's task does: the task reads the clock before it polls the work.
    fn begin_work(&mut self, setup: &Setup, index: usize) {
        if self.nodes[index].seat.leads && self.nodes[index].leading(setup).is_some() {
            self.nodes[index].seat.work = Work::Running;
            let violation = self.broken_by_work(setup, index);
            self.violate(setup, violation);
        } else {
            self.nodes[index].seat.work = Work::None;
            self.step(setup, index, Input::WorkEnded(WorkEnd::NotBegun));
        }
    }

    fn end_work(&mut self, setup: &Setup, index: usize, end: WorkEnd) {
        self.nodes[index].seat.work = Work::None;
        if self.nodes[index].waits {
            // Only the next candidacy waits for work that was given up.
            self.begin(setup, index);
        } else {
            self.step(setup, index, Input::WorkEnded(end));
        }
    }

    /// Takes one step of a node's machine, and carries out the effects as a driver does.
    pub(super) fn step(&mut self, setup: &Setup, index: usize, input: Input) {
        self.nodes[index].election.handle(setup.now(), input, &mut self.ids);
        while let Some(effect) = self.nodes[index].election.next() {
            self.carry_out(setup, index, effect);
        }
        let waits = self.net.get(index, &()).is_some();
        let node = &mut self.nodes[index];
        node.gave_up = false;
        let violation = node.after_step(setup, waits).or_else(|| node.check_terms(setup));
        let campaigns_again = node.waits && !node.rests && !node.seat.works();
        self.violate(setup, violation);
        if std::mem::take(&mut self.nodes[index].seat.ends_now) {
            self.end_work(setup, index, setup.told_end(index));
        } else if campaigns_again {
            self.begin(setup, index);
        }
    }

    fn carry_out(&mut self, setup: &Setup, index: usize, effect: Effect) {
        let node = &mut self.nodes[index];
        let violation = match effect {
            Effect::Send(request) => {
                self.orphan(setup, index);
                let violation = self.nodes[index]
                    .may_send(setup, index, &request)
                    .or_else(|| self.broken_by_request(setup, index, &request));
                self.net.put(index, (), Flight::Sent(request));
                let node = &mut self.nodes[index];
                node.has_insisted |= !node.silent.is_zero();
                violation
            }
            Effect::Start { term, .. } => {
                node.seat.leads = true;
                node.seat.work = if setup.work == Manner::BeginsLate { Work::Pending } else { Work::Running };
                node.lease_end = node.lease_until(term);
                node.term = setup.has_job(index).then_some(term.fencing_token);
                let begins_done =
                    if node.seat.work == Work::Running { self.broken_by_work(setup, index) } else { None };
                let this = 1 << term.fencing_token;
                let is_old = self.started & this != 0 || setup.trusted_clocks && self.started > this;
                let broken = is_old || term.fencing_token == 0;
                self.started |= this;
                broken.then_some(Violation::Tokens).or(begins_done)
            }
            Effect::Extend(term) => {
                node.lease_end = node.lease_until(term);
                None
            }
            Effect::Stop { fencing_token, reason, .. } => {
                node.seat.stop(setup.work == Manner::EndsLate);
                node.stops(fencing_token, &reason, self.cell.as_ref(), index)
            }
            Effect::DropWork => {
                node.seat.drop_work();
                None
            }
            Effect::Abandon => {
                node.seat.work = Work::Abandoned;
                // The lease has expired, so the lease is not released.
                node.gave_up = true;
                None
            }
            Effect::Finished(outcome) => {
                let ends_early =
                    (node.seat.works() && node.seat.work != Work::Abandoned).then_some(Violation::EarlyEnd);
                let violation = ends_early.or_else(|| self.broken_by_outcome(setup, index, &outcome));
                let node = &mut self.nodes[index];
                (node.seat.leads, node.lease_end) = (false, None);
                (node.waits, node.rests) = (true, matches!(outcome, RunOutcome::JobDone { .. }));
                // The driver drops the request for whose answer it waits.
                self.orphan(setup, index);
                violation
            }
            Effect::Fact(fact) => node.on_message(&fact),
            _ => None,
        };
        self.violate(setup, violation);
    }

    fn take_answer(&mut self, setup: &Setup, index: usize) {
        if let Some(Flight::Answered(Answered { answer, duplicate, .. })) = self.net.take(index, &()) {
            self.nodes[index].see(setup, index, &answer);
            let is_known = self.nodes[index].knows(&answer);
            let shows = answer.failure().is_none();
            self.nodes[index].has_insisted &= !shows;
            self.step(setup, index, Input::Answer(answer));
            let waits = self.net.get(index, &()).is_some();
            let node = &mut self.nodes[index];
            let violation = if shows { node.watch(duplicate) } else { None };
            let violation = violation.or_else(|| node.is_slow(setup, waits).filter(|_| is_known));
            self.violate(setup, violation);
        }
    }
}
