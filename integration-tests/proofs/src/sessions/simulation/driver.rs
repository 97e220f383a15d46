//! The processes: their steps, and what a driver does with the effects.

use std::collections::BTreeMap;
use std::time::Duration;

use leaderelection::StoreErrorKind;
use leaderelection::clock::LocalInstant;
use leaderelection::election::{self, Failure, TermEndReason, WorkEnd};
use leaderelection::sessions::machine::{Effect, Input, LockId, Member};

use super::gap::{WORK_ENDS, longest_page};
use super::node::{Ids, Process, Seat};
use super::world::{LOCKS, Parcel, World};
use crate::kit::Work;
use crate::sessions::wire::{Ask, Target};
use crate::simulation::Property;
use crate::simulation::faults::Fate;
use crate::simulation::scenario::NODES;
use crate::simulation::timings::Timings;

impl World {
    pub(super) fn start(&mut self, node: usize) {
        if self.nodes[node].process.is_some() || self.change.as_ref().is_some_and(|change| change.keeps_out(node)) {
            return;
        }
        self.processes += 1;
        let number = self.processes;
        let identity = if self.scenario.new_identity_on_restart { format!("p{number}") } else { format!("n{node}") };
        let timings = self.scenario.timings_of_a_process(&mut self.dice);
        let mut member = Member::new(self.rules(&identity, timings));
        for lock in 0..LOCKS {
            member.add_lock(&format!("shard-{lock}"));
        }
        self.nodes[node].process = Some(Process {
            number,
            identity: identity.clone(),
            timings,
            member,
            seats: vec![Seat::default(); LOCKS as usize],
            in_flight: BTreeMap::new(),
            lease_end: None,
            stopped_at: None,
            wakes_at: None,
            ids: Ids {
                process: number,
                drawn: 0,
                dice: self.dice.fork(),
                time: self.nodes[node].clock.wall_at(self.timeline.now),
            },
        });
        self.timeline.log(|| format!("p{number} starts on node {node} as {identity}"));
        self.step(node, Input::Begin);
        for lock in 0..LOCKS {
            self.compete(node, lock, Duration::ZERO);
        }
    }

    pub(super) fn compete(&mut self, node: usize, lock: u32, stand_back: Duration) {
        self.step(
            node,
            Input::Compete { lock: LockId(lock), stand_back, ends_with_work: false, job: None, one_attempt: false },
        );
    }

    /// Takes one step of a process, and carries out its effects.
    pub(super) fn step(&mut self, node: usize, input: Input) {
        let local = self.nodes[node].clock.local_at(self.timeline.now);
        let time = self.nodes[node].clock.wall_at(self.timeline.now);
        let Some(process) = &mut self.nodes[node].process else { return };
        process.ids.time = time;
        process.member.handle(local, input, &mut process.ids);
        while let Some(effect) = self.nodes[node].process.as_mut().and_then(|process| process.member.next()) {
            self.carry_out(node, effect);
        }
        let Some(process) = &self.nodes[node].process else { return };
        let overruns = process.lease_end.is_some_and(|end| local >= end)
            && process.seats.iter().any(|seat| seat.work == Work::Running);
        self.timeline.demand(!overruns, Property::WorkWithinLease, || format!("work of p{} runs", process.number));
        if let Some(at) = process.member.wake_at() {
            let (at, number) = (self.nodes[node].clock.true_at(at), process.number);
            let at = at.max(self.timeline.now + Duration::from_nanos(1));
            if process.wakes_at != Some(at) {
                self.at_process(at, number, move |world, node| world.wake(node, at));
            }
            if let Some(process) = &mut self.nodes[node].process {
                process.wakes_at = Some(at);
            }
        }
    }

    /// Lets a process read its clock, if it has not put that off since.
    fn wake(&mut self, node: usize, at: Duration) {
        if let Some(process) = &mut self.nodes[node].process
            && process.wakes_at.take_if(|wakes_at| *wakes_at == at).is_some()
        {
            self.step(node, Input::Tick);
        }
    }

