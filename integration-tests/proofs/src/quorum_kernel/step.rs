//! The results of steps: what a policy asks of the kernel, and what the parts do.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use leaderelection_protocol::lease::{Effect, ReadError};
use leaderelection_protocol::quorum::{Failed, ObservedPart, ObservedParts, Put};
use leaderelection_protocol::record::RELEASED_LEASE;

use super::action::{Action, Deed, Fate, Forgery};
use super::half::{Half, Version, WriteId};
use super::possible::is_lost;
use super::setup::Setup;
use super::world::{Background, Call, Cell, Late, Node, Violation, World};
use crate::kernel::Id;

impl World {
    pub(super) fn take(&mut self, setup: &Setup, action: Action) {
        match action {
            Action::Tick => self.advance(setup),
            Action::ArriveLate(at) => {
                let Late { writer, put } = self.late.remove(at);
                self.commit(setup, writer, &put);
            }
            Action::Forge(part, forgery) => self.forge(part, forgery),
            Action::Node(index, deed) => self.act(setup, index, deed),
        }
        (0..self.nodes.len()).for_each(|index| self.carry_out(setup, index));
        self.is_marked |= self.showing(|record| record.is_done) >= setup.needed;
        self.canonical(setup);
    }

    fn act(&mut self, setup: &Setup, index: usize, deed: Deed) {
        let (now, node) = (setup.now(), &mut self.nodes[index]);
        match deed {
            Deed::Poll(those) => {
                let asked = (0..setup.parts).filter(|part| those & (1 << part) != 0);
                let seen = asked.map(|part| (part, self.parts[part].clone())).collect();
                if node.lease.begin_read().is_ok() {
                    self.poll(setup, index, &seen);
                }
            }
            Deed::See(part) => {
                if node.call.is_none() && node.lease.begin_read().is_ok() {
                    node.call = Some(Call::Poll(BTreeMap::new()));
                }
                if let Some(Call::Poll(seen)) = &mut node.call {
                    seen.insert(part, self.parts[part].clone());
                }
            }
            Deed::EndPoll => {
                if let Some(Call::Poll(seen)) = node.call.take() {
                    self.poll(setup, index, &seen);
                }
            }
            Deed::Acquire | Deed::Renew | Deed::Release | Deed::Ask => self.write(setup, index, deed),
            Deed::Put(part, fate) => self.send(setup, index, part, fate),
            Deed::ReleaseToo(part) => self.release_too(setup, index, part),
            Deed::Finish => {
                if let Some(Call::Write(plan)) = &mut node.call
                    && let Some(version) = node.quorum.wrote(plan)
                {
                    let written = Arc::clone(plan.record());
                    if setup.background {
                        node.background.puts.extend(plan.rest());
                        let unread = node.quorum.unread(plan).map(|part| (Arc::clone(plan.record()), part));
                        let is_asked = |part: usize| {
                            let mut puts = node.background.puts.iter();
                            puts.any(|put| put.part() == part)
                                || node.background.reads.iter().any(|(_, read)| *read == part)
                        };
                        let reads: Vec<_> = unread.filter(|(_, part)| !is_asked(*part)).collect();
                        node.background.reads.extend(reads);
                    }
                    node.call = None;
                    node.lease.write_answered(now, Some(version));
                    self.is_marked |= written.is_done;
                    // A plain candidate leads after the mark, too.
                    let is_late = written.is_done && !setup.plain && self.started >> written.token > 1;
                    self.violate(is_late.then_some(Violation::Repetition));
                }
            }
            Deed::Fail(roll_back) => {
                if let Some(Call::Write(mut plan)) = node.call.take() {
                    self.faults += u8::from(!is_lost(setup, &mut plan));
                    let puts = if roll_back { node.quorum.roll_back(*plan) } else { Vec::new() };
                    node.background = Background { puts, ..Background::default() };
                    node.lease.write_answered(now, None);
                }
            }
            Deed::BackgroundPut(part) => {
                let Some(at) = node.background.puts.iter().position(|put| put.part() == part) else { return };
                let put = node.background.puts.remove(at);
                if let Some(version) = self.commit(setup, Some(index), &put)
                    && put.record().holder.is_some()
                {
                    let seen = ObservedPart { record: &**put.record(), version: &version, age: None };
                    self.nodes[index].quorum.observe_part(put.record(), part, Some(&seen));
                }
            }
            Deed::BackgroundRead(part) => {
                let Some(at) = node.background.reads.iter().position(|(_, read)| *read == part) else { return };
                let (record, _) = node.background.reads.remove(at);
                node.quorum.observe_part(&record, part, self.parts[part].as_ref().map(|cell| cell.seen(true)).as_ref());
            }
            Deed::EndTerm => node.lease.end_term(now, None),
            Deed::Withdraw => node.lease.withdraw(now),
            Deed::GiveUp => node.lease.give_up(now),
            Deed::Crash => {
                self.crashes += 1;
                self.nodes[index] = Node::new(setup, index);
                for late in &mut self.late {
                    late.writer.take_if(|writer| *writer == index);
                }
            }
        }
    }

