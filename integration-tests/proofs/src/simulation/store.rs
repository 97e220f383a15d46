//! The unreliable way to the object.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::carry::{self, Answer, Request};
use super::clock::TrueTime;
use super::faults::{CONFLICT, Fate, error};
use super::names::{Calls, Client, RequestId, Sent, Shown, WriteNumber};
use super::object::{Object, State, parse};
use super::oracle::Property;
use super::scenario::Sequenced;
use super::sequenced::{KEY, Wire};
use super::world::World;
use async_trait::async_trait;
use bytes::Bytes;
use leaderelection::election::Failure;
use leaderelection::implement::{ConditionalStore, ListedPage, PageToken, Precondition, Version, VersionedObject};
use leaderelection::{LeaderElectionRecord, StoreError, StoreErrorKind};
use leaderelection_sequenced::SequencedStore;

/// The store as one process reaches it.
#[derive(Clone, Debug)]
pub(super) struct Connection {
    world: Arc<World>,
    client: Client,
    /// The store that can only create, which remembers what this client has seen; `None` for a store that writes on a condition.
    sequenced: Option<SequencedStore<Wire>>,
    /// The lock of several, and the call of both that is in flight; `None` for the only lock.
    part: Option<Part>,
}

#[derive(Clone)]
enum Op {
    Get,
    Put { body: Bytes, precondition: Precondition, record: Box<LeaderElectionRecord> },
}

impl Op {
    fn is_release(&self) -> bool {
        matches!(self, Self::Put { record, .. } if record.is_released())
    }
}

#[derive(Debug)]
enum Done {
    Got(Option<State>),
    Put { version: Version, holder: String },
}

/// The part of a candidate's calls that goes to one of several locks.
#[derive(Clone, Debug)]
pub(super) struct Part {
    pub(super) part: usize,
    pub(super) calls: Arc<Mutex<Calls>>,
}

/// A request in flight.
#[derive(Clone)]
struct Parcel {
    way: Connection,
    op: Op,
    id: RequestId,
    sent: TrueTime,
}

impl Connection {
    pub(super) fn new(world: &Arc<World>, client: Client) -> Self {
        let store = |Sequenced { keep, .. }| SequencedStore::new(Wire::new(world, client)).keep(keep);
        let sequenced = world.scenario.sequenced.map(store);
        Self { world: Arc::clone(world), client, sequenced, part: None }
    }

    /// The way to one of several locks.
    pub(super) fn to(part: Part, world: &Arc<World>, client: Client) -> Self {
        Self { world: Arc::clone(world), client, sequenced: None, part: Some(part) }
    }

    fn half(&self) -> Option<usize> {
        self.part.as_ref().map(|part| part.part)
    }

    fn object(&self) -> &Mutex<Object> {
        &self.world.objects[self.half().unwrap_or_default()]
    }

    /// Records that a call begins: a read, or a write of this record, which creates the object or not.
    pub(super) fn begins(&self, written: Option<(&LeaderElectionRecord, bool)>) -> RequestId {
        let sent = written.map_or(Sent::Read, |(record, creates)| {
            let token = record.leader_transitions;
            match creates {
                true => Sent::Create { token },
                false if record.is_released() => Sent::Release { token },
                false if self.asks(record) => Sent::Ask { token },
                false => Sent::Update { token },
            }
        });
        let id = self.world.oracle().sent(self.client.process(), sent);
        self.leaves();
        id
    }

    /// Tells those who wait for a request of this node.
    fn leaves(&self) {
        if let Client::Process { node, .. } = self.client {
            self.world.nodes[node].sends.notify_waiters();
        }
    }

    /// Records an answer to a candidate: what a read has shown, if it was one that a candidate can use, and the holder; or the
    /// holder that was written.
    pub(super) fn ends(&self, is_read: bool, answer: Result<(Option<Shown>, &str), Failure>) {
        let Some(process) = self.client.process() else { return };
        let mut oracle = self.world.oracle();
        match answer {
            Err(refusal) => {
                oracle.is_disturbed(process);
                if is_read {
                    oracle.is_unwell(process);
                }
                oracle.told_to_wait(process, refusal.retry_after.unwrap_or_default());
            }
            Ok((shown, holder)) => {
                match shown {
                    Some(shown) => {
                        oracle.read_answered(process, shown);
                        oracle.read(process, shown);
                    }
                    // A candidate reads slowly after something that is no record.
                    None if is_read => oracle.is_disturbed(process),
                    None => {}
                }
                oracle.answered_to(process, holder);
            }
        }
    }

