//! The unreliable way to the object.

use std::sync::Arc;

use super::carry::{self, Answer, Request};
use super::clock::TrueTime;
use super::faults::{Falsehood, Refusal};
use super::object::{State, parse};
use super::oracle::Property;
use super::scenario::Sequenced;
use super::sequenced::{KEY, Wire};
use super::timeline::{Effect, PlanId, ProcessId, RequestId, Sent};
use super::world::World;
use async_trait::async_trait;
use bytes::Bytes;
use leaderelection::sequenced::SequencedStore;
use leaderelection::{
    ConditionalStore, LeaderElectionRecord, ListedObject, Precondition, StoreError, StoreErrorKind, Version,
    VersionedObject,
};

/// The store as one process reaches it.
#[derive(Clone, Debug)]
pub(super) struct Connection {
    world: Arc<World>,
    client: Client,
    /// The calls of a store that can only create; `None` for a store that writes on a condition.
    sequenced: Option<SequencedStore<Wire>>,
}

/// The sender of requests.
#[derive(Clone, Copy, Debug)]
pub(super) enum Client {
    /// A candidate.
    Process { node: usize, id: ProcessId },
    /// The operator, for one intervention.
    Operator(PlanId),
    /// A candidate of another library.
    Stranger,
    /// The sweeper of a store that can only create.
    Sweeper,
}

impl Client {
    pub(super) fn process(self) -> Option<ProcessId> {
        match self {
            Self::Process { id, .. } => Some(id),
            Self::Operator(_) | Self::Stranger | Self::Sweeper => None,
        }
    }
}

pub(super) const CONFLICT: Refusal = Refusal { kind: StoreErrorKind::Conflict, retry_after: None };

#[derive(Clone)]
enum Op {
    Get,
    Put { body: Bytes, precondition: Precondition, record: Box<LeaderElectionRecord> },
}

#[derive(Debug)]
enum Done {
    Got(Option<State>),
    Put { version: Version, holder: String },
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
        let sequenced = world.scenario.sequenced.map(|Sequenced { keep, .. }| Wire::new(world, client).store(keep));
        Self { world: Arc::clone(world), client, sequenced }
    }

    async fn call(&self, op: Op) -> Result<Done, StoreError> {
        let sent = match &op {
            Op::Get => Sent::Read,
            Op::Put { record, precondition, .. } => {
                let token = record.leader_transitions;
                match precondition {
                    Precondition::Absent => Sent::Create { token },
                    _ if record.is_released() => Sent::Release { token },
                    _ if self.asks(record) => Sent::Ask { token },
                    Precondition::Matches(_) => Sent::Update { token },
                }
            }
        };
        let is_read = matches!(op, Op::Get);
        let id = self.world.oracle(|oracle, now| oracle.sent(now, self.client.process(), sent));
        if let Client::Process { node, .. } = self.client {
            self.world.nodes[node].sends.notify_waiters();
        }
        let mut says = None;
        if let (Client::Process { node, id }, Op::Put { record, .. }) = (self.client, &op) {
            says = self.world.sends_write((node, id), record);
        }
        let answer = match &self.sequenced {
            None => {
                let parcel = Parcel { way: self.clone(), op, id, sent: self.world.now() };
                carry::send(parcel, self.world.fate(self.client)).await
            }
            Some(store) => self.ask_one_by_one(store, op, id).await,
        };
        if let Some(process) = self.client.process() {
            if let (Some(says), Ok(Done::Put { .. })) = (says, &answer) {
                self.world.say(says);
            }
            self.world.oracle(|oracle, now| match &answer {
                Err(refusal) => {
                    oracle.is_disturbed(process);
                    if is_read {
                        oracle.is_unwell(now, process);
                    }
                    oracle.told_to_wait(now, process, refusal.retry_after.unwrap_or_default());
                }
                Ok(Done::Got(found)) => {
                    let shows = found.as_ref().map(|state| state.number);
                    // A candidate reads slowly after something that is no record.
                    if found.as_ref().is_none_or(|state| state.object.body.starts_with(b"{")) {
                        oracle.looked(now, process, shows);
                    } else {
                        oracle.is_disturbed(process);
                    }
                    oracle.read(process, shows);
                    oracle.heard(process, found.as_ref().map_or("", |state| &state.holder));
                }
                Ok(Done::Put { holder, .. }) => oracle.heard(process, holder),
            });
        }
        answer.map_err(|Refusal { kind, retry_after }| {
            StoreError::new(kind, "the simulated store failed").with_retry_after(retry_after)
        })
    }

    /// Returns `true` if the write of a candidate leaves the record to another.
    fn asks(&self, record: &LeaderElectionRecord) -> bool {
        let holder = &record.holder_identity;
        self.client
            .process()
            .is_some_and(|process| self.world.oracle(|oracle, _| oracle.identity_of(process)) != *holder)
    }

    /// Sends the requests of a sequenced lock, each with a fate of its own.
    async fn ask_one_by_one(&self, store: &SequencedStore<Wire>, op: Op, id: RequestId) -> Result<Done, Refusal> {
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
        let answer = answer.map_err(|error| Refusal { kind: error.kind(), retry_after: error.retry_after() });
        let error = answer.as_ref().err().copied();
        // A write that others have overtaken has to be looked at.
        let is_plain = error.is_none_or(|error| error.kind != StoreErrorKind::Ambiguous);
        self.heard(id, error, wire.was_honest() && is_plain);
        answer
    }

    /// Records an answer that reaches the sender.
    fn heard(&self, id: RequestId, error: Option<Refusal>, honest: bool) {
        self.world.oracle(|oracle, now| {
            oracle.answered(now, self.client.process(), id, error, honest);
            let is_lie = !honest && error.is_none_or(|error| error.kind != StoreErrorKind::Ambiguous);
            if let (Client::Operator(plan), true) = (self.client, is_lie) {
                oracle.lied_to_operator(plan);
            }
        });
    }
}

