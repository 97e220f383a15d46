//! The one object that all candidates compete for, and its last states.

use std::collections::{BTreeMap, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::Duration;

use bytes::Bytes;
use leaderelection::LeaderElectionRecord;
use leaderelection::implement::{Precondition, Version, VersionedObject};
use leaderelection::lock::DEFAULT_MAX_LEASE_DURATION;
use leaderelection_sequenced::steps::complete;

use super::clock::StoreClocks;
use super::faults::REMEMBERED_STATES;
use super::names::WriteNumber;
use super::scenario::Scenario;

/// One state of the object.
#[derive(Clone, Debug)]
pub(crate) struct State {
    pub(crate) object: VersionedObject,
    pub(crate) number: WriteNumber,
    pub(crate) holder: String,
    /// The `Last-Modified` of the state.
    pub(crate) written: Option<Duration>,
}

/// Reads a record that a candidate has written.
pub(crate) fn parse(body: &Bytes) -> LeaderElectionRecord {
    LeaderElectionRecord::from_json(body, DEFAULT_MAX_LEASE_DURATION).expect("candidates write records")
}

/// The objects of a lock, and the states that the lock had.
#[derive(Debug, Default)]
pub(super) struct Numbers {
    /// An object that is created at a number that had been removed never counts.
    pub(super) objects: BTreeMap<u64, Stored>,
    /// The true history: the state of each number that was the highest when it was created. `None` for a deletion.
    states: Vec<Option<State>>,
}

/// One object.
#[derive(Clone, Debug)]
pub(super) struct Stored {
    pub(super) content: Bytes,
    /// The `Last-Modified` of the object.
    pub(super) written: Option<Duration>,
}

impl Numbers {
    /// The highest number that ever existed.
    pub(super) fn highest(&self) -> u64 {
        self.states.len() as u64
    }

    /// Adds the next state, which somebody has just written.
    pub(super) fn append(&mut self, state: Option<State>, deleted_at: Option<Duration>) {
        let (body, written) = match &state {
            Some(state) => (state.object.body.clone(), state.written),
            None => (Bytes::new(), deleted_at),
        };
        self.states.push(state);
        self.objects.insert(self.highest(), Stored { content: complete(&body), written });
    }

    /// The state at a number.
    pub(super) fn state(&self, number: u64) -> Option<&State> {
        self.states.get(usize::try_from(number).ok()?.checked_sub(1)?)?.as_ref()
    }

    /// Returns `true` if the lock did not exist at some moment since `highest` was the highest number.
    pub(super) fn was_absent_since(&self, highest: u64) -> bool {
        let index = usize::try_from(highest).unwrap_or(usize::MAX);
        index == 0 || self.states.get(index - 1..).is_none_or(|states| states.iter().any(Option::is_none))
    }
}

/// The object that all candidates compete for.
#[derive(Debug)]
pub(super) struct Object {
    now: Option<State>,
    /// The states before the present one, newest first.
    past: VecDeque<Option<State>>,
    /// The record that was replaced by something else, until the object is repaired or written.
    replaced: Option<Bytes>,
    writes: WriteNumber,
    versions_by_content: bool,
    /// The clocks by which the store tells ages; `None` if it tells none.
    clocks: Option<StoreClocks>,
    /// The objects of a store that can only create; `None` for a store that writes on a condition.
    numbers: Option<Numbers>,
}

impl Object {
    pub(super) fn new(scenario: &Scenario, clocks: Option<StoreClocks>) -> Self {
        let (versions_by_content, numbers) =
            (scenario.versions_by_content, scenario.sequenced.map(|_| Numbers::default()));
        Self { now: None, past: VecDeque::new(), replaced: None, writes: 0, versions_by_content, clocks, numbers }
    }

    /// The objects of a sequenced lock.
    pub(super) fn numbers(&mut self) -> &mut Numbers {
        self.numbers.as_mut().expect("a sequenced lock")
    }

    /// Returns the time that a server tells.
    pub(super) fn header(&mut self) -> Option<Duration> {
        self.clocks.as_mut().map(StoreClocks::header)
    }

    /// Returns a state as a server shows it now, with its age.
    pub(super) fn show(&mut self, state: Option<State>) -> Option<State> {
        let mut state = state?;
        let now = self.header();
        state.object.age = now.zip(state.written).map(|(now, written)| now.saturating_sub(written));
        Some(state)
    }

    pub(super) fn now(&self) -> Option<&State> {
        self.now.as_ref()
    }

    /// Returns the state that was replaced by `age` later ones.
    pub(super) fn earlier(&self, age: usize) -> Option<&State> {
        match age.checked_sub(1) {
            None => self.now(),
            Some(index) => self.past.get(index)?.as_ref(),
        }
    }

    pub(super) fn newest(&self) -> WriteNumber {
        self.now.as_ref().map_or(0, |state| state.number)
    }

    pub(super) fn put(
        &mut self,
        body: &Bytes,
        precondition: &Precondition,
        record: &LeaderElectionRecord,
    ) -> Option<Version> {
        let version = self.now.as_ref().map(|state| &state.object.version);
        let holds = match precondition {
            Precondition::Absent => version.is_none(),
            Precondition::Matches(expected) => version == Some(expected),
        };
        holds.then(|| self.replace(body.clone(), record.holder_identity.clone()))
    }

    pub(super) fn delete(&mut self) {
        self.remember(None);
    }

    /// Replaces the record by `body`, which is none that a candidate can use. Returns `false` if there is no record.
    pub(super) fn spoil(&mut self, body: impl FnOnce(LeaderElectionRecord) -> Bytes) -> bool {
        let Some(State { object, holder, .. }) = self.now.clone() else { return false };
        self.replace(body(parse(&object.body)), holder);
        self.replaced = Some(object.body);
        true
    }

    /// Writes the record again that [`spoil`](Self::spoil) has replaced. Returns `false` if a candidate has written
    /// since.
    pub(super) fn repair(&mut self) -> bool {
        let Some(body) = self.replaced.take() else { return false };
        let holder = parse(&body).holder_identity;
        self.replace(body, holder);
        true
    }

    /// Replaces the state, whatever it is.
    pub(super) fn replace(&mut self, body: Bytes, holder: String) -> Version {
        self.replaced = None;
        self.writes += 1;
        let version = if self.versions_by_content { content_hash(&body) } else { self.writes };
        let version = Version::new(format!("{version:x}"));
        let object = VersionedObject::new(body, version.clone());
        let written = self.header();
        self.remember(Some(State { object, number: self.writes, holder, written }));
        version
    }

    fn remember(&mut self, next: Option<State>) {
        if self.numbers.is_some() {
            let written = self.header();
            self.numbers().append(next.clone(), written);
        }
        self.past.push_front(std::mem::replace(&mut self.now, next));
        self.past.truncate(REMEMBERED_STATES);
    }
}

fn content_hash(body: &Bytes) -> u64 {
    let mut hasher = DefaultHasher::new();
    body.hash(&mut hasher);
    hasher.finish()
}
