//! A request for the lease, which keeps the write id of the leader's record.

use std::sync::Arc;

use async_trait::async_trait;
use leaderelection::admin::request_transfer;
use leaderelection::causes::with_causes;
use leaderelection::implement::{ConditionalStore, Version, VersionedRecord};
use leaderelection::lock::HolderRank;
use leaderelection::majority::view::View;
use leaderelection::{
    LeaderElectionRecord, LockError, Majority, MemoryLock, MemoryStore, ObjectStoreBasedLock, StoreErrorKind,
};
use tokio::time::{Instant, sleep};

use super::run;
use crate::support::{Fault, Journal, LEASE, RETRY, TestLock, builder, plant, stored};

fn names() -> Vec<String> {
    vec!["old".to_owned(), "new".to_owned()]
}

fn record(holder: &str, write_id: &str) -> LeaderElectionRecord {
    let mut record = LeaderElectionRecord::new(holder, LEASE);
    (record.leader_transitions, record.write_id) = (3, Some(write_id.to_owned()));
    record
}

fn found(record: &LeaderElectionRecord, version: &str) -> Option<VersionedRecord> {
    Some(VersionedRecord::new(record.clone(), Version::new(version)))
}

/// The candidate that asks dies between the two halves, or the answer to the second half is lost.
#[test]
fn a_request_that_has_reached_one_lock_is_followed_and_counted() {
    let record = record("leader", "first");
    let mut request = record.clone();
    (request.preferred_holder, request.failbacks) = (Some("better".to_owned()), 1);
    for [old, new] in [[&request, &record], [&record, &request]] {
        let mut leader = View::new("leader", names(), 2);
        leader.plan(&record, None).unwrap();
        leader.show(&[(0, found(&record, "old 1")), (1, found(&record, "new 1"))].into()).unwrap();
        let (shown, _) = leader.show(&[(0, found(old, "old 2")), (1, found(new, "new 2"))].into()).unwrap();
        let shown = shown.unwrap().record;
        assert_eq!((shown.preferred_holder.as_deref(), shown.failbacks), (Some("better"), 1));
    }
}

/// Beside parts of two writes, the request of a better candidate would be refused, and would cost time.
#[test]
fn a_leader_has_a_rank_only_while_all_parts_show_one_write() {
    let [first, second] = ["first", "second"].map(|write_id| {
        let mut record = record("leader", write_id);
        record.rank = HolderRank::new(5, record.leader_transitions);
        record
    });
    let mut candidate = View::new("better", names(), 2);
    for (new, version, rank) in [(&first, "new 1", first.rank.clone()), (&second, "new 2", None)] {
        let (shown, _) = candidate.show(&[(0, found(&first, "old 1")), (1, found(new, version))].into()).unwrap();
        assert_eq!(shown.unwrap().record.rank, rank, "{version}");
    }
}

/// A part that is written by the next leader while it is asked for by an operator.
#[derive(Debug)]
struct Overtaken {
    lock: TestLock,
    stores: [MemoryStore; 2],
}

#[async_trait]
impl ObjectStoreBasedLock for Overtaken {
    async fn get(&self) -> Result<Option<VersionedRecord>, LockError> {
        self.lock.get().await
    }

    async fn create(&self, record: &LeaderElectionRecord) -> Result<Version, LockError> {
        self.lock.create(record).await
    }

    async fn update(&self, record: &LeaderElectionRecord, expected: &Version) -> Result<Version, LockError> {
        for store in &self.stores {
            let mut next = crate::support::record("next", LEASE, 4);
            next.write_id = Some("next term".to_owned());
            plant(store, &next).await;
        }
        self.lock.update(record, expected).await
    }

    fn identity(&self) -> &str {
        self.lock.identity()
    }

    fn describe(&self) -> String {
        self.lock.describe()
    }

    fn objects(&self) -> Vec<(Arc<dyn ConditionalStore>, String)> {
        vec![(Arc::new(self.stores[1].clone()), "lock".to_owned())]
    }
}

/// The leader has followed the half of the request that has reached it, before the other half met its next renewal.
#[tokio::test(start_paused = true)]
async fn an_operator_learns_of_a_transfer_by_half_of_the_request() {
    for (to, is_done) in [("next", true), ("somebody else", false)] {
        let stores = <[MemoryStore; 2]>::default();
        for store in &stores {
            plant(store, &record("leader", "first")).await;
        }
        let old = MemoryLock::new(stores[0].clone(), "lock", "operator");
        let new = Overtaken { lock: TestLock::new(&stores[1], "operator"), stores: stores.clone() };
        let lock = Majority::both(old, new).unwrap();
        let told = request_transfer(&lock, &record("leader", "first"), to).await;
        assert_eq!(told.is_ok(), is_done, "{to}: {told:?}");
    }
}