    async fn call(&self, op: Op) -> Result<Done, StoreError> {
        if let Some(part) = &self.part {
            self.leaves();
            let written = if let Op::Put { record, .. } = &op { Some(&**record) } else { None };
            let (id, sent) = part.calls.lock().unwrap().of(written);
            let parcel = Parcel { way: self.clone(), op, id, sent };
            let (fate, scenario) = (self.world.fate(self.client), &self.world.scenario);
            let fate = if scenario.slow_part == Some(part.part) { fate.slowed(scenario) } else { fate };
            let fate = if self.world.is_lost(part.part) { Fate { arrives: None, ..fate } } else { fate };
            let is_refused = scenario.refuses_releases == Some(part.part) && parcel.op.is_release();
            let answer = carry::send(parcel, if is_refused { fate.refused() } else { fate }).await;
            if let Ok(Done::Got(found)) = &answer {
                let number = found.as_ref().map_or(0, |state| state.number);
                part.calls.lock().unwrap().now.shown[part.part] = number;
            }
            return answer.map_err(error);
        }
        let is_read = matches!(op, Op::Get);
        let id = self.begins(match &op {
            Op::Get => None,
            Op::Put { record, precondition, .. } => Some((&**record, *precondition == Precondition::Absent)),
        });
        let says = match (self.client, &op) {
            (Client::Process { node, id }, Op::Put { record, .. }) => {
                Some(node).zip(self.world.sends_write(id, record))
            }
            _ => None,
        };
        let answer = match &self.sequenced {
            None => {
                let parcel = Parcel { way: self.clone(), op, id, sent: self.world.now() };
                carry::send(parcel, self.world.fate(self.client)).await
            }
            Some(store) => self.ask_one_by_one(store, op, id).await,
        };
        if let (Some((node, message)), Ok(Done::Put { .. })) = (says, &answer) {
            self.world.say(node, message);
        }
        self.ends(
            is_read,
            match &answer {
                Err(refusal) => Err(*refusal),
                Ok(Done::Got(None)) => Ok((Some(Shown::default()), "")),
                Ok(Done::Got(Some(state))) => {
                    let is_record = state.object.body.starts_with(b"{");
                    Ok((is_record.then(|| only(state.number)), &state.holder))
                }
                Ok(Done::Put { holder, .. }) => Ok((None, holder)),
            },
        );
        answer.map_err(error)
    }

    /// Returns `true` if the write of a candidate leaves the record to another.
    fn asks(&self, record: &LeaderElectionRecord) -> bool {
        let holder = &record.holder_identity;
        self.client.process().is_some_and(|process| self.world.oracle().identity_of(process) != *holder)
    }

    /// Sends the requests of a sequenced lock, each with a fate of its own.
    async fn ask_one_by_one(&self, store: &SequencedStore<Wire>, op: Op, id: RequestId) -> Result<Done, Failure> {
        let wire = store.objects();
        wire.begin(id);
        let answer = match op {
            Op::Get => store.get(KEY).await.map(|found| Done::Got(wire.saw(found))),
            Op::Put { body, precondition, record } => {
                let written = store.put(KEY, body.clone(), &precondition).await;
                written.map(|version| {
                    wire.wrote(&version, &body);
                    Done::Put { version, holder: record.holder_identity }
                })
            }
        };
        let answer = answer.map_err(|error| Failure { kind: error.kind(), retry_after: error.retry_after() });
        let error = answer.as_ref().err().copied();
        // A write that others have overtaken has to be read.
        let is_plain = error.is_none_or(|error| error.kind != StoreErrorKind::Ambiguous);
        self.answered_to(id, error, wire.was_honest() && is_plain);
        answer
    }

    /// Records an answer that reaches the sender.
    pub(super) fn answered_to(&self, id: RequestId, error: Option<Failure>, honest: bool) {
        let mut oracle = self.world.oracle();
        oracle.answered(self.client.process(), id, error, honest);
        let is_lie = !honest && error.is_none_or(|error| error.kind != StoreErrorKind::Ambiguous);
        if let (Client::Operator(plan), true) = (self.client, is_lie) {
            oracle.lied_to_operator(plan);
        }
    }
}