    /// Shows the lease what these answers show together.
    fn poll(&mut self, setup: &Setup, index: usize, seen: &BTreeMap<usize, Option<Cell>>) {
        let Node { lease, quorum, .. } = &mut self.nodes[index];
        let polled = ObservedParts(
            seen.iter()
                .map(|(part, cell)| (*part, cell.as_ref().map(|cell| cell.seen(setup.ageless != Some(*part)))))
                .collect(),
        );
        let poll = quorum.polled(&polled).map_err(|_| ReadError::Failed);
        let age = poll.as_ref().ok().and_then(|(_, age)| *age).unwrap_or_default();
        lease.read_answered(setup.now(), poll.map(|(found, _)| found), age);
    }

    /// Uses a permit, if there is one.
    fn write(&mut self, setup: &Setup, index: usize, deed: Deed) {
        let (id, now) = (self.unused(), setup.now());
        let Node { lease, quorum, call, background } = &mut self.nodes[index];
        let permit = match deed {
            Deed::Acquire => lease.may_acquire(now),
            Deed::Renew => lease.may_renew(now),
            Deed::Ask => lease.may_request(now),
            _ => lease.may_release(now),
        };
        let Ok(permit) = permit else { return };
        if deed == Deed::Ask {
            self.requests += 1;
        } else {
            self.writes += u8::from(setup.writes.is_some());
        }
        let write = permit.write(|| WriteId::Drawn(id), ());
        // Nobody waits any longer for what the calls so far have left, unless the term goes on.
        if !matches!(deed, Deed::Renew) {
            *background = Background::default();
        }
        match quorum.plan(write.record(), write.expected(), &BTreeSet::new()) {
            Ok(plan) => *call = Some(Call::Write(Box::new(plan))),
            Err(_) => lease.write_answered(now, None),
        }
    }

    /// Sends the put of a plan to a part, before those that stand before it.
    fn send(&mut self, setup: &Setup, index: usize, part: usize, fate: Fate) {
        let Some(Call::Write(plan)) = &mut self.nodes[index].call else { return };
        plan.puts().sort_by_key(|put| put.part() != part);
        let Some(put) = plan.send() else { return };
        self.faults += u8::from(fate != Fate::Answered);
        let committed = match fate {
            Fate::Answered | Fate::Doubted => self.commit(setup, Some(index), &put),
            Fate::Lost | Fate::Late => None,
        };
        let answer = match fate {
            Fate::Answered => committed.ok_or(Failed::Conflict),
            _ => Err(Failed::Other),
        };
        if fate == Fate::Late {
            self.late.push(Late { writer: Some(index), put });
        }
        if let Some(Call::Write(plan)) = &mut self.nodes[index].call {
            plan.answered(part, answer);
        }
    }

