//! The suite for locks: the same idea, one level up.

use std::sync::Arc;

use super::Effort;
use super::clause::{
    ABSENT, CREATE, HONEST_ERRORS, IDENTITY, LINEARIZABLE_READ, ONE_RESPONSE, UPDATE, VERSION, WRITTEN, broken, demand,
};
use super::patiently;
use super::race::{self, Refusal};
use crate::causes::with_causes;
use crate::lock::{LockError, ObjectStoreBasedLock, VersionedRecord};
use crate::record::LeaderElectionRecord;
use crate::store::{StoreErrorKind, Version};

/// Checks that the locks that `new_lock` makes, from a key and an identity, keep the contract of
/// [`ObjectStoreBasedLock`].
///
/// A lock cannot be deleted, so there must be nothing yet at the keys: let `new_lock` put a fresh prefix
/// before them, and clean up what is under it. Locks with the same key compete for one record. A call that
/// the store rejects is repeated, so that one which limits rates can pass, if slowly. The races are only as
/// good as the runtime: use one with several threads.
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

/// `foreign` is a version that the store has given out for another object.
async fn sequential<L: ObjectStoreBasedLock>(lock: &L, rival: &L, foreign: &Version) {
    let object = &lock.describe();
    let what =
        || format!("it is {:?} and {:?}, not \"candidate-1\" and \"candidate-2\"", lock.identity(), rival.identity());
    demand((lock.identity(), rival.identity()) == ("candidate-1", "candidate-2"), object, what(), IDENTITY);
    demand(get(lock).await.is_none(), object, "before it was created, there is a record", ABSENT);

    let early = record("candidate-1", "0");
    let answer = patiently(|| lock.update(&early, foreign)).await;
    refused(lock, answer, "an update of a missing record", UPDATE);
    demand(get(lock).await.is_none(), object, "after a refused update, there is a record", UPDATE);

    let first = record("candidate-1", "1");
    let created = created(lock, &first).await;
    expect(rival, &first, &created, "after its creation").await;
    let second = record("candidate-2", "2");
    refused(rival, patiently(|| rival.create(&second)).await, "a second create", CREATE);
    expect(rival, &first, &created, "after a refused second create").await;

    // The same holder, the same times: nothing but the write id tells a renewal from what it renews.
    let renewed = record("candidate-1", "3");
    let version = updated(lock, &renewed, &created).await;
    demand(version != created, object, format!("two records have the version {created}"), VERSION);
    expect(rival, &renewed, &version, "after an update").await;
    let stale = record("candidate-2", "4");
    refused(rival, patiently(|| rival.update(&stale, &created)).await, "a stale update", UPDATE);
    expect(rival, &renewed, &version, "after a refused stale update").await;

    let taken = record("candidate-2", "5");
    let version = updated(rival, &taken, &version).await;
    expect(lock, &taken, &version, "after an update by a rival").await;
}

/// Every lock writes a record of its own, at the version `base` or where there is none.
async fn race<L: ObjectStoreBasedLock>(locks: &[Arc<L>], base: Option<Version>) -> Option<Version> {
    let answers = race::race(locks.len(), |racer| {
        let (lock, base) = (locks[racer].clone(), base.clone());
        async move {
            // Nobody writes what is there: where the version is a hash of the content, it would stay the same.
            let record = record(lock.identity(), if base.is_none() { "creator" } else { "updater" });
            match base {
                None => lock.create(&record).await.map_err(Refusal::from),
                Some(base) => lock.update(&record, &base).await.map_err(Refusal::from),
            }
        }
    })
    .await;
    let lock = locks.first()?;
    let present = get(&**lock).await.filter(|found| Some(&found.version) != base.as_ref()).map(|found| {
        let racer = locks.iter().position(|lock| lock.identity() == found.record.holder_identity);
        let what = "after a race it holds what none of the racers wrote";
        (racer.unwrap_or_else(|| broken(&lock.describe(), what, WRITTEN)), found.version)
    });
    let racers = if base.is_none() { "creators" } else { "updaters" };
    race::winner(&lock.describe(), racers, &answers, present).map(|(_, version)| version)
}

/// A record with fields that this library does not know.
fn record(identity: &str, write: &str) -> LeaderElectionRecord {
    let json = format!(
        r#"{{"holderIdentity":"{identity}","leaseDuration":"15s","acquireTime":"2026-02-02T10:15:30.000001Z",
        "renewTime":"2026-02-02T10:15:40.000000Z","leaderTransitions":7,"writeId":"{write}",
        "strategy":"OldestEmulationVersion","notes":{{"free": ["text, ☃ and all", null, 1.0e2]}}}}"#
    );
    match LeaderElectionRecord::from_json(json.as_bytes(), crate::record::DEFAULT_MAX_LEASE_DURATION) {
        Ok(record) => record,
        Err(error) => unreachable!("the suite's own record is one: {error}"),
    }
}

async fn get<L: ObjectStoreBasedLock>(lock: &L) -> Option<VersionedRecord> {
    patiently(|| lock.get()).await.unwrap_or_else(|error| failed(lock, "get", error))
}

async fn created<L: ObjectStoreBasedLock>(lock: &L, record: &LeaderElectionRecord) -> Version {
    patiently(|| lock.create(record)).await.unwrap_or_else(|error| failed(lock, "create", error))
}

async fn updated<L: ObjectStoreBasedLock>(lock: &L, record: &LeaderElectionRecord, expected: &Version) -> Version {
    patiently(|| lock.update(record, expected)).await.unwrap_or_else(|error| failed(lock, "update", error))
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
