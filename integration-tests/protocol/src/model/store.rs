//! The store and the network: requests arrive, are answered, fail, or arrive after their senders stopped waiting.

use std::sync::Arc;
use std::time::Duration;

use leaderelection::election::{Answer, Failure, Input, Purpose, Request, Write};
use leaderelection::{LeaderElectionRecord, StoreErrorKind, Version, VersionedRecord};

use super::canonical::unused_id;
use super::node::Flight;
use super::world::{Cell, Setup, Spoilt, Violation, World};

impl World {
    pub(super) fn arrive(&mut self, setup: &Setup, index: usize) {
        let Some(Flight::Sent(request)) = self.nodes[index].flight.take() else { return };
        let answered = |answer, applied, clash| Some(Flight::Answered { answer, applied, clash });
        self.nodes[index].flight = match request {
            Request::Look if self.spoilt == Spoilt::Now => {
                let unreadable = Failure { kind: StoreErrorKind::Unreadable, retry_after: None };
                answered(Answer::Read(Err(unreadable)), false, false)
            }
            Request::Look => {
                let identity = self.nodes[index].identity;
                let clash = self
                    .cell
                    .as_ref()
                    .is_some_and(|cell| cell.writer != Some(index) && cell.record.holder_identity == identity);
                answered(Answer::Read(Ok(self.cell.as_ref().map(|cell| cell.read(setup)))), false, clash)
            }
            Request::Write(write) if write.purpose == Purpose::Ask => {
                let applies = self.applies(&write);
                if applies {
                    self.ask(Arc::unwrap_or_clone(write.record));
                }
                let version = self.cell.as_ref().map(|cell| cell.version.clone()).filter(|_| applies);
                let conflict = Failure { kind: StoreErrorKind::Conflict, retry_after: None };
                answered(Answer::Written(version.ok_or(conflict)), applies, false)
            }
            Request::Write(write) => {
                let (applies, version) = (self.applies(&write), version_of(&write.record));
                if applies {
                    self.write(setup, Some(index), Arc::unwrap_or_clone(write.record));
                }
                let conflict = Failure { kind: StoreErrorKind::Conflict, retry_after: None };
                answered(Answer::Written(if applies { Ok(version) } else { Err(conflict) }), applies, false)
            }
        };
    }

    fn applies(&self, write: &Write) -> bool {
        self.spoilt != Spoilt::Now && self.cell.as_ref().map(|cell| &cell.version) == write.expected.as_ref()
    }

    /// Applies a write whose condition holds, and checks that no promise forbids the write.
    pub(super) fn write(&mut self, setup: &Setup, writer: Option<usize>, record: LeaderElectionRecord) {
        let violation = self.broken_by_write(setup, writer, &record).or_else(|| self.mark(setup, &record));
        self.violate(setup, violation);
        let version = version_of(&record);
        self.cell = Some(Cell { record, version, writer, age: 0 });
        // A write that names another version than this one can never be applied.
        self.orphans.clear();
    }

    fn broken_by_write(
        &self,
        setup: &Setup,
        writer: Option<usize>,
        record: &leaderelection::LeaderElectionRecord,
    ) -> Option<Violation> {
        let cell = self.cell.as_ref()?;
        // Tokens have grown so far, so the token in the object is the largest of all that have landed.
        let (token, largest) = (record.leader_transitions, cell.record.leader_transitions);
        let same_term = cell.writer == writer && token == largest;
        if same_term {
            return None;
        }
        let begins_term = !record.is_released() && !writer.is_some_and(|writer| self.nodes[writer].has_begun(token));
        if begins_term && token <= largest {
            return Some(Violation::Tokens);
        }
        let others_lead = setup.trusted_clocks
            && self
                .nodes
                .iter()
                .enumerate()
                .any(|(other, node)| Some(other) != writer && node.leading(setup).is_some());
        (!begins_term || others_lead).then_some(Violation::Erasure)
    }

    /// Applies a request for the lease: the record stays its writer's, and gets another version.
    pub(super) fn ask(&mut self, record: LeaderElectionRecord) {
        let version = Version::new(unused_id(self.ids));
        if let Some(cell) = &mut self.cell {
            (cell.record, cell.version, cell.age) = (record, version, 0);
        }
        self.orphans.clear();
    }

    /// Tells a node that its request failed, and that it has to wait for a lease duration.
    pub(super) fn ask_to_wait(&mut self, setup: &Setup, index: usize, kind: StoreErrorKind) {
        let asked = Duration::from_nanos(setup.lease_of(index));
        self.nodes[index].silent = asked;
        self.fail(setup, index, kind, Some(asked));
    }

    /// Tells a node that its request failed. A request that is still on its way may arrive later.
    pub(super) fn fail(&mut self, setup: &Setup, index: usize, kind: StoreErrorKind, retry_after: Option<Duration>) {
        let is_read = match &self.nodes[index].flight {
            Some(Flight::Sent(request)) => matches!(request, Request::Look),
            Some(Flight::Answered { answer, .. }) => matches!(answer, Answer::Read(_)),
            None => return,
        };
        self.orphan(setup, index);
        if is_read {
            self.nodes[index].well = Duration::ZERO;
        }
        let failure = Failure { kind, retry_after };
        let answer = if is_read { Answer::Read(Err(failure)) } else { Answer::Written(Err(failure)) };
        self.step(setup, index, Input::Answer(answer), false);
    }

    pub(super) fn orphan(&mut self, setup: &Setup, index: usize) {
        // A write that would not land now may land after a repair.
        if let Some(Flight::Sent(Request::Write(write))) = self.nodes[index].flight.take()
            && self.cell.as_ref().map(|cell| &cell.version) == write.expected.as_ref()
            && self.orphans.len() < setup.late_writes
        {
            self.orphans.push((Some(index), Arc::unwrap_or_clone(write.record)));
        }
    }

    /// Marks all writes of a node as writes of a process that no longer exists.
    pub(super) fn forget(&mut self, index: usize) {
        let writers = self.orphans.iter_mut().map(|(writer, _)| writer);
        for writer in writers.chain(self.cell.as_mut().map(|cell| &mut cell.writer)) {
            writer.take_if(|writer| *writer == index);
        }
    }
}

impl Flight {
    pub(super) fn is_read(&self) -> bool {
        matches!(self, Flight::Answered { answer: Answer::Read(_), .. })
    }

    /// Returns the request as one that the store has refused and will never apply.
    pub(super) fn without_effect(self) -> Self {
        match self {
            Flight::Sent(Request::Write(_)) => {
                let failure = Failure { kind: StoreErrorKind::Rejected, retry_after: None };
                Flight::Answered { answer: Answer::Written(Err(failure)), applied: false, clash: false }
            }
            other => other,
        }
    }
}

impl Cell {
    fn read(&self, setup: &Setup) -> VersionedRecord {
        let age = setup.store_clock.map(|clock| Duration::from_nanos(self.age + clock.error));
        VersionedRecord::new(self.record.clone(), self.version.clone()).with_age(age)
    }
}

/// Returns the version of a record: its write id, because versions are as unique as write ids.
fn version_of(record: &leaderelection::LeaderElectionRecord) -> Version {
    Version::new(record.write_id.clone().unwrap_or_default())
}
