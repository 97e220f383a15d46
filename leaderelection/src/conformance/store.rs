//! The suite for stores: what it runs, in which order, and how it calls the store.

use std::sync::Arc;

use bytes::Bytes;

use super::Effort;
use super::clause::{ABSENT, DELETE, HONEST_ERRORS, WRITTEN, broken, demand};
use super::patiently;
use super::race::{self, Answer, Refusal};
use crate::store::{ConditionalStore, Precondition, StoreError, StoreErrorKind, Version, VersionedObject};

/// Checks that `store` keeps the contract of [`ConditionalStore`].
///
/// Everything under `prefix` is deleted before and after. A call that the store rejects is repeated, so
/// that a store which limits rates can pass, if slowly. The races are only as good as the runtime: use
/// one with several threads.
///
/// Not covered, because it takes more than the trait: an object over
/// [`MAX_BODY_BYTES`](crate::MAX_BODY_BYTES) that something else wrote (must be
/// [`Unreadable`](StoreErrorKind::Unreadable)), failures of the network, and crashes.
///
/// # Panics
///
/// If the store breaks its contract, or answers nothing but errors.
pub async fn check_store(store: impl ConditionalStore, prefix: &str, effort: Effort) {
    assert!(!prefix.is_empty(), "the suite deletes what is under its prefix: name one, not the whole store");
    let suite = Suite { store: Arc::new(store), prefix: prefix.to_owned() };
    suite.clear().await;
    suite.missing_objects().await;
    suite.create().await;
    suite.update().await;
    suite.delete().await;
    suite.versions().await;
    suite.body_sizes().await;
    suite.list().await;
    suite.races(effort).await;
    suite.rewriting(effort).await;
    suite.clear().await;
}

#[derive(Debug)]
pub(super) struct Suite<S> {
    pub(super) store: Arc<S>,
    pub(super) prefix: String,
}

impl<S: ConditionalStore> Suite<S> {
    async fn races(&self, effort: Effort) {
        let mut barren = 0;
        let mut round = 0;
        while round < effort.rounds {
            let key = self.key(&format!("race/{}", round + barren));
            if round % 2 == 1 {
                // Creators race for an object that was there before and was deleted.
                let version = self.put(&key, "before the race", &Precondition::Absent).await;
                self.delete_object(&key, &version).await;
            }
            let Some(created) = self.race_creators(&key, effort.racers).await else {
                barren += 1;
                let what = format!("in {barren} races all creators were rejected");
                demand(barren <= effort.rounds, &self.store.describe(&key), what, HONEST_ERRORS);
                continue;
            };
            self.race_updaters(&key, effort.racers, created).await;
            round += 1;
        }
    }

    async fn race_creators(&self, key: &str, racers: usize) -> Option<Version> {
        let answers = race::race(racers, |racer| {
            let (store, key) = (self.store.clone(), key.to_owned());
            async move { written(store.put(&key, body("creator", racer), &Precondition::Absent).await) }
        })
        .await;
        let present =
            self.get(key).await.map(|object| (self.racer(key, "creator", racers, &object), Some(object.version)));
        race::winner(&self.store.describe(key), "creators", &answers, present)?.1
    }

    /// All name the version `base`; the last of them deletes.
    async fn race_updaters(&self, key: &str, racers: usize, base: Version) {
        let answers = race::race(racers + 1, |racer| {
            let (store, key, base) = (self.store.clone(), key.to_owned(), base.clone());
            async move {
                if racer == racers {
                    return store.delete(&key, &base).await.map(|()| None).map_err(Refusal::from);
                }
                written(store.put(&key, body("updater", racer), &Precondition::Matches(base)).await)
            }
        })
        .await;
        let present = match self.get(key).await {
            None => Some((racers, None)),
            Some(object) if object.version == base => None,
            Some(object) => Some((self.racer(key, "updater", racers, &object), Some(object.version))),
        };
        race::winner(&self.store.describe(key), "updaters and a deleter", &answers, present);
    }

