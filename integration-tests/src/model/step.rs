//! What can happen next, and what comes of it.

use chrono::DateTime;
use leaderelection::election::{Answer, EndReason, Failure, Request, Stamp};
use leaderelection::{StoreErrorKind, Version, VersionedRecord};

use super::canonical::unused_id;
use super::node::{Flight, Node, now};
use super::world::{Cell, Setup, Violation, World};

/// One step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Action {
    /// All clocks advance, each by its rate.
    Tick,
    /// A node looks at its clock and does what is due.
    Poll(usize),
    /// A node's request reaches the store.
    Arrive(usize),
    /// A node gets the answer.
    Answer(usize),
    /// A node gives up waiting. Its request may arrive later.
    GiveUp(usize),
    /// A node's request was refused before it had any effect.
    Refuse(usize),
    /// A node's write was applied, and it is told that it was not: by the SDK's or a proxy's second try.
    LieConflict(usize),
    /// A node's write was applied, and it is told that it was refused.
    LieRefused(usize),
    /// A write arrives that nobody waits for any more.
    ArriveLate(usize),
    /// A node is asked to stop leading, or to stop trying.
    Stop(usize),
    /// The work of a term that is over has ended; the lease is released.
    WorkStopped(usize),
    /// A node dies and is started again, with the same identity.
    Crash(usize),
}

impl World {
    pub(super) fn possible(&self, setup: &Setup, actions: &mut Vec<Action>) {
        actions.push(Action::Tick);
        for (index, node) in self.nodes.iter().enumerate() {
            match &node.flight {
                None => actions.push(Action::Poll(index)),
                Some(Flight::Sent(_)) => {
                    actions.extend([Action::Poll(index), Action::Arrive(index), Action::GiveUp(index)]);
                    actions.push(Action::Refuse(index));
                }
                Some(Flight::Answered { applied, .. }) => {
                    actions.extend([Action::Poll(index), Action::Answer(index), Action::GiveUp(index)]);
                    if *applied && setup.lies {
                        actions.extend([Action::LieConflict(index), Action::LieRefused(index)]);
                    }
                }
            }
            if node.election.stop_by().is_some() {
                actions.push(Action::WorkStopped(index));
            } else if setup.stops && !node.election.is_releasing() {
                actions.push(Action::Stop(index));
            }
            if setup.crashes {
                actions.push(Action::Crash(index));
            }
        }
        actions.extend((0..self.orphans.len()).map(Action::ArriveLate));
    }

    pub(super) fn after(&self, setup: &Setup, action: Action) -> World {
        let mut world = self.clone();
        let acted = match action {
            Action::Tick => {
                world.advance(setup);
                for node in &mut world.nodes {
                    world.violation = world.violation.or(node.look(setup));
                }
                return world.canonical(setup);
            }
            Action::Poll(index) => {
                world.poll(setup, index);
                index
            }
            Action::Arrive(index) => {
                world.arrive(setup, index);
                if setup.instant_reads
                    && let Some(Flight::Answered { answer: Answer::Read(read), .. }) =
                        world.nodes[index].flight.take_if(is_read)
                {
                    world.nodes[index].answer(setup, Answer::Read(read));
                }
                index
            }
            Action::Answer(index) => {
                if let Some(Flight::Answered { answer, .. }) = world.nodes[index].flight.take() {
                    world.nodes[index].answer(setup, answer);
                }
                index
            }
            Action::GiveUp(index) => {
                world.fail(setup, index, StoreErrorKind::Ambiguous);
                index
            }
            Action::Refuse(index) => {
                world.nodes[index].flight = world.nodes[index].flight.take().map(Flight::without_effect);
                world.fail(setup, index, StoreErrorKind::Rejected);
                index
            }
            Action::LieConflict(index) => {
                world.fail(setup, index, StoreErrorKind::Conflict);
                index
            }
            Action::LieRefused(index) => {
                world.fail(setup, index, StoreErrorKind::Rejected);
                index
            }
            Action::ArriveLate(orphan) => {
                let (writer, record) = world.orphans.remove(orphan);
                world.write(setup, writer, record);
                writer
            }
            Action::Stop(index) => {
                world.nodes[index].election.stop(now(setup), EndReason::Cancelled);
                index
            }
            Action::WorkStopped(index) => {
                world.nodes[index].election.work_stopped(now(setup), setup.releases);
                index
            }
            Action::Crash(index) => {
                world.orphan(setup, index);
                world.nodes[index] = Node::new(setup, index);
                index
            }
        };
        if world.nodes[acted].election.is_idle() {
            // The driver drops the request it waits for, and campaigns again.
            world.orphan(setup, acted);
            world.nodes[acted].election.begin(now(setup));
        }
        let World { nodes, cell, highest_started, .. } = &mut world;
        let violation = nodes[acted].settle(setup, highest_started, cell.as_ref(), acted);
        world.violation = world.violation.or(violation);
        world.canonical(setup)
    }

