//! The results of steps: what a policy asks of the kernel, and the effects that a driver carries out.

use std::sync::Arc;
use std::time::Duration;

use leaderelection_protocol::lease::{Effect, ReadError};
use leaderelection_protocol::record::Versioned;

use super::action::{Action, Deed, Target};
use super::node::Node;
use super::setup::Setup;
use super::tiny::Tiny;
use super::world::{Answer, Put, Request, Scene, World};
use crate::kernel::Id;
use crate::kit::{Flight, Work};
use crate::model::Violation;

impl World {
    pub(super) fn take(&mut self, setup: &Setup, action: Action) {
        self.scene = None;
        match action {
            Action::Tick => self.advance(setup),
            Action::ArriveLate(at) => {
                let late = self.net.late.remove(at);
                if let Request::Write(put) = late.request
                    && self.commit(setup, late.sender, late.about, &put).is_some()
                {
                    self.scene = Some(Scene::LateWrite);
                }
            }
            Action::DeliverAgain(session) => {
                self.has_delivered_again = true;
                let object = self.object_mut(Target::Own(session));
                object.found = object.created.clone();
            }
            Action::DeleteLock(lock) => {
                self.has_deleted_lock = true;
                self.object_mut(Target::Lock(lock)).found = None;
            }
            Action::DeleteSession(session) => {
                self.has_deleted_session = true;
                self.object_mut(Target::Own(session)).found = None;
            }
            Action::Spoil(session) => {
                self.has_spoilt = true;
                self.object_mut(Target::Own(session)).is_spoilt = true;
            }
            Action::PlainRelease(lock) => {
                let version = self.unused();
                let released =
                    Tiny { holder: None, session: None, lease: Duration::ZERO, token: 0, write_id: Some(version) };
                self.object_mut(Target::Lock(lock)).found = Some(Versioned { record: Arc::new(released), version });
            }
            Action::Repair(session) => self.object_mut(Target::Own(session)).is_spoilt = false,
            Action::Node(index, deed) => self.act(setup, index, deed),
        }
        (0..self.nodes.len()).for_each(|index| self.carry_out(setup, index));
        self.check_terms(setup);
        self.canonical(setup);
    }