    /// Whose write an object is.
    fn racer(&self, key: &str, role: &str, racers: usize, object: &VersionedObject) -> usize {
        (0..racers).find(|&racer| body(role, racer) == object.body).unwrap_or_else(|| {
            broken(
                &self.store.describe(key),
                format!("after a race of {role}s it holds what none of them wrote"),
                WRITTEN,
            )
        })
    }

    /// Deletes everything under the prefix.
    async fn clear(&self) {
        for key in self.list_keys(&self.prefix).await {
            // Gone already if a deletion that was answered as ambiguous has landed since.
            if let Some(object) = self.get(&key).await {
                self.delete_object(&key, &object.version).await;
            }
        }
    }

    pub(super) fn key(&self, name: &str) -> String {
        format!("{}/{name}", self.prefix)
    }

    pub(super) async fn get(&self, key: &str) -> Option<VersionedObject> {
        patiently(|| self.store.get(key)).await.unwrap_or_else(|error| self.failed("get", key, error))
    }

    pub(super) async fn list_keys(&self, prefix: &str) -> Vec<String> {
        patiently(|| self.store.list(prefix)).await.unwrap_or_else(|error| self.failed("list", prefix, error))
    }

    pub(super) async fn put(&self, key: &str, body: impl Into<Bytes>, precondition: &Precondition) -> Version {
        let body = body.into();
        patiently(|| self.store.put(key, body.clone(), precondition))
            .await
            .unwrap_or_else(|error| self.failed("put", key, error))
    }

    pub(super) async fn delete_object(&self, key: &str, version: &Version) {
        patiently(|| self.store.delete(key, version)).await.unwrap_or_else(|error| self.failed("delete", key, error));
    }

    /// A put that must fail as `kind`; `what` names it to the reader.
    pub(super) async fn put_refused(
        &self,
        key: &str,
        body: impl Into<Bytes>,
        precondition: &Precondition,
        (kind, what, clause): (StoreErrorKind, &str, &'static str),
    ) {
        let body = body.into();
        let answer = patiently(|| self.store.put(key, body.clone(), precondition)).await;
        self.refused(key, answer.map(drop), (kind, what, clause));
    }

    pub(super) async fn delete_refused(&self, key: &str, version: &Version, what: &str) {
        let answer = patiently(|| self.store.delete(key, version)).await;
        self.refused(key, answer, (StoreErrorKind::Conflict, what, DELETE));
    }

    fn refused(
        &self,
        key: &str,
        answer: Result<(), StoreError>,
        (kind, what, clause): (StoreErrorKind, &str, &'static str),
    ) {
        match answer {
            Ok(()) => broken(&self.store.describe(key), format!("{what} was accepted"), clause),
            Err(error) => {
                let what = format!("{what} was answered {:?} ({error}) and not {kind:?}", error.kind());
                demand(error.kind() == kind, &self.store.describe(key), what, clause);
            }
        }
    }

    /// The object at `key` must be `body` at `version`; `after` names what happened before.
    pub(super) async fn expect(&self, key: &str, body: &[u8], version: &Version, after: &str, clause: &'static str) {
        let object = self.store.describe(key);
        let Some(found) = self.get(key).await else { broken(&object, format!("{after}, there is no object"), clause) };
        demand(found.body == body, &object, format!("{after}, it holds another body"), clause);
        let what = format!("{after}, its version is {} and not {version}", found.version);
        demand(found.version == *version, &object, what, clause);
    }

    pub(super) async fn expect_none(&self, key: &str, after: &str) {
        let found = self.get(key).await;
        demand(found.is_none(), &self.store.describe(key), format!("{after}, there is an object"), ABSENT);
    }

    fn failed(&self, call: &str, key: &str, error: StoreError) -> ! {
        let refusal = Refusal::from(error);
        broken(&self.store.describe(key), format!("`{call}` must succeed here: {refusal:?}"), HONEST_ERRORS)
    }
}

fn written(answer: Result<Version, StoreError>) -> Answer<Option<Version>> {
    answer.map(Some).map_err(Refusal::from)
}

fn body(role: &str, racer: usize) -> Bytes {
    format!("{role} {racer}").into()
}
