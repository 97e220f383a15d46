//! The store and the network: requests arrive, are committed, or arrive after their senders stopped waiting.

use std::sync::Arc;

use leaderelection_protocol::lease::{Kind, ReadError, Write};
use leaderelection_protocol::record::Versioned;

use super::setup::Setup;
use super::tiny::{Id, Tiny};
use super::world::{Answer, Cell, Node, Request, Scene, Spoilt, World};
use crate::kit::Flight;
use crate::model::Violation;

impl World {
    /// Lets the request of a candidate reach the store.
    pub(super) fn arrive(&mut self, setup: &Setup, index: usize) {
        let answer = match self.net.take(index, &()) {
            Some(Flight::Sent(Request::Read)) if self.spoilt == Spoilt::Now => {
                Answer::Read(Err(ReadError::Unreadable), 0)
            }
            Some(Flight::Sent(Request::Read)) => {
                let age =
                    |(cell, (_, error, slack)): (&Cell, (u64, u64, u64))| (cell.age + error).saturating_sub(slack);
                let known_for = self.cell.as_ref().zip(setup.store_clock).map_or(0, age);
                Answer::Read(Ok(self.cell.as_ref().map(|cell| cell.found.clone())), known_for)
            }
            Some(Flight::Sent(Request::Write(write))) => Answer::Written(self.commit(setup, Some(index), &write)),
            _ => return,
        };
        self.net.put(index, (), Flight::Answered(answer));
    }

    /// Commits a write if its condition holds, and checks what it replaces.
    pub(super) fn commit(&mut self, setup: &Setup, writer: Option<usize>, write: &Write<Tiny>) -> Option<Id> {
        if self.spoilt == Spoilt::Now || !self.fits(write) {
            return None;
        }
        let found = Versioned { record: Arc::clone(write.record()), version: self.unused() };
        let version = found.version;
        if write.kind() == Kind::Request {
            self.scene = Some(Scene::Requested);
            let writer = self.cell.as_ref().and_then(|cell| cell.writer);
            self.cell = Some(Cell { found, writer, age: 0 });
            return Some(version);
        }
        let broken = self.broken_by(setup, writer, write);
        self.violate(broken.filter(|_| !setup.deletion));
        self.is_marked |= found.record.is_done;
        self.cell = Some(Cell { found, writer, age: 0 });
        Some(version)
    }

    fn broken_by(&self, setup: &Setup, writer: Option<usize>, write: &Write<Tiny>) -> Option<Violation> {
        let (record, cell) = (write.record(), self.cell.as_ref()?);
        let before = &cell.found.record;
        let is_same_term = cell.writer == writer && record.token == before.token && write.kind() != Kind::Acquire;
        let leads = |(other, node): (usize, &Node)| Some(other) != writer && node.leading(setup).is_some();
        let is_led = || self.foreign > 0 || self.nodes.iter().enumerate().any(leads);
        let is_earned = |writer: usize| write.kind() == Kind::Release && self.nodes[writer].has_succeeded;
        if before.is_done && !record.is_done {
            Some(Violation::LostMark)
        } else if record.is_done && !before.is_done && !writer.is_none_or(is_earned) {
            Some(Violation::FalseMark)
        } else if is_same_term {
            None
        } else if write.kind() != Kind::Acquire {
            Some(Violation::Erasure)
        } else if record.token <= before.token {
            Some(Violation::Tokens)
        } else {
            let erases = !setup.lawless && is_led();
            erases.then_some(Violation::Erasure)
        }
    }

    /// Lets the elector of another library create its record, or renew it.
    pub(super) fn foreign_writes(&mut self, setup: &Setup) {
        let limits = setup.limits(0, false);
        let holder = Some(Id(u16::MAX));
        let record =
            Tiny { holder, lease: limits.lease_duration, token: 0, write_id: None, preferred: None, is_done: false };
        let found = Versioned { record: Arc::new(record), version: self.unused() };
        self.cell = Some(Cell { found, writer: None, age: 0 });
        self.foreign = setup.deadline;
    }

    /// Lets a candidate stop waiting for its request.
    pub(super) fn orphan(&mut self, setup: &Setup, index: usize) {
        if let Some(Flight::Sent(Request::Write(write))) = self.net.take(index, &())
            && self.fits(&write)
        {
            self.net.leave(index, (), Request::Write(write), setup.late_writes);
        }
    }
}
