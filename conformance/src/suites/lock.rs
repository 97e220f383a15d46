//! The suite for locks, built like the suite for stores.

use std::sync::Arc;

use leaderelection::causes::with_causes;
use leaderelection::lock::DEFAULT_MAX_LEASE_DURATION;
use leaderelection::{LeaderElectionRecord, LockError, ObjectStoreBasedLock, StoreErrorKind, Version, VersionedRecord};
use tokio::time::sleep;

use super::clause::{
    ABSENT, CREATE, HONEST_ERRORS, IDENTITY, LINEARIZABLE_READ, ONE_RESPONSE, UPDATE, VERSION, WRITTEN, broken, demand,
};
use super::effort::Effort;
use super::race;
use crate::patience::patiently;
use crate::race::Refusal;

/// Checks that the locks of `new_lock`, made from a key and an identity, keep the contract of
/// [`ObjectStoreBasedLock`].
///
/// A lock cannot be deleted, so no object may exist at the keys: let `new_lock` put a fresh prefix before the
/// keys, and delete the objects under that prefix afterwards. The suite takes no prefix itself, because only `new_lock`
/// knows where a lock has its object: a Lease has no folders, and a lock of two has two places. Locks with the same key compete for one record. A
/// call that the store rejects is repeated, so that a store with a rate limit can pass, if slowly. Use a
/// runtime with several threads: the races depend on it.
///
/// A lock that is made of two, such as a `Majority`, passes only if the store of its second lock limits no rates: after the
/// first half of a write has landed, a rejection of the second half is answered as
/// [`Ambiguous`](StoreErrorKind::Ambiguous). Check the two locks by themselves as well, because the first one decides every
/// race and hides what is wrong with the conditions of the second.
///
/// # Panics
///
/// If a lock breaks its contract, or answers nothing but errors.
pub async fn check_lock<L: ObjectStoreBasedLock>(new_lock: impl Fn(&str, &str) -> L, effort: Effort) {
    let other = new_lock("other", "candidate-1");
    let version = created(&other, &record("candidate-1", "0")).await;
    sequential(&new_lock("sequential", "candidate-1"), &new_lock("sequential", "candidate-2"), &version).await;
    let mut barren = 0;
    let mut round = 0;
    while round < effort.rounds {
        let key = format!("race-{}", round + barren);
        let locks: Vec<_> =
            (0..effort.racers).map(|racer| Arc::new(new_lock(&key, &format!("candidate-{racer}")))).collect();
        let Some(first) = locks.first() else { return };
        let Some(created) = race(&locks, None).await else {
            barren += 1;
            let what = format!("in {barren} races all creators were rejected");
            demand(barren <= effort.rounds, &first.describe(), what, HONEST_ERRORS);
            continue;
        };
        race(&locks, Some(created)).await;
        round += 1;
    }
}

/// Runs single calls in sequence. `foreign` is a version that the store has issued for another object.
async fn sequential<L: ObjectStoreBasedLock>(lock: &L, rival: &L, foreign: &Version) {
    let object = &lock.describe();
    let what =
        || format!("it is {:?} and {:?}, not \"candidate-1\" and \"candidate-2\"", lock.identity(), rival.identity());
    demand((lock.identity(), rival.identity()) == ("candidate-1", "candidate-2"), object, what(), IDENTITY);
    demand(get(lock).await.is_none(), object, "before it was created, there is a record", ABSENT);

    let early = record("candidate-1", "0");
    let answer = patiently(sleep, || lock.update(&early, foreign)).await;
    refused(lock, answer, "an update of a missing record", UPDATE);
    demand(get(lock).await.is_none(), object, "after a refused update, there is a record", UPDATE);

    let first = record("candidate-1", "1");
    let created = created(lock, &first).await;
    expect(rival, &first, &created, "after its creation").await;
    let second = record("candidate-2", "2");
    refused(rival, patiently(sleep, || rival.create(&second)).await, "a second create", CREATE);
    expect(rival, &first, &created, "after a refused second create").await;

    // The holder and the times are equal: only the write id distinguishes a renewal from the renewed record.
    let renewed = record("candidate-1", "3");
    let version = updated(lock, &renewed, &created).await;
    demand(version != created, object, format!("two records have the version {created}"), VERSION);
    expect(rival, &renewed, &version, "after an update").await;
    let stale = record("candidate-2", "4");
    refused(rival, patiently(sleep, || rival.update(&stale, &created)).await, "a stale update", UPDATE);
    expect(rival, &renewed, &version, "after a refused stale update").await;

    let taken = record("candidate-2", "5");
    let version = updated(rival, &taken, &version).await;
    expect(lock, &taken, &version, "after an update by a rival").await;
}

