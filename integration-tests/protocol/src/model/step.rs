//! The possible steps from a state, and their results.

use std::sync::Arc;
use std::time::Duration;

use leaderelection::election::{Answer, Command, Effect, Failure, Input, Request, WorkEnd, Write};
use leaderelection::{StoreErrorKind, Version, VersionedRecord};

use super::canonical::unused_id;
use super::node::{Flight, Ids, Node, Work, now};
use super::world::{Cell, Manner, Setup, Spoilt, Violation, World};

/// One step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Action {
    /// Advances all clocks, each by its rate.
    Tick,
    /// Delivers a write whose sender no longer waits for the answer.
    ArriveLate(usize),
    /// Deletes the object, as an operator can.
    Delete,
    /// Replaces the record by something that is none.
    Spoil,
    /// Puts the record back.
    Repair,
    /// Asks the leader to hand over to a node, as an operator can.
    RequestTransfer(usize),
    /// Lets an event happen to a node.
    Node(usize, Deed),
}

/// An event that happens to a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Deed {
    /// The node reads its clock and does what is due.
    Poll,
    /// The node's request reaches the store.
    Arrive,
    /// The node gets the answer.
    Answer,
    /// The node no longer waits for the answer. The request may still arrive.
    GiveUp,
    /// The store refused the node's request before the request had any effect.
    Refuse,
    /// The store applied the node's write, and the answer is a conflict, as after a second try of an SDK or a proxy.
    LieConflict,
    /// The store applied the node's write, and the answer is a refusal.
    LieRefused,
    /// The store refused the node's request before the request had any effect, and asks the node to wait.
    RefuseAndAskToWait,
    /// The answer is an error that leaves the outcome open, and asks the node to wait.
    FailAndAskToWait,
    /// The node is asked to end its term or its candidacy.
    Stop,
    /// The node is asked to step down.
    StepDown,
    /// The work of the node's term is polled for the first time.
    BeginWork,
    /// The work of the node's term has ended, after the term itself.
    WorkStopped,
    /// The node crashes and starts again with the same identity.
    Crash,
}

impl World {
    pub(super) fn possible(&self, setup: &Setup, actions: &mut Vec<Action>) {
        actions.push(Action::Tick);
        for (index, node) in self.nodes.iter().enumerate() {
            let mut push = |deed| actions.push(Action::Node(index, deed));
            push(Deed::Poll);
            if setup.waits {
                match &node.flight {
                    None => {}
                    Some(Flight::Sent(_)) => push(Deed::RefuseAndAskToWait),
                    Some(Flight::Answered { .. }) => push(Deed::FailAndAskToWait),
                }
            }
            match &node.flight {
                None => {}
                Some(Flight::Sent(_)) => [Deed::Arrive, Deed::GiveUp, Deed::Refuse].into_iter().for_each(&mut push),
                Some(Flight::Answered { applied, .. }) => {
                    [Deed::Answer, Deed::GiveUp].into_iter().for_each(&mut push);
                    if *applied && setup.lies {
                        [Deed::LieConflict, Deed::LieRefused].into_iter().for_each(&mut push);
                    }
                }
            }
            match node.work {
                Work::None => {}
                Work::Pending => push(Deed::BeginWork),
                Work::Running if node.leads => {}
                Work::Running | Work::Dropped | Work::Abandoned => push(Deed::WorkStopped),
            }
            if setup.stops && !node.waits {
                push(Deed::Stop);
            }
            if setup.stops && node.leads {
                push(Deed::StepDown);
            }
            if setup.crashes {
                push(Deed::Crash);
            }
        }
        actions.extend((0..self.orphans.len()).map(Action::ArriveLate));
        if setup.deletion && !self.deleted && self.cell.is_some() {
            actions.push(Action::Delete);
        }
        if setup.spoils && self.spoilt == Spoilt::NotYet && self.cell.is_some() {
            actions.push(Action::Spoil);
        }
        if self.spoilt == Spoilt::Now {
            actions.push(Action::Repair);
        }
        if self.transferred < setup.transfers && self.cell.is_some() && self.spoilt != Spoilt::Now {
            actions.extend((0..self.nodes.len()).map(Action::RequestTransfer));
        }
    }