    fn release_too(&mut self, setup: &Setup, index: usize, part: usize) {
        let Node { quorum, call: Some(Call::Write(plan)), .. } = &self.nodes[index] else { return };
        let Some(put) = quorum.release_all(plan).into_iter().find(|put| put.part() == part) else { return };
        if let Some(version) = self.commit(setup, Some(index), &put)
            && let Some(Call::Write(plan)) = &mut self.nodes[index].call
        {
            plan.answered(part, Ok(version));
        }
    }

    /// Carries out a put if its condition holds, and checks what is committed.
    fn commit(&mut self, setup: &Setup, writer: Option<usize>, put: &Put<Half>) -> Option<Version> {
        if !self.fits(put) {
            return None;
        }
        let version = Version::Part(self.unused());
        let record = put.record();
        let before = self.parts[put.part()].replace(Cell::new(Arc::clone(record), version.clone()));
        let goes_back = before.is_some_and(|cell| cell.record.token > record.token);
        self.violate((goes_back && !setup.hostile_parts().contains(&put.part())).then_some(Violation::Regress));
        let is_whole = self.showing(|other| other.write_id == record.write_id) >= setup.needed;
        // A request keeps the holder, who goes on.
        let leads = |(other, node): (usize, &Node)| {
            Some(other) != writer && record.holder != Some(Id::of(other)) && node.leads(setup)
        };
        let erases = is_whole && record.holder.is_some() && self.nodes.iter().enumerate().any(leads);
        self.violate(erases.then_some(Violation::Erasure));
        // A candidate for the job would do it once more: that is seen when its term begins.
        let forgets = is_whole && !record.is_done && writer.is_some_and(|writer| !setup.has_job(writer));
        self.violate((forgets && self.is_marked).then_some(Violation::LostMark));
        Some(version)
    }

    fn forge(&mut self, part: usize, forgery: Forgery) {
        self.forgeries += 1;
        let all = self.parts.iter().flatten().map(|cell| &*cell.record);
        let Some(newest) = all.max_by_key(|record| record.token).cloned() else { return };
        let id = self.unused();
        let record = match forgery {
            Forgery::Emptied => Some(Half { holder: None, ..newest }),
            Forgery::Copied => Some(newest),
            Forgery::Higher => Some(Half {
                holder: Some(Id::of(self.nodes.len())),
                lease: Duration::ZERO,
                token: newest.token + 1,
                write_id: Some(WriteId::Drawn(id)),
                is_done: false,
            }),
            Forgery::Missing => None,
        };
        let version = Version::Part(self.unused());
        self.parts[part] = record.map(|record| Cell::new(Arc::new(record), version));
    }

    /// Carries out the effects of a candidate, as a driver does. The work ends as soon as it begins.
    fn carry_out(&mut self, setup: &Setup, index: usize) {
        self.nodes[index].lease.tick(setup.now());
        while let Some(effect) = self.nodes[index].lease.next_effect() {
            let node = &mut self.nodes[index];
            match effect {
                Effect::Start(term) => {
                    node.lease.work_ended(setup.now(), setup.job);
                    let this = 1 << term.token();
                    let goes_back = self.started >= this || term.token() == 0;
                    self.started |= this;
                    self.violate(goes_back.then_some(Violation::Tokens));
                    self.violate((setup.has_job(index) && self.is_marked).then_some(Violation::Repetition));
                }
                // The request in flight is dropped.
                Effect::Finished => node.call = None,
                _ => {}
            }
        }
    }
}

impl Cell {
    pub(super) fn new(record: Arc<Half>, version: Version) -> Self {
        Self { record, version, age: 0 }
    }

    pub(super) fn released(id: Id, token: u64) -> Self {
        let write_id = Some(WriteId::Drawn(id));
        let record = Half { holder: None, lease: RELEASED_LEASE, token, write_id, is_done: false };
        Self::new(Arc::new(record), Version::Part(id))
    }

    fn seen(&self, with_age: bool) -> ObservedPart<'_, Half> {
        let age = with_age.then(|| Duration::from_nanos(self.age));
        ObservedPart { record: &self.record, version: &self.version, age }
    }
}
