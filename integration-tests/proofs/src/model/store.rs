//! The store and the network: requests arrive, are answered, fail, or arrive after their senders stopped waiting.

use std::time::Duration;

use leaderelection::election::{Answer, Failure, Input, Purpose, Request, Write};
use leaderelection::{LeaderElectionRecord, StoreErrorKind};

use super::action::Wait;
use super::node::{Answered, Node};
use super::promise::Violation;
use super::setup::Setup;
use super::world::{Spoilt, World};
use crate::kit::{Cell, Flight};

impl World {
    pub(super) fn arrive(&mut self, setup: &Setup, index: usize) {
        let Some(Flight::Sent(request)) = self.net.take(index, &()) else { return };
        let (mut applied, mut duplicate) = (false, false);
        let failure = |kind| Failure { kind, retry_after: None };
        let answer = match request {
            Request::Read if self.spoilt == Spoilt::Now => Answer::Read(Err(failure(StoreErrorKind::Unreadable))),
            Request::Read => {
                let identity = self.nodes[index].identity;
                let is_anothers = |cell: &Cell| cell.writer != Some(index) && cell.record.holder_identity == identity;
                duplicate = self.cell.as_ref().is_some_and(is_anothers);
                let age = |cell: &Cell| setup.store_clock.map(|clock| Duration::from_nanos(cell.age + clock.error));
                Answer::Read(Ok(self.cell.as_ref().map(|cell| cell.read(age(cell)))))
            }
            Request::Write(write) => {
                applied = self.applies(&write);
                if applied {
                    self.write(setup, Some(index), write);
                }
                let version = self.cell.as_ref().map(|cell| cell.version.clone()).filter(|_| applied);
                Answer::Written(version.ok_or(failure(StoreErrorKind::Conflict)))
            }
        };
        self.net.put(index, (), Flight::Answered(Answered { answer, applied, duplicate }));
    }

    fn applies(&self, write: &Write) -> bool {
        self.spoilt != Spoilt::Now && self.cell.as_ref().map(|cell| &cell.version) == write.expected.as_ref()
    }

    /// Applies a write whose condition holds, and checks that no promise forbids the write. A request for the lease leaves
    /// the record its writer's, and gives it another version.
    pub(super) fn write(&mut self, setup: &Setup, writer: Option<usize>, Write { record, purpose, .. }: Write) {
        // A write that names another version than this one can never be applied.
        self.net.late.clear();
        if purpose == Purpose::Ask {
            let version = self.ids.version();
            self.cell = self.cell.take().map(|cell| Cell { record, version, age: 0, ..cell });
            return;
        }
        let violation = self.broken_by_write(setup, writer, &record).or_else(|| self.mark(setup, &record));
        self.violate(setup, violation);
        self.cell = Some(Cell::new(record, writer));
    }

    fn broken_by_write(
        &self,
        setup: &Setup,
        writer: Option<usize>,
        record: &LeaderElectionRecord,
    ) -> Option<Violation> {
        let cell = self.cell.as_ref()?;
        // Tokens have grown so far, so the token in the object is the largest of all that are committed.
        let (token, largest) = (record.leader_transitions, cell.record.leader_transitions);
        let same_term = cell.writer == writer && token == largest;
        if same_term {
            return None;
        }
        let begins_term =
            !record.is_released() && !writer.is_some_and(|writer| self.nodes[writer].seat.has_begun(token));
        if begins_term && token <= largest {
            return Some(Violation::Tokens);
        }
        let leads = |(other, node): (usize, &Node)| Some(other) != writer && node.leading(setup).is_some();
        let others_lead = setup.trusted_clocks && self.nodes.iter().enumerate().any(leads);
        (!begins_term || others_lead).then_some(Violation::Erasure)
    }

    /// Tells a node that its request failed. A request that is still in flight may arrive later, unless it was refused.
    pub(super) fn fail(&mut self, setup: &Setup, index: usize, kind: StoreErrorKind, wait: Wait) {
        let is_read = match self.net.get(index, &()) {
            Some(Flight::Sent(request)) => matches!(request, Request::Read),
            Some(Flight::Answered(Answered { answer, .. })) => matches!(answer, Answer::Read(_)),
            None => return,
        };
        if kind == StoreErrorKind::Ambiguous {
            self.orphan(setup, index);
        }
        self.net.take(index, &());
        if is_read {
            let cost = Duration::from_nanos(setup.lease_of(index));
            self.nodes[index].well = self.nodes[index].well.saturating_sub(cost);
        }
        let asked = (wait == Wait::Lease).then(|| Duration::from_nanos(setup.lease_of(index)));
        self.nodes[index].silent = asked.unwrap_or(self.nodes[index].silent);
        let failure = Failure { kind, retry_after: asked };
        let answer = if is_read { Answer::Read(Err(failure)) } else { Answer::Written(Err(failure)) };
        self.step(setup, index, Input::Answer(answer));
    }

    /// Lets a node stop waiting for its request. A write that would not be committed now may be committed after a
    /// repair.
    pub(super) fn orphan(&mut self, setup: &Setup, index: usize) {
        if let Some(Flight::Sent(Request::Write(write))) = self.net.take(index, &())
            && self.cell.as_ref().map(|cell| &cell.version) == write.expected.as_ref()
        {
            self.net.leave(index, (), Request::Write(write), setup.late_writes);
        }
    }

    /// Marks all writes of a node as writes of a process that no longer exists.
    pub(super) fn forget(&mut self, index: usize) {
        self.net.forget(index);
        self.cell.iter_mut().for_each(|cell| cell.forget(index));
    }
}