impl Parcel {
    fn arrived(&self, effect: &str) {
        let lock = self.way.half().map_or_else(String::new, |half| format!(" at lock {half}"));
        self.way.world.log(self.way.client.process(), || format!("r{} arrived{lock}: {effect}", self.id));
    }
}

/// The sight of a read of the only lock.
fn only(number: WriteNumber) -> Shown {
    let mut shown = Shown::default();
    shown[0] = number;
    shown
}

/// A read that shows a state, in words.
fn reads(shown: Option<&State>) -> String {
    shown.map_or_else(|| "there is no object".to_owned(), |state| format!("reads w{}", state.number))
}

impl Request for Parcel {
    type Done = Done;

    fn way(&self) -> (&Arc<World>, Client) {
        (&self.way.world, self.way.client)
    }

    fn is_read(&self) -> bool {
        matches!(self.op, Op::Get)
    }

    fn apply(&self) -> Answer<Done> {
        let Self { way, op, id, sent } = self;
        let Connection { world, client, .. } = way;
        let mut object = way.object().lock().unwrap();
        let (effect, done) = match op {
            Op::Get => {
                let found = object.now().cloned();
                (reads(found.as_ref()), Ok(Done::Got(object.show(found))))
            }
            Op::Put { body, precondition, record } => match object.put(body, precondition, record) {
                None => (format!("conflict, w{} is there", object.newest()), Err(CONFLICT)),
                Some(version) => {
                    let holder = record.holder_identity.clone();
                    (format!("WRITES w{}", object.newest()), Ok(Done::Put { version, holder }))
                }
            },
        };
        self.arrived(&effect);
        if let (Ok(Done::Put { .. }), Op::Put { record, .. }) = (&done, op) {
            match (way.half(), client) {
                (Some(half), Client::Process { id: by, .. }) => {
                    world.oracle().wrote_half((*by, half), (*id, *sent), record);
                }
                _ => world.oracle().wrote_by(*client, (*id, *sent), record),
            }
        }
        done
    }

    fn show_false(&self, age: Option<usize>) -> Option<Done> {
        if !self.is_read() {
            return None;
        }
        let mut object = self.way.object().lock().unwrap();
        let shown = age.and_then(|age| object.earlier(age)).cloned();
        let shown = object.show(shown);
        self.arrived(&reads(shown.as_ref()));
        if let Some(process) = self.way.client.process() {
            self.way.world.oracle().deceived(process, self.id);
        }
        Some(Done::Got(shown))
    }

    fn answered(&self, answer: &Answer<Done>, honest: bool) {
        match &self.way.part {
            Some(_) if honest => {}
            Some(part) => part.calls.lock().unwrap().now.is_deceived(self.id),
            None => self.way.answered_to(self.id, answer.as_ref().err().copied(), honest),
        }
    }
}

#[async_trait]
impl ConditionalStore for Connection {
    async fn get(&self, _key: &str) -> Result<Option<VersionedObject>, StoreError> {
        match self.call(Op::Get).await? {
            Done::Got(found) => Ok(found.map(|state| state.object)),
            Done::Put { .. } => unreachable!("a read is answered with what was read"),
        }
    }

    async fn put(&self, _key: &str, body: Bytes, precondition: &Precondition) -> Result<Version, StoreError> {
        let record = parse(&body);
        let op = Op::Put { body, precondition: precondition.clone(), record: Box::new(record) };
        match self.call(op).await? {
            Done::Put { version, .. } => Ok(version),
            Done::Got(_) => unreachable!("a write is answered with a version"),
        }
    }

    async fn delete(&self, _key: &str, _expected: Option<&Version>) -> Result<(), StoreError> {
        let what = format!("{:?} deletes the object", self.client);
        self.world.oracle().timeline.violated(Property::NoErasure, what);
        std::future::pending().await
    }

    async fn list_page(&self, _: &str, _: Option<&PageToken>, _: Option<u16>) -> Result<ListedPage, StoreError> {
        Ok(ListedPage::new(Vec::new(), None))
    }

    fn describe(&self, key: &str) -> String {
        format!("simulated:{key}")
    }

    fn min_write_interval(&self) -> Option<Duration> {
        None
    }
}