    fn act(&mut self, setup: &Setup, index: usize, deed: Deed) {
        let (now, node) = (setup.now(), &mut self.nodes[index]);
        match deed {
            Deed::Read(target) => self.read(setup, index, target, 0),
            Deed::ReadInVain(target) => {
                if self.begin_read(setup, index, target) {
                    self.hand_in(setup, index, target, Answer::Read(Err(ReadError::Failed)));
                }
            }
            Deed::ReadStale(target, ago) => self.read(setup, index, target, ago),
            Deed::Create | Deed::Renew | Deed::ReleaseSession => self.write_own(setup, index, deed),
            Deed::EndSession => {
                node.own.end_term(now, None);
                node.own.withdraw(now);
            }
            Deed::NextSession => {
                node.others.closed(&node.own);
                self.orphan(setup, index, Target::Own(self.nodes[index].session()));
                self.nodes[index].next_session(setup, index);
            }
            Deed::End(session) => {
                let id = self.unused();
                let permit = self.nodes[index].others.may_end(now, &session);
                let put = permit.map(|permit| permit.write(|| id, ()));
                put.into_iter().for_each(|put| self.send(setup, index, Target::Other(session), put.into()));
            }
            Deed::Delete(session) => {
                let version = node.others.may_delete(&session).ok().copied();
                let object = self.object_mut(Target::Other(session));
                if version.is_some() && object.found.as_ref().map(|found| found.version) == version {
                    object.found = None;
                    self.scene = Some(Scene::Deleted);
                }
            }
            Deed::List(session) => {
                let version =
                    self.object(Target::Other(session)).and_then(|object| Some(object.found.as_ref()?.version));
                if let Some(version) = version {
                    let others = &mut self.nodes[index].others;
                    others.discover(&session, None);
                    others.listed(now, &session, version);
                }
            }
            Deed::Hint(session, id) => node.others.hint(now, &session, id),
            Deed::Take(lock) | Deed::Release(lock) => self.write_lock(setup, index, lock, deed),
            Deed::Start(lock) => self.start(setup, index, lock),
            Deed::EndTerm(lock) => node.locks.end_term(lock),
            Deed::WorkEnds(lock) => node.end_work(lock),
            Deed::ListLock(lock) => {
                let found = self.locks[lock as usize].found.as_ref();
                let version = found.map(|found| found.version);
                let Node { locks, own, .. } = &mut self.nodes[index];
                version.into_iter().for_each(|version| locks.listed(now, now, lock, Some(own), &version));
            }
            Deed::ReadSlowly(lock) => {
                if node.locks.begin_read(now, lock).is_ok() {
                    self.has_polled_late = true;
                    self.net.put(index, Target::Lock(lock), Flight::Sent(Request::Read));
                    self.arrive(setup, index, Target::Lock(lock), 0);
                }
            }
            Deed::AskForLock(lock) => {
                self.has_polled_late = true;
                let version = self.locks[lock as usize].found.as_ref().map(|found| found.version);
                node.listing = Some((version, now + setup.bounds(index).poll_counts_for));
            }
            Deed::ListedLock(lock) => {
                let Node { locks, own, listing, .. } = node;
                match listing.take() {
                    Some((Some(version), until)) => {
                        let asked_at = until - setup.bounds(index).poll_counts_for;
                        locks.listed(now, asked_at, lock, Some(own), &version);
                    }
                    Some((None, _)) => locks.not_listed(now, lock),
                    None => {}
                }
            }
            Deed::Forget(lock) => {
                let is_forgotten = node.locks.forget(lock, Some(&node.own)).is_ok();
                node.has_seen[lock as usize] &= !is_forgotten;
            }
            Deed::Arrive(target) => self.arrive(setup, index, target, 0),
            Deed::ArriveStale(target, ago) => self.arrive(setup, index, target, ago),
            Deed::Answer(target) => self.answer(setup, index, target),
            Deed::Lost(target) => {
                self.orphan(setup, index, target);
                self.net.take(index, &target);
                self.hand_in(setup, index, target, Answer::Written(None));
            }
            Deed::Crash => {
                while let Some((target, _)) = self.net.of(index).first() {
                    self.orphan(setup, index, *target);
                }
                self.net.forget(index);
                self.nodes[index] = Node::new(setup, index, self.nodes[index].opened);
            }
        }
    }

    fn begin_read(&mut self, setup: &Setup, index: usize, target: Target) -> bool {
        let (now, node) = (setup.now(), &mut self.nodes[index]);
        let permit = match target {
            Target::Own(_) => node.own.begin_read(),
            Target::Other(session) => node.others.begin_read(now, &session),
            Target::Lock(lock) => node.locks.begin_read(now, lock),
        };
        permit.is_ok()
    }

    fn read(&mut self, setup: &Setup, index: usize, target: Target, ago: usize) {
        if self.begin_read(setup, index, target) {
            self.net.put(index, target, Flight::Sent(Request::Read));
            if !setup.slow.reads {
                self.arrive(setup, index, target, ago);
                self.answer(setup, index, target);
            }
        }
    }

    fn write_own(&mut self, setup: &Setup, index: usize, deed: Deed) {
        let (id, now, node) = (self.unused(), setup.now(), &mut self.nodes[index]);
        let permit = match deed {
            Deed::Create => node.own.may_acquire(now),
            Deed::Renew => node.own.may_renew(now),
            _ => node.own.may_release(now),
        };
        let Ok(permit) = permit else { return };
        let put = permit.write(|| id, ());
        let is_early = deed == Deed::ReleaseSession && node.works_for_session();
        let target = Target::Own(node.session());
        self.violate(is_early.then_some(Violation::EarlyRelease));
        self.send(setup, index, target, put.into());
    }

