//! The one object that all candidates compete for, and its last states.

use std::collections::VecDeque;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::Duration;

use bytes::Bytes;
use leaderelection::{LeaderElectionRecord, Precondition, Version, VersionedObject};

use super::faults::REMEMBERED_STATES;
use super::names::WriteNumber;
use super::numbers::Numbers;
use super::scenario::Scenario;
use super::state::{State, parse};
use super::store_clock::StoreClocks;

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
        let holds = match (precondition, &self.now) {
            (Precondition::Absent, now) => now.is_none(),
            (Precondition::Matches(expected), now) => {
                now.as_ref().is_some_and(|state| state.object.version == *expected)
            }
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
