//! Candidates of other parts (rule M8).

use std::collections::BTreeSet;

use leaderelection::admin::force_release;
use leaderelection::lock::LockParts;
use leaderelection::{
    LeaderElectionConfigBuilder, LeaderElectionRecord, Majority, MemoryLock, MemoryStore, ObjectStoreBasedLock as _,
    StoreErrorKind,
};
use tokio::time::sleep;

use super::run;
use crate::support::{Journal, LEASE, builder};

fn part(store: &MemoryStore, key: &str) -> MemoryLock {
    MemoryLock::new(store.clone(), key, "candidate")
}

/// The lock of the parts whose keys are the letters of `keys`.
fn lock(store: &MemoryStore, keys: &str, needed: usize) -> Majority {
    let keys = keys.chars().map(String::from);
    Majority::of(keys.map(|key| part(store, &key))).unwrap().needing(needed).unwrap()
}

fn config(store: &MemoryStore, keys: &str, needed: usize) -> LeaderElectionConfigBuilder {
    builder(lock(store, keys, needed), Journal::default().callbacks()).release_on_cancel(true)
}

/// Runs one candidate until its end, so that the parts show its term.
async fn lead_once(config: LeaderElectionConfigBuilder) {
    let (handle, cancel, run) = run(config);
    sleep(LEASE * 2).await;
    assert!(handle.is_leader());
    cancel.cancel();
    run.await.unwrap();
}

/// All sets of `size` of these parts.
fn sets(of: &[String], size: usize) -> Vec<BTreeSet<&String>> {
    let all = (0..1_u32 << of.len()).filter(|set| set.count_ones() as usize == size);
    all.map(|set| of.iter().enumerate().filter(|(at, _)| set & (1 << at) != 0).map(|(_, name)| name).collect())
        .collect()
}

#[test]
fn parts_fit_if_every_two_quorums_have_one_in_common() {
    let names = ["a", "b", "c", "d", "e"].map(str::to_owned);
    let locks = || {
        (1..=5).flat_map(|size| sets(&names, size)).flat_map(|of| {
            let of: Vec<String> = of.into_iter().cloned().collect();
            (of.len() / 2 + 1..=of.len()).map(move |needed| LockParts::new(needed, of.clone(), 0))
        })
    };
    for (one, other) in locks().flat_map(|one| locks().map(move |other| (one.clone(), other))) {
        let others = sets(&other.of, other.needed);
        let exclude = sets(&one.of, one.needed).iter().all(|one| others.iter().all(|other| !one.is_disjoint(other)));
        assert_eq!(one.suit(&other), exclude, "{one} and {other}");
    }
}

#[test]
fn any_number_of_needed_parts_is_compared() {
    let [usual, more] = [2, usize::MAX].map(|needed| LockParts::new(needed, vec!["a".to_owned(), "b".to_owned()], 0));
    assert!(usual.suit(&more) && more.suit(&usual), "nobody gets more parts than there are");
}

#[test]
fn parts_in_another_order_do_not_suit() {
    let of = |keys: &str| LockParts::new(2, keys.chars().map(String::from).collect(), 0);
    assert!(!of("abc").suit(&of("acb")) && !of("abc").suit(&of("bca")));
    // Two servers can give their objects the same name.
    assert!(of("aab").suit(&of("aab")) && !of("aab").suit(&of("aba")));
}

#[tokio::test(start_paused = true)]
async fn a_candidate_of_other_parts_waits_and_tells_why() {
    let store = MemoryStore::new();
    let (leader, cancel, ended) = run(config(&store, "abc", 2));
    sleep(LEASE * 2).await;
    assert!(leader.is_leader());
    let record = part(&store, "a").get().await.unwrap().unwrap().record;
    let parts = record.lock_parts().unwrap();
    assert_eq!((parts.needed, parts.of.len(), parts.term), (2, 3, record.leader_transitions));
    for (keys, needed, problem) in [
        (
            "ade",
            2,
            "need 2 of memory:a, memory:b, memory:c wrote its record, and this candidate needs 2 of memory:a, memory:d, memory:e",
        ),
        ("acb", 2, "this candidate needs 2 of memory:a, memory:c, memory:b"),
    ] {
        let error = lock(&store, keys, needed).get().await.unwrap_err();
        assert_eq!(error.kind(), StoreErrorKind::Unreadable);
        assert!(error.in_full().contains(problem), "{}", error.in_full());
    }
    let others = [config(&store, "ade", 2), builder(part(&store, "b"), Journal::default().callbacks())];
    let others = others.map(run);
    sleep(LEASE * 2).await;
    // The claim outlives the term, because a leader of these parts need not have told each of them.
    cancel.cancel();
    ended.await.unwrap();
    sleep(LEASE * 4).await;
    assert!(others.iter().all(|(handle, ..)| !handle.is_leader()));
}

#[tokio::test(start_paused = true)]
async fn a_majority_waits_beside_a_leader_of_one_part() {
    let store = MemoryStore::new();
    let (alone, _cancel, _ended) = run(builder(part(&store, "a"), Journal::default().callbacks()));
    sleep(LEASE).await;
    let error = lock(&store, "abc", 2).get().await.unwrap_err().in_full();
    assert!(error.contains("need 1 of memory:a wrote its record, and this candidate needs 2 of"), "{error}");
    let (most, ..) = run(config(&store, "abc", 2));
    sleep(LEASE * 4).await;
    assert!(alone.is_leader() && !most.is_leader());
}

#[tokio::test(start_paused = true)]
async fn rollouts_that_suit_change_all_parts() {
    let store = MemoryStore::new();
    lead_once(builder(part(&store, "a"), Journal::default().callbacks()).release_on_cancel(true)).await;
    for (keys, needed) in [("abc", 3), ("abc", 2), ("abcd", 3), ("abd", 2), ("abd", 3)] {
        lead_once(config(&store, keys, needed)).await;
    }
    lead_once(builder(part(&store, "b"), Journal::default().callbacks())).await;
}

#[tokio::test(start_paused = true)]
async fn an_operator_ends_the_claim_of_parts() {
    let store = MemoryStore::new();
    lead_once(config(&store, "abc", 2)).await;
    for key in ["a", "b", "c"] {
        let lock = part(&store, key);
        let seen = lock.get().await.unwrap().unwrap().record;
        assert!(seen.is_released() && seen.lock_parts().is_some());
        let after: LeaderElectionRecord = force_release(&lock, &seen).await.unwrap().after;
        assert_eq!((after.parts.as_ref(), after.leader_transitions), (None, seen.leader_transitions));
    }
    lead_once(config(&store, "ade", 2)).await;
}