    fn write_lock(&mut self, setup: &Setup, index: usize, lock: u32, deed: Deed) {
        let (id, now) = (self.unused(), setup.now());
        let leads = self.nodes[index].leading(setup, lock).is_some();
        let Node { own, others, locks, .. } = &mut self.nodes[index];
        let permit = match deed {
            Deed::Take(_) => locks.may_take(now, lock, own, others),
            _ => locks.may_release(now, lock, own),
        };
        let Ok(permit) = permit else { return };
        let put = permit.write(|| id, ());
        let broken = match put.record().holder {
            None if leads || self.nodes[index].works(lock) => Some(Violation::EarlyRelease),
            Some(_) if self.nodes[index].own.term(now).is_none() => Some(Violation::Unearned),
            _ => None,
        };
        self.violate(broken);
        self.send(setup, index, Target::Lock(lock), put.into());
    }

    fn send(&mut self, setup: &Setup, index: usize, target: Target, put: Put) {
        self.net.put(index, target, Flight::Sent(Request::Write(put)));
        let is_slow = match target {
            Target::Own(_) => setup.slow.own,
            Target::Other(_) => setup.slow.ends,
            Target::Lock(_) => setup.slow.locks,
        };
        if !is_slow {
            self.arrive(setup, index, target, 0);
            self.answer(setup, index, target);
        }
    }

    fn answer(&mut self, setup: &Setup, index: usize, target: Target) {
        match self.net.take(index, &target) {
            Some(Flight::Answered(answer)) => self.hand_in(setup, index, target, answer),
            Some(sent) => self.net.put(index, target, sent),
            None => {}
        }
    }

    fn hand_in(&mut self, setup: &Setup, index: usize, target: Target, answer: Answer) {
        let (now, own) = (setup.now(), self.nodes[index].session());
        let leads = match target {
            Target::Lock(lock) => self.nodes[index].leading(setup, lock),
            _ => None,
        };
        let node = &mut self.nodes[index];
        match (target, answer) {
            // After the end of a session, nobody waits for these.
            (Target::Own(session), _) if session != own => {}
            (Target::Own(_), Answer::Read(found)) => {
                node.own.read_answered(now, found, Duration::ZERO);
            }
            (Target::Own(_), Answer::Written(version)) => node.own.write_answered(now, version),
            (Target::Other(session), Answer::Read(found)) => node.others.read_answered(now, &session, found),
            (Target::Other(session), Answer::Written(version)) => node.others.end_answered(&session, version),
            (Target::Lock(lock), Answer::Read(found)) => {
                node.has_seen[lock as usize] |= matches!(found, Ok(Some(_)));
                node.locks.read_answered(now, lock, Some(&node.own), &mut node.others, found);
            }
            (Target::Lock(lock), Answer::Written(version)) => {
                node.has_seen[lock as usize] |= version.is_some();
                node.locks.write_answered(lock, version);
            }
        }
        if let Target::Lock(lock) = target
            && let Some(token) = leads
            && self.is_of(lock, own, token)
        {
            let is_spurious = self.nodes[index].leading(setup, lock).is_none() && setup.stale_reads == 0;
            self.violate(is_spurious.then_some(Violation::SpuriousLoss));
        }
    }

    /// Returns `true` if the record of a lock names this session and token.
    fn is_of(&self, lock: u32, session: Id, token: u64) -> bool {
        self.record(Target::Lock(lock)).is_some_and(|record| (record.session, record.token) == (Some(session), token))
    }

    fn start(&mut self, setup: &Setup, index: usize, lock: u32) {
        let (at, Node { locks, own, .. }) = (lock as usize, &mut self.nodes[index]);
        let Ok(term) = locks.start(setup.now(), lock, own) else { return };
        let own = *own.session().expect("a session");
        let (token, this) = (term.token(), 1 << term.token());
        let is_new = self.started[at] & this == 0 && (setup.lawless || self.started[at] < this);
        let is_open = self.record(Target::Own(own)).is_some_and(|record| record.holder.is_some());
        let is_earned = self.is_of(lock, own, token) || self.has_deleted_lock;
        let is_lawful = setup.lawless || is_earned && (is_open || self.has_deleted_session);
        let broken = if self.nodes[index].works(lock) {
            Some(Violation::EarlyEnd)
        } else if token == 0 || !is_new && !self.has_deleted_lock {
            Some(Violation::Tokens)
        } else {
            (!is_lawful).then_some(Violation::Unearned)
        };
        self.violate(broken);
        self.started[at] |= this;
        (self.nodes[index].seats[at].work, self.nodes[index].work_of[at]) = (Work::Running, Some(own));
    }