    pub(super) fn carry_out(&mut self, node: usize, effect: Effect) {
        let Some(process) = &mut self.nodes[node].process else { return };
        let number = process.number;
        let effect = match Ask::ordered_by(effect) {
            Ok((target, ask)) => return self.send(node, target, ask),
            Err(effect) => effect,
        };
        match effect {
            Effect::Lock { lock, effect: election::Effect::Start { term, reason } } => {
                self.timeline.log(|| format!("p{number} leads {} with {}: {reason}", lock.0, term.fencing_token));
                let seat = &mut process.seats[lock.0 as usize];
                let revived = seat.ended >= Some(term.fencing_token) || seat.leads.is_some();
                let works = std::mem::replace(&mut seat.work, Work::Running) != Work::None;
                seat.leads = Some(term.fencing_token);
                self.oracle.stats.terms += 1;
                self.is_led(lock.0);
                self.timeline.demand(!revived, Property::NoRevival, || format!("p{number} leads {} again", lock.0));
                self.timeline.demand(!works, Property::OneWork, || format!("p{number} works twice for {}", lock.0));
                self.extend(node, term.valid_until);
            }
            Effect::Extend(term) => {
                self.extend(node, term.valid_until);
                self.say_write(node);
            }
            Effect::Lock { lock, effect: election::Effect::Stop { fencing_token, reason, .. } } => {
                self.timeline.log(|| format!("p{number} stops leading {}: {reason}", lock.0));
                let seat = &mut process.seats[lock.0 as usize];
                seat.ended = seat.ended.max(seat.leads.take());
                self.oracle.stats.max_handoffs += u64::from(matches!(reason, TermEndReason::Transferred { .. }));
                let lease = self.scenario.timings.lease;
                let lasts = match self.dice.below(4) {
                    0 if !self.is_quiet() => self.dice.up_to(lease * 2),
                    _ => self.dice.up_to(WORK_ENDS),
                };
                let ends = self.timeline.now + lasts;
                self.at_process(ends, number, move |world, node| world.end_work(node, lock.0, fencing_token));
                let cause = self.cause_of(node, lock.0, &reason);
                self.is_left(lock.0, cause);
            }
            Effect::Lock { lock, effect: effect @ (election::Effect::DropWork | election::Effect::Abandon) } => {
                let seat = &mut process.seats[lock.0 as usize];
                // The work may have ended in the very step that gives it up.
                if seat.work != Work::None {
                    seat.work = Work::Abandoned;
                }
                // Some work cannot be dropped at once.
                if let (election::Effect::DropWork, Some(token)) = (effect, seat.ended)
                    && self.dice.chance(0.9)
                {
                    let now = self.timeline.now;
                    self.at_process(now, number, move |world, node| world.end_work(node, lock.0, token));
                }
            }
            Effect::Lock { lock, effect: election::Effect::Finished(outcome) } if process.stopped_at.is_none() => {
                let gave_up = outcome.reason().is_some_and(TermEndReason::cools_down);
                let stand_back = if gave_up { process.timings.lease } else { Duration::ZERO };
                self.compete(node, lock.0, stand_back);
            }
            Effect::Ended => {
                let works = process.seats.iter().any(|seat| seat.leads.is_some());
                self.timeline.demand(!works, Property::ReleaseAfterWork, || format!("p{number} ends, and leads"));
                self.timeline.log(|| format!("p{number} has ended"));
                self.nodes[node].process = None;
                let pause = match self.drills {
                    Some(_) => Duration::from_secs(1),
                    None => self.dice.up_to(self.scenario.timings.lease * 3),
                };
                self.at(self.timeline.now + pause, move |world| world.start(node));
            }
            Effect::Lock { lock, effect: election::Effect::Fact(fact) } => {
                self.timeline.log(|| format!("p{number}, lock {}: {fact:?}", lock.0));
            }
            Effect::Fact(fact) => {
                self.timeline.log(|| format!("p{number}: {fact:?}"));
                self.say_fact(node, &fact);
            }
            _ => {}
        }
    }