    pub(super) fn after(&self, setup: &Setup, action: Action) -> World {
        let mut world = self.clone();
        match action {
            Action::Tick => {
                world.advance(setup);
                for index in 0..world.nodes.len() {
                    let violation = world.nodes[index].look(setup);
                    world.violate(setup, violation);
                }
            }
            Action::ArriveLate(orphan) => {
                // A write that arrives while the object is something else does not land.
                let (writer, record) = world.orphans.remove(orphan);
                if world.spoilt != Spoilt::Now {
                    world.write(setup, writer, record);
                }
            }
            Action::Delete => {
                world.cell = None;
                world.orphans.clear();
                world.deleted = true;
            }
            Action::Spoil => world.spoilt = Spoilt::Now,
            Action::Repair => world.spoilt = Spoilt::Over,
            Action::RequestTransfer(to) => {
                world.transferred += 1;
                if let Some(cell) = &mut world.cell {
                    cell.record.preferred_holder = Some(setup.nodes[to].0.to_owned());
                    cell.version = Version::new(unused_id(world.ids));
                }
                world.orphans.clear();
            }
            Action::Node(index, deed) => world.act(setup, index, deed),
        }
        world.canonical(setup)
    }

    fn act(&mut self, setup: &Setup, index: usize, deed: Deed) {
        match deed {
            Deed::Poll => self.step(setup, index, Input::Tick, false),
            Deed::Arrive => {
                self.arrive(setup, index);
                if setup.instant_reads && self.nodes[index].flight.as_ref().is_some_and(Flight::is_read) {
                    self.take_answer(setup, index);
                }
            }
            Deed::Answer => self.take_answer(setup, index),
            Deed::GiveUp => self.fail(setup, index, StoreErrorKind::Ambiguous, None),
            Deed::Refuse => {
                self.nodes[index].flight = self.nodes[index].flight.take().map(Flight::without_effect);
                self.fail(setup, index, StoreErrorKind::Rejected, None);
            }
            Deed::RefuseAndAskToWait => {
                self.nodes[index].flight = self.nodes[index].flight.take().map(Flight::without_effect);
                self.ask_to_wait(setup, index, StoreErrorKind::Rejected);
            }
            Deed::FailAndAskToWait => self.ask_to_wait(setup, index, StoreErrorKind::Ambiguous),
            Deed::LieConflict => self.fail(setup, index, StoreErrorKind::Conflict, None),
            Deed::LieRefused => self.fail(setup, index, StoreErrorKind::Rejected, None),
            Deed::Stop => {
                self.nodes[index].stop_asked = true;
                self.step(setup, index, Input::Command(Command::Stop), false);
            }
            Deed::StepDown => self.step(setup, index, Input::Command(Command::StepDown), false),
            Deed::BeginWork => self.begin_work(setup, index),
            Deed::WorkStopped => self.end_work(setup, index),
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
        (self.nodes[index].waits, self.nodes[index].stop_asked) = (false, false);
        let input = Input::Begin { stand_back: Duration::ZERO, ends_with_work: false, job: None };
        self.step(setup, index, input, false);
    }

    /// Begins the work, as the work's task does: the task reads the clock before it polls the work.
    fn begin_work(&mut self, setup: &Setup, index: usize) {
        if self.nodes[index].leads && self.nodes[index].leading(setup).is_some() {
            self.nodes[index].work = Work::Running;
        } else {
            self.nodes[index].work = Work::None;
            self.step(setup, index, Input::WorkEnded(WorkEnd::NotBegun), false);
        }
    }

    fn end_work(&mut self, setup: &Setup, index: usize) {
        self.nodes[index].work = Work::None;
        if self.nodes[index].waits {
            // Only the next candidacy waits for work that was given up.
            self.begin(setup, index);
        } else {
            self.step(setup, index, Input::WorkEnded(WorkEnd::Complete), false);
        }
    }

    /// Takes one step of a node's machine, and carries out the effects as a driver does. `clash` is `true` if the input
    /// is an answer that shows a clash of identities.
    fn step(&mut self, setup: &Setup, index: usize, input: Input, clash: bool) {
        let mut ids = Ids(unused_id(self.ids));
        let node = &mut self.nodes[index];
        node.election.handle(now(setup), input, &mut ids);
        while let Some(effect) = self.nodes[index].election.next() {
            self.carry_out(setup, index, effect, clash);
        }
        let node = &mut self.nodes[index];
        let violation = node.after_step(setup).or_else(|| node.look(setup));
        let campaigns_again = node.waits && !node.works();
        self.violate(setup, violation);
        if std::mem::take(&mut self.nodes[index].ends_now) {
            self.end_work(setup, index);
        } else if campaigns_again {
            self.begin(setup, index);
        }
    }

    fn carry_out(&mut self, setup: &Setup, index: usize, effect: Effect, clash: bool) {
        let lease = Duration::from_nanos(setup.lease_of(index));
        let node = &mut self.nodes[index];
        let violation = match effect {
            Effect::Send(request) => {
                self.orphan(setup, index);
                let violation = self.nodes[index].may_send(&request);
                self.nodes[index].flight = Some(Flight::Sent(request));
                violation
            }
            Effect::Start { term, .. } => {
                node.leads = true;
                node.work = if setup.work == Manner::BeginsLate { Work::Pending } else { Work::Running };
                node.lease_end = Some(term.sent_at + lease);
                let this = 1 << term.fencing_token;
                let broken = self.started & this != 0 || setup.trusted_clocks && self.started > this;
                self.started |= this;
                broken.then_some(Violation::Tokens)
            }
            Effect::Extend(term) => {
                node.lease_end = Some(term.sent_at + lease);
                None
            }
            Effect::Stop { fencing_token, reason, .. } => {
                node.leads = false;
                node.ends_now = setup.work != Manner::EndsLate && node.work == Work::Running;
                node.stops(fencing_token, &reason, self.cell.as_ref(), index)
            }
            Effect::DropWork => {
                if node.work == Work::Running {
                    node.work = Work::Dropped;
                }
                None
            }
            Effect::Abandon => {
                node.work = Work::Abandoned;
                None
            }
            Effect::Finished(_) => {
                let violation = (node.works() && node.work != Work::Abandoned).then_some(Violation::EarlyEnd);
                (node.leads, node.lease_end) = (false, None);
                node.waits = true;
                // The driver drops the request for whose answer it waits.
                self.orphan(setup, index);
                violation
            }
            Effect::Fact(fact) => node.hear(&fact, clash),
            _ => None,
        };
        self.violate(setup, violation);
    }

    fn take_answer(&mut self, setup: &Setup, index: usize) {
        if let Some(Flight::Answered { answer, clash, .. }) = self.nodes[index].flight.take() {
            self.nodes[index].see(setup, &answer);
            self.step(setup, index, Input::Answer(answer), clash);
        }
    }

    fn arrive(&mut self, setup: &Setup, index: usize) {
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
                answered(Answer::Read(Ok(self.cell.as_ref().map(Cell::read))), false, clash)
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
    fn write(&mut self, setup: &Setup, writer: Option<usize>, record: leaderelection::LeaderElectionRecord) {
        let violation = self.broken_by_write(setup, writer, &record);
        self.violate(setup, violation);
        let version = version_of(&record);
        self.cell = Some(Cell { record, version, writer });
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

    /// Tells a node that its request failed, and that it has to wait for a lease duration.
    fn ask_to_wait(&mut self, setup: &Setup, index: usize, kind: StoreErrorKind) {
        let asked = Duration::from_nanos(setup.lease_of(index));
        self.nodes[index].silent = asked;
        self.fail(setup, index, kind, Some(asked));
    }

    /// Tells a node that its request failed. A request that is still on its way may arrive later.
    fn fail(&mut self, setup: &Setup, index: usize, kind: StoreErrorKind, retry_after: Option<Duration>) {
        let is_read = match &self.nodes[index].flight {
            Some(Flight::Sent(request)) => matches!(request, Request::Look),
            Some(Flight::Answered { answer, .. }) => matches!(answer, Answer::Read(_)),
            None => return,
        };
        self.orphan(setup, index);
        let failure = Failure { kind, retry_after };
        let answer = if is_read { Answer::Read(Err(failure)) } else { Answer::Written(Err(failure)) };
        self.step(setup, index, Input::Answer(answer), false);
    }

    fn orphan(&mut self, setup: &Setup, index: usize) {
        // A write that would not land now may land after a repair.
        if let Some(Flight::Sent(Request::Write(write))) = self.nodes[index].flight.take()
            && self.cell.as_ref().map(|cell| &cell.version) == write.expected.as_ref()
            && self.orphans.len() < setup.late_writes
        {
            self.orphans.push((Some(index), Arc::unwrap_or_clone(write.record)));
        }
    }

    /// Marks all writes of a node as writes of a process that no longer exists.
    fn forget(&mut self, index: usize) {
        let writers = self.orphans.iter_mut().map(|(writer, _)| writer);
        for writer in writers.chain(self.cell.as_mut().map(|cell| &mut cell.writer)) {
            writer.take_if(|writer| *writer == index);
        }
    }
}

impl Flight {
    fn is_read(&self) -> bool {
        matches!(self, Flight::Answered { answer: Answer::Read(_), .. })
    }

    /// Returns the request as one that the store has refused and will never apply.
    fn without_effect(self) -> Self {
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
    fn read(&self) -> VersionedRecord {
        VersionedRecord::new(self.record.clone(), self.version.clone())
    }
}

/// Returns the version of a record: its write id, because versions are as unique as write ids.
fn version_of(record: &leaderelection::LeaderElectionRecord) -> Version {
    Version::new(record.write_id.clone().unwrap_or_default())
}