/// The leader has renewed one of two parts that answer. A request with the write id of neither would take its parts from it.
#[tokio::test(start_paused = true)]
async fn a_request_in_the_middle_of_a_renewal_costs_no_lease() {
    let (stores, journal) = (<[MemoryStore; 3]>::default(), Journal::default());
    let locks = |identity: &str| [0, 1, 2].map(|part| TestLock::new(&stores[part], identity));
    let (ours, theirs, operator) = (locks("a"), locks("b"), locks("operator"));
    let candidate = |locks: &[TestLock; 3]| {
        builder(Majority::of(locks.clone()).unwrap(), journal.callbacks()).release_on_cancel(true)
    };
    let (leader, _cancel, _run) = run(candidate(&ours));
    sleep(RETRY * 3).await;
    let (mut next, _cancel, _run) = run(candidate(&theirs));
    sleep(RETRY * 3).await;
    [&ours, &theirs].into_iter().for_each(|locks| locks[2].set_outage(Some(Fault::Hang)));
    operator[2].set_outage(Some(Fault::Refuse(StoreErrorKind::Ambiguous)));
    sleep(LEASE * 2).await;
    assert!(leader.is_leader());
    let whole = Majority::of(operator).unwrap();
    let seen = whole.get().await.unwrap().unwrap().record;
    ours[1].set_outage(Some(Fault::Hang));
    let first = stored(&stores[0]).await.version;
    while stored(&stores[0]).await.version == first {
        sleep(RETRY / 8).await;
    }
    let refused = request_transfer(&whole, &seen, "b").await.unwrap_err();
    assert!(with_causes(&refused).contains("its parts do not show one write yet"), "{refused}");
    ours[1].set_outage(None);
    while request_transfer(&whole, &seen, "b").await.is_err() {
        sleep(RETRY).await;
    }
    let asked = Instant::now();
    while !next.is_leader() {
        next.changed().await.unwrap();
    }
    assert!(asked.elapsed() < RETRY * 5, "{:?}", asked.elapsed());
}

/// A part that the leader has released is not taken again by a request that comes late.
#[test]
fn a_leader_that_leaves_is_not_asked() {
    let mut operator = View::new("operator", names(), 2);
    let held = record("leader", "first");
    operator.show(&[(0, found(&held, "old 1")), (1, found(&held, "new 1"))].into()).unwrap();
    let (shown, _) =
        operator.show(&[(0, found(&held, "old 1")), (1, found(&record("", "left"), "new 2"))].into()).unwrap();
    let mut request = shown.unwrap();
    assert_eq!(request.record.holder_identity, "leader");
    request.record.preferred_holder = Some("better".to_owned());
    assert!(operator.plan(&request.record, Some(&request.version)).is_err());
}

/// Half of a renewal is committed, then the second half of a request that is late, and then an operator releases the
/// other lock.
#[test]
fn the_half_of_a_leader_asked_for_the_lease_blocks_both_locks() {
    let mut view = View::new("better", names(), 2);
    let (first, second) = (record("leader", "first"), record("leader", "second"));
    let mut request = first.clone();
    request.preferred_holder = Some("better".to_owned());
    view.show(&[(0, found(&first, "old 1")), (1, found(&first, "new 1"))].into()).unwrap();
    assert!(view.plan(&request, None).is_err());
    view.show(&[(0, found(&second, "old 2")), (1, found(&first, "new 1"))].into()).unwrap();
    let (shown, _) =
        view.show(&[(0, found(&record("", "by hand"), "old 3")), (1, found(&request, "new 2"))].into()).unwrap();
    let shown = shown.unwrap().record;
    assert_eq!((&*shown.holder_identity, shown.lease_duration), ("leader", LEASE));
}

/// A request that has reached fewer parts than a leader needs is one part's claim if any part may be away (M9).
#[tokio::test(start_paused = true)]
async fn half_a_request_is_followed_only_where_all_parts_are_needed() {
    for (needed, reached, is_followed) in [(2, 1, false), (2, 2, true), (2, 3, true), (3, 1, true), (3, 2, true)] {
        for first in 0..3 {
            let stores = <[MemoryStore; 3]>::default();
            let locks = [0, 1, 2].map(|part| TestLock::new(&stores[part], "a"));
            let lock = Majority::of(locks).unwrap().needing(needed).unwrap();
            let (leader, _cancel, run) = run(builder(lock, Journal::default().callbacks()));
            sleep(RETRY * 3 + RETRY / 2).await;
            for part in 0..reached {
                let store = &stores[(first + part) % 3];
                let mut asked = stored(store).await.record;
                asked.preferred_holder = Some("b".to_owned());
                plant(store, &asked).await;
            }
            // A part that has refused a renewal is read with the next one, and written with the one after it.
            sleep(RETRY * 4).await;
            assert_eq!(leader.is_leader(), !is_followed, "{needed} needed, {reached} reached from {first}");
            if is_followed {
                assert_eq!(run.await.unwrap().reason().unwrap().name(), "transferred");
            } else {
                // The next renewals replace it, so that a later request in another part is no second half.
                let names = [0, 1, 2].map(|part| stored(&stores[part]));
                for found in futures_util::future::join_all(names).await {
                    assert_eq!(found.record.preferred_holder, None, "{first}");
                }
            }
        }
    }
}