impl Request for Parcel {
    type Done = Done;

    fn world(&self) -> &Arc<World> {
        &self.way.world
    }

    fn client(&self) -> Client {
        self.way.client
    }

    fn is_read(&self) -> bool {
        matches!(self.op, Op::Get)
    }

    fn apply(&self) -> Answer<Done> {
        let Self { way: Connection { world, client, .. }, op, id, sent } = self;
        let mut object = world.object.lock().unwrap();
        let (effect, done) = match op {
            Op::Get => {
                let found = object.now().cloned();
                (Effect::Read { newest: object.newest() }, Ok(Done::Got(object.show(found))))
            }
            Op::Put { body, precondition, record } => match object.put(body, precondition, record) {
                None => (Effect::Conflict { newest: object.newest() }, Err(CONFLICT)),
                Some(version) => {
                    let holder = record.holder_identity.clone();
                    (Effect::Wrote { write: object.newest() }, Ok(Done::Put { version, holder }))
                }
            },
        };
        world.oracle(|oracle, now| {
            oracle.arrived(now, client.process(), *id, effect);
            if let (Ok(Done::Put { .. }), Op::Put { record, .. }) = (&done, op) {
                oracle.wrote_by(now, *client, (*id, *sent), record);
            }
        });
        done
    }

    fn deceive(&self, Falsehood { applied, age }: Falsehood) -> Answer<Done> {
        if let Op::Get = self.op {
            let Connection { world, client, .. } = &self.way;
            let mut object = world.object.lock().unwrap();
            let shown = age.and_then(|age| object.earlier(age)).cloned();
            let shown = object.show(shown);
            let effect = Effect::Read { newest: shown.as_ref().map_or(0, |state| state.number) };
            world.oracle(|oracle, now| {
                oracle.arrived(now, client.process(), self.id, effect);
                if let Some(process) = client.process() {
                    oracle.deceived(process, self.id);
                }
            });
            return Ok(Done::Got(shown));
        }
        if applied {
            let _ = self.apply();
        }
        Err(CONFLICT)
    }

    fn answered(&self, answer: &Answer<Done>, honest: bool) {
        self.way.heard(self.id, answer.as_ref().err().copied(), honest);
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

    async fn delete(&self, _key: &str, _expected: &Version) -> Result<(), StoreError> {
        let what = format!("{:?} deletes the object", self.client);
        self.world.oracle(|oracle, now| oracle.violated(now, Property::NoErasure, what));
        std::future::pending().await
    }

    async fn list(&self, _prefix: &str) -> Result<Vec<ListedObject>, StoreError> {
        Ok(Vec::new())
    }

    fn describe(&self, key: &str) -> String {
        format!("simulated:{key}")
    }
}