/// Lets every lock write a record of its own, at the version `base` or where no record exists.
async fn race<L: ObjectStoreBasedLock>(locks: &[Arc<L>], base: Option<Version>) -> Option<Version> {
    let racers = if base.is_none() { "creators" } else { "updaters" };
    // No racer writes the current record: on a store whose version is a hash of the content, the version would stay the
    // same. Every write has an ID of its own, by which a lock may recognise it.
    let written = |racer: usize| record(locks[racer].identity(), &format!("{racers}-{racer}"));
    let answers = race::race(locks.len(), |racer| {
        let (lock, base, record) = (locks[racer].clone(), base.clone(), written(racer));
        async move {
            match base {
                None => lock.create(&record).await.map_err(Refusal::from),
                Some(base) => lock.update(&record, &base).await.map_err(Refusal::from),
            }
        }
    })
    .await;
    let lock = locks.first()?;
    let present = get(&**lock).await.filter(|found| Some(&found.version) != base.as_ref()).map(|found| {
        let racer = (0..locks.len()).find(|&racer| written(racer) == found.record);
        let what = format!("after a race of {racers} it holds {:?}, which none of them wrote", found.record);
        (racer.unwrap_or_else(|| broken(&lock.describe(), what, WRITTEN)), found.version)
    });
    race::winner(&lock.describe(), racers, &answers, present).map(|(_, version)| version)
}

/// A record with fields that this library does not know.
fn record(identity: &str, write: &str) -> LeaderElectionRecord {
    let json = format!(
        r#"{{"holderIdentity":"{identity}","leaseDuration":"15s","acquireTime":"2026-02-02T10:15:30.000001Z",
        "renewTime":"2026-02-02T10:15:40.000000Z","leaderTransitions":7,"writeId":"{write}",
        "strategy":"OldestEmulationVersion","notes":{{"free": ["text, ☃ and all", null, 1.0e2]}}}}"#
    );
    match LeaderElectionRecord::from_json(json.as_bytes(), DEFAULT_MAX_LEASE_DURATION) {
        Ok(record) => record,
        Err(error) => unreachable!("the suite's own record is one: {error}"),
    }
}

async fn get<L: ObjectStoreBasedLock>(lock: &L) -> Option<VersionedRecord> {
    patiently(sleep, || lock.get()).await.unwrap_or_else(|error| failed(lock, "get", error))
}

async fn created<L: ObjectStoreBasedLock>(lock: &L, record: &LeaderElectionRecord) -> Version {
    patiently(sleep, || lock.create(record)).await.unwrap_or_else(|error| failed(lock, "create", error))
}

async fn updated<L: ObjectStoreBasedLock>(lock: &L, record: &LeaderElectionRecord, expected: &Version) -> Version {
    patiently(sleep, || lock.update(record, expected)).await.unwrap_or_else(|error| failed(lock, "update", error))
}

async fn expect<L: ObjectStoreBasedLock>(lock: &L, record: &LeaderElectionRecord, version: &Version, after: &str) {
    let object = &lock.describe();
    let Some(found) = get(lock).await else {
        broken(object, format!("{after}, there is no record"), LINEARIZABLE_READ)
    };
    demand(
        found.record == *record,
        object,
        format!("{after}, it holds {:?} and not {record:?}", found.record),
        WRITTEN,
    );
    let what = format!("{after}, its version is {} and not {version}", found.version);
    demand(found.version == *version, object, what, ONE_RESPONSE);
}

fn refused<L: ObjectStoreBasedLock>(lock: &L, answer: Result<Version, LockError>, what: &str, clause: &'static str) {
    let object = &lock.describe();
    match answer {
        Ok(_) => broken(object, format!("{what} was accepted"), clause),
        Err(error) => {
            let what = format!("{what} was answered {:?} ({}) and not Conflict", error.kind(), with_causes(&error));
            demand(error.kind() == StoreErrorKind::Conflict, object, what, clause);
        }
    }
}

fn failed<L: ObjectStoreBasedLock>(lock: &L, call: &str, error: LockError) -> ! {
    broken(&lock.describe(), format!("`{call}` must succeed here: {:?}", Refusal::from(error)), HONEST_ERRORS)
}
