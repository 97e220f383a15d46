//! The unreliable way to the object.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use leaderelection::{
    ConditionalStore, LeaderElectionRecord, ListedObject, Precondition, StoreError, StoreErrorKind, Version,
    VersionedObject,
};
use tokio::sync::oneshot;
use tokio::time::sleep;

use super::clock::TrueTime;
use super::faults::{Falsehood, Fate, Link, Outage, Refusal, Reply};
use super::object::{State, parse};
use super::oracle::Property;
use super::timeline::{Effect, PlanId, ProcessId, RequestId, Sent};
use super::world::World;

/// The store as one process reaches it.
#[derive(Clone, Debug)]
pub(super) struct Connection {
    pub(super) world: Arc<World>,
    pub(super) client: Client,
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
}

impl Client {
    fn process(self) -> Option<ProcessId> {
        match self {
            Self::Process { id, .. } => Some(id),
            Self::Operator(_) | Self::Stranger => None,
        }
    }
}

const CONFLICT: Refusal = Refusal { kind: StoreErrorKind::Conflict, retry_after: None };

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
struct Parcel {
    op: Op,
    id: RequestId,
    sent: TrueTime,
    fate: Fate,
}

impl Connection {
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
        let fate = self.world.fate(self.client);
        let mut says = None;
        if let (Client::Process { node, id }, Op::Put { record, .. }) = (self.client, &op) {
            says = self.world.sends_write((node, id), record);
        }
        let parcel = Parcel { op, id, sent: self.world.now(), fate };
        let (tell, told) = oneshot::channel();
        // A task of its own carries the request, because the request stays in flight if its sender gives up or
        // dies.
        tokio::spawn(self.clone().carry(parcel, tell));
        let Ok(answer) = told.await else { return std::future::pending().await };
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

    async fn carry(self, parcel: Parcel, tell: oneshot::Sender<Result<Done, Refusal>>) {
        let fate = parcel.fate;
        let Some(arrives) = fate.arrives else { return };
        travel(arrives).await;
        let (answer, honest) = match (self.world.outage(), fate.reply) {
            (Some(Outage::Silent), _) => return,
            (Some(Outage::Refusing(refusal)), _) | (None, Reply::Refuse(refusal)) => (Err(refusal), false),
            (Some(Outage::Lying(refusal)), _) | (None, Reply::Lie(refusal)) => {
                let _ = self.apply(&parcel);
                (Err(refusal), false)
            }
            (None, Reply::Honest) => (self.apply(&parcel), true),
            (None, Reply::OfSecond) => {
                let _ = self.apply(&parcel);
                travel(fate.again.unwrap_or_default()).await;
                (self.apply(&parcel), matches!(parcel.op, Op::Get))
            }
            (None, Reply::False(falsehood)) => (self.deceive(&parcel, falsehood), false),
        };
        let id = parcel.id;
        if let (Reply::Honest, Some(again)) = (fate.reply, fate.again) {
            let copy = self.clone();
            tokio::spawn(async move {
                travel(again).await;
                let _ = copy.apply(&parcel);
            });
        }
        self.answer(id, answer, honest, fate.returns, tell).await;
    }

    async fn answer(
        &self,
        id: RequestId,
        answer: Result<Done, Refusal>,
        honest: bool,
        returns: Option<Duration>,
        tell: oneshot::Sender<Result<Done, Refusal>>,
    ) {
        let Some(returns) = returns else { return };
        travel(returns).await;
        if self.world.link(self.client) != Link::Up {
            return;
        }
        let error = answer.as_ref().err().copied();
        self.world.oracle(|oracle, now| {
            oracle.answered(now, self.client.process(), id, error, honest);
            let is_lie = !honest && error.is_none_or(|error| error.kind != StoreErrorKind::Ambiguous);
            if let (Client::Operator(plan), true) = (self.client, is_lie) {
                oracle.lied_to_operator(plan);
            }
        });
        // The sender may no longer wait for the answer.
        let _ = tell.send(answer);
    }

    /// Tells the sender something false about the object.
    fn deceive(&self, parcel: &Parcel, Falsehood { applied, age }: Falsehood) -> Result<Done, Refusal> {
        if let Op::Get = parcel.op {
            let mut object = self.world.object.lock().unwrap();
            let shown = age.and_then(|age| object.earlier(age)).cloned();
            let shown = object.show(shown);
            let effect = Effect::Read { newest: shown.as_ref().map_or(0, |state| state.number) };
            self.world.oracle(|oracle, now| {
                oracle.arrived(now, self.client.process(), parcel.id, effect);
                if let Some(process) = self.client.process() {
                    oracle.deceived(process, parcel.id);
                }
            });
            return Ok(Done::Got(shown));
        }
        if applied {
            let _ = self.apply(parcel);
        }
        Err(CONFLICT)
    }

    fn apply(&self, parcel: &Parcel) -> Result<Done, Refusal> {
        let mut object = self.world.object.lock().unwrap();
        let (effect, done) = match &parcel.op {
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
        self.world.oracle(|oracle, now| {
            oracle.arrived(now, self.client.process(), parcel.id, effect);
            if let (Ok(Done::Put { .. }), Op::Put { record, .. }) = (&done, &parcel.op) {
                match self.client {
                    Client::Process { id, .. } => oracle.wrote(now, id, (parcel.id, parcel.sent), record),
                    Client::Operator(plan) => oracle.intervened(now, plan, record),
                    Client::Stranger => oracle.stranger_wrote(now, record),
                }
            }
        });
        done
    }
}

async fn travel(time: Duration) {
    if !time.is_zero() {
        sleep(time).await;
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