    fn poll(&mut self, setup: &Setup, index: usize) {
        let write_id = unused_id(self.ids);
        let stamp = || Stamp { write_id, time: DateTime::UNIX_EPOCH };
        let node = &mut self.nodes[index];
        let request = node.election.poll(now(setup), stamp);
        if let Some(request) = request {
            node.flight = Some(Flight::Sent(request));
        }
    }

    fn arrive(&mut self, setup: &Setup, index: usize) {
        let Some(Flight::Sent(request)) = self.nodes[index].flight.take() else { return };
        let answered = |answer, applied| Some(Flight::Answered { answer, applied });
        self.nodes[index].flight = match request {
            Request::Read => answered(Answer::Read(Ok(self.cell.as_ref().map(Cell::read))), false),
            Request::Create { ref record } | Request::Update { ref record, .. } => {
                let applies = self.applies(&request);
                let version = version_of(record);
                if applies {
                    self.write(setup, index, record.clone());
                }
                let conflict = Failure { kind: StoreErrorKind::Conflict, retry_after: None };
                answered(Answer::Written(if applies { Ok(version) } else { Err(conflict) }), applies)
            }
        };
    }

    fn applies(&self, request: &Request) -> bool {
        match (request, &self.cell) {
            (Request::Create { .. }, None) => true,
            (Request::Update { expected, .. }, Some(cell)) => *expected == version_of(&cell.record),
            _ => false,
        }
    }

    /// Applies a write whose condition holds, and looks whether it should have been made at all.
    fn write(&mut self, setup: &Setup, writer: usize, record: leaderelection::LeaderElectionRecord) {
        if let Some(cell) = &self.cell {
            let same_term = cell.writer == writer && cell.record.leader_transitions == record.leader_transitions;
            let begins_term = record.leader_transitions > cell.record.leader_transitions;
            let others_lead =
                self.nodes.iter().enumerate().any(|(other, node)| other != writer && node.leading(setup).is_some());
            if !(same_term || begins_term && !others_lead) {
                self.violation = Some(Violation::Erasure);
            }
        }
        self.cell = Some(Cell { record, writer });
        // Writes on any other version than this one can never be applied.
        self.orphans.clear();
    }

    /// Tells a node that its request failed; if it is still on its way, it goes on without anybody waiting.
    fn fail(&mut self, setup: &Setup, index: usize, kind: StoreErrorKind) {
        let is_read = match &self.nodes[index].flight {
            Some(Flight::Sent(request)) => matches!(request, Request::Read),
            Some(Flight::Answered { answer, .. }) => matches!(answer, Answer::Read(_)),
            None => return,
        };
        self.orphan(setup, index);
        let failure = Failure { kind, retry_after: None };
        let answer = if is_read { Answer::Read(Err(failure)) } else { Answer::Written(Err(failure)) };
        self.nodes[index].answer(setup, answer);
    }

    fn orphan(&mut self, setup: &Setup, index: usize) {
        if let Some(Flight::Sent(request)) = self.nodes[index].flight.take()
            && self.applies(&request)
            && self.orphans.len() < setup.late_writes
            && let Request::Create { record } | Request::Update { record, .. } = request
        {
            self.orphans.push((index, record));
        }
    }
}

impl Flight {
    /// The request, as if it had been a read: it will not be applied.
    fn without_effect(self) -> Self {
        match self {
            Flight::Sent(Request::Create { .. } | Request::Update { .. }) => {
                let failure = Failure { kind: StoreErrorKind::Rejected, retry_after: None };
                Flight::Answered { answer: Answer::Written(Err(failure)), applied: false }
            }
            other => other,
        }
    }
}

impl Cell {
    fn read(&self) -> VersionedRecord {
        VersionedRecord { record: self.record.clone(), version: version_of(&self.record) }
    }
}

fn is_read(flight: &mut Flight) -> bool {
    matches!(flight, Flight::Answered { answer: Answer::Read(_), .. })
}

/// Versions are as unique as write ids, so one serves as the other.
fn version_of(record: &leaderelection::LeaderElectionRecord) -> Version {
    Version::new(record.write_id.clone().unwrap_or_default())
}