    /// Notes a window that was opened or moved, and checks that no other process leads the same locks.
    pub(super) fn extend(&mut self, node: usize, valid_until: LocalInstant) {
        let Some(process) = &mut self.nodes[node].process else { return };
        let Timings { lease, deadline, .. } = process.timings;
        process.lease_end = Some(valid_until + (lease - deadline));
        for lock in 0..LOCKS {
            let leading = self.nodes[node].leading(self.timeline.now, lock);
            let seat = self.nodes[node].process.as_ref().map(|process| process.seats[lock as usize]);
            let believed = seat.and_then(|seat| seat.leads);
            let revived = leading.is_some() && seat.is_some_and(|seat| seat.ended >= leading);
            self.timeline.demand(!revived, Property::NoRevival, || format!("node {node} and lock {lock}"));
            // A term that this very step ends is not valid any more, and its node does not know it yet.
            let counts = believed.is_some_and(|token| self.oracle.counts(lock, leading.unwrap_or(token)));
            if !counts || !self.scenario.clocks_bounded {
                continue;
            }
            let others = self.leads_beside(Some(node), lock);
            self.timeline.demand(others.is_none(), Property::Exclusion, || {
                format!("nodes {node} and {others:?} lead lock {lock}")
            });
        }
    }

    pub(super) fn end_work(&mut self, node: usize, lock: u32, token: u64) {
        let Some(process) = &mut self.nodes[node].process else { return };
        let seat = &mut process.seats[lock as usize];
        if seat.work != Work::None && seat.leads.is_none() && seat.ended == Some(token) {
            seat.work = Work::None;
            self.step(node, Input::WorkEnded { lock: LockId(lock), end: WorkEnd::Complete });
        }
    }

    pub(super) fn send(&mut self, node: usize, target: Target, ask: Ask) {
        self.oracle.stats.requests += 1;
        self.drawn += 1;
        let id = self.drawn;
        let Some(process) = &mut self.nodes[node].process else { return };
        let (number, timeout) = (process.number, process.timings.timeout);
        let works = |seat: &Seat| seat.work == Work::Running;
        let needs_work = match &target {
            Target::Own(_) => process.seats.iter().any(works),
            Target::Lock(lock) => works(&process.seats[lock.0 as usize]),
            _ => false,
        };
        self.timeline.demand(!needs_work || !ask.is_release(), Property::ReleaseAfterWork, || {
            format!("p{number} releases {target:?}")
        });
        self.oracle.stats.writes += u64::from(matches!(ask, Ask::Write(_)));
        process.in_flight.insert(target.clone(), id);
        let share = if self.calm { 0.0 } else { self.scenario.trouble.of_requests() };
        let mut fate = if let Some(drills) = &mut self.drills {
            drills.fate(number, &target, ask.is_read(), &mut self.dice)
        } else if self.change.is_some() {
            Fate::quick(&mut self.dice)
        } else {
            Fate::draw(share, &self.scenario, &mut self.dice)
        };
        // A page of a listing takes its time, and ends within the request timeout.
        if let (true, None, Some(arrives)) = (self.lists_slowly, target.key(), fate.arrives) {
            let longest = longest_page(&self.scenario);
            fate.returns = fate.returns.map(|returns| returns.max(longest.saturating_sub(arrives)));
        }
        let ambiguous = Failure { kind: StoreErrorKind::Ambiguous, retry_after: None };
        let gives_up = self.nodes[node].clock.true_at(self.nodes[node].clock.local_at(self.timeline.now) + timeout);
        self.answers(gives_up, (number, target.clone(), id), ask.failed(&target, ambiguous));
        let is_cut_off = self.nodes[node].link_down_until > self.timeline.now || self.outage_until > self.timeline.now;
        if let Some(arrives) = fate.arrives.filter(|_| !is_cut_off) {
            let first = Parcel { process: number, target, id, ask, fate, is_second: false };
            self.at(self.timeline.now + arrives, move |world| world.arrive(&first));
        }
    }

    /// Lets the answer to a request reach its process, if the process still waits for it then.
    pub(super) fn answers(&mut self, at: Duration, (process, target, id): (u64, Target, u64), reply: Input) {
        self.at_process(at, process, move |world, node| {
            if let Some(process) = &mut world.nodes[node].process
                && process.in_flight.get(&target) == Some(&id)
            {
                process.in_flight.remove(&target);
                world.step(node, reply);
            }
        });
    }

    /// Returns another node that leads a lock in a term that no operator has ended.
    pub(super) fn leads_beside(&self, node: Option<usize>, lock: u32) -> Option<usize> {
        let leads = |other: usize| self.nodes[other].leading(self.timeline.now, lock);
        (0..NODES)
            .find(|other| Some(*other) != node && leads(*other).is_some_and(|token| self.oracle.counts(lock, token)))
    }
}