    /// Carries out the effects of a session, as a driver does.
    fn carry_out(&mut self, setup: &Setup, index: usize) {
        while let Some(effect) = self.nodes[index].own.next_effect() {
            let node = &mut self.nodes[index];
            let own = node.session();
            let seats = node.seats.iter_mut().zip(&node.work_of).filter(|(_, of)| **of == Some(own));
            match effect {
                Effect::DropWork => seats.for_each(|(seat, _)| seat.drop_work()),
                Effect::Abandon => seats.for_each(|(seat, _)| {
                    if seat.work != Work::None {
                        seat.work = Work::Abandoned;
                    }
                }),
                Effect::Finished => self.orphan(setup, index, Target::Own(own)),
                Effect::Acquired { .. }
                | Effect::Start(_)
                | Effect::Extend(_)
                | Effect::Stop { .. }
                | Effect::Released => {}
            }
        }
    }

    /// Ends work whose term is over, unless work is late, and compares the terms that are valid now with those that have ended.
    fn check_terms(&mut self, setup: &Setup) {
        for index in 0..self.nodes.len() {
            for lock in 0..setup.locks {
                let valid = self.nodes[index].leading(setup, lock);
                if valid.is_none() && self.nodes[index].works(lock) && !setup.late_work {
                    self.nodes[index].end_work(lock);
                }
                self.violate(self.nodes[index].ends_late(setup, lock).then_some(Violation::Unearned));
                let is_begun = valid.is_none_or(|token| self.started[lock as usize] & (1 << token) != 0);
                self.violate((!is_begun).then_some(Violation::Unearned));
                let revives = self.nodes[index].seats[lock as usize].revives(valid) && !self.has_deleted_lock;
                self.violate(revives.then_some(Violation::Revival));
                if setup.late_work && self.nodes[index].works_in_time(setup, lock) {
                    let leads = |other: usize| other != index && self.nodes[other].leading(setup, lock).is_some();
                    let overruns = (0..self.nodes.len()).any(leads);
                    self.violate(overruns.then_some(Violation::Overrun));
                }
            }
            let own = self.nodes[index].session();
            let is_over = self.object(Target::Own(own)).is_some_and(|object| object.is_over);
            let opens_again = is_over && self.nodes[index].has_open(setup, own) && !setup.lawless;
            self.violate(opens_again.then_some(Violation::Revival));
            let Node { own, locks, .. } = &mut self.nodes[index];
            // A release of the session waits for this.
            own.tick(setup.now());
            if own.stage().awaits_work() && !locks.works_for(own.session().expect("a session")) {
                own.work_ended(setup.now(), false);
            }
            self.carry_out(setup, index);
        }
    }
}

impl Node {
    fn end_work(&mut self, lock: u32) {
        self.seats[lock as usize].work = Work::None;
        self.work_of[lock as usize] = None;
        self.locks.work_ended(lock);
    }

    /// Returns `true` if a term is reported to end later than it does.
    fn ends_late(&self, setup: &Setup, lock: u32) -> bool {
        let term = |now| self.locks.term(now, lock, &self.own);
        term(setup.now()).is_some_and(|valid| term(valid.valid_until() - Duration::from_nanos(1)).is_none())
    }

    /// Returns `true` if work of the local session runs that need not have stopped yet.
    fn works_in_time(&self, setup: &Setup, lock: u32) -> bool {
        let is_own = self.work_of[lock as usize] == Some(self.session());
        let is_in_time = self.own.deadline().is_some_and(|at| setup.now() < at);
        is_own && is_in_time && self.seats[lock as usize].work == Work::Running
    }
}
