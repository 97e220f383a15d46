//! The suite for stores: its parts in their order, and its races.

use std::sync::Arc;

use bytes::Bytes;
use leaderelection::{ConditionalStore, Precondition, StoreError, Version, VersionedObject};

use super::calls::Suite;
use super::clause::{HONEST_ERRORS, WRITTEN, broken, demand};
use super::effort::Effort;
use super::race;
use crate::race::{Answer, Refusal};

/// Checks that `store` keeps the contract of [`ConditionalStore`].
///
/// A store that has no deletion with a condition passes if it refuses every deletion as
/// [`Fatal`](leaderelection::StoreErrorKind::Fatal). Everything under `prefix` is deleted before and after the check. A call that the store rejects is repeated,
/// so that a store with a rate limit can pass, if slowly. Use a runtime with several threads: the races depend
/// on it.
///
/// The check does not cover cases that the trait cannot cause: an object over
/// [`MAX_BODY_BYTES`](leaderelection::store::MAX_BODY_BYTES) that another program wrote (must be
/// [`Unreadable`](leaderelection::StoreErrorKind::Unreadable)), network failures, and crashes.
///
/// # Panics
///
/// If the store breaks its contract, or answers nothing but errors.
pub async fn check_store(store: impl ConditionalStore, prefix: &str, effort: Effort) {
    assert!(!prefix.is_empty(), "the suite deletes what is under its prefix: name one, not the whole store");
    let mut suite = Suite { store: Arc::new(store), prefix: prefix.to_owned(), deletes: true };
    suite.clear().await;
    suite.try_to_delete().await;
    suite.missing_objects().await;
    suite.create().await;
    suite.update().await;
    suite.delete().await;
    suite.versions().await;
    suite.body_sizes().await;
    suite.list().await;
    suite.races(effort).await;
    suite.rewriting(effort).await;
    suite.ages().await;
    suite.clear().await;
}

impl<S: ConditionalStore> Suite<S> {
    async fn races(&self, effort: Effort) {
        let mut barren = 0;
        let mut round = 0;
        while round < effort.rounds {
            let key = self.key(&format!("race/{}", round + barren));
            if round % 2 == 1 {
                // In every second round, the creators race for an object that existed before and was deleted.
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

    /// Runs a race of updaters. All of them name the version `base`; one more deletes, if the store can.
    async fn race_updaters(&self, key: &str, racers: usize, base: Version) {
        let answers = race::race(racers + usize::from(self.deletes), |racer| {
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

    /// Returns the racer that wrote an object.
    fn racer(&self, key: &str, role: &str, racers: usize, object: &VersionedObject) -> usize {
        (0..racers).find(|&racer| body(role, racer) == object.body).unwrap_or_else(|| {
            broken(
                &self.store.describe(key),
                format!("after a race of {role}s it holds what none of them wrote"),
                WRITTEN,
            )
        })
    }
}

fn written(answer: Result<Version, StoreError>) -> Answer<Option<Version>> {
    answer.map(Some).map_err(Refusal::from)
}

fn body(role: &str, racer: usize) -> Bytes {
    format!("{role} {racer}").into()
}
