//! The lease that a better candidate takes back (rule 24).

use std::time::Duration;

use leaderelection::handle::Change;
use leaderelection::{MemoryStore, StoreErrorKind, TermEndReason};
use tokio::time::{sleep, timeout};

use crate::rank::Node;
use crate::support::{Fault, LEASE, Op, RETRY, logged, plant, record, stored};

const SECOND: Duration = Duration::from_secs(1);

/// The longest time from a request to the next leader: the leader's next renewal, and the candidate's next read.
const HAND_OVER: Duration = RETRY.saturating_mul(4);

fn best(store: &MemoryStore) -> Node {
    Node::start_with(store, "a", |builder| builder.failback(true))
}

/// A leader of rank 1.
async fn worse(store: &MemoryStore) -> Node {
    let mut worse = Node::start(store, "b", 1);
    worse.leads().await;
    worse
}

#[tokio::test(start_paused = true)]
async fn a_better_candidate_leads_after_its_failback_delay() {
    let store = MemoryStore::new();
    let other = worse(&store).await;
    sleep(LEASE * 2).await;
    let mut best = best(&store);
    let took = best.leads().await;
    assert!(took >= LEASE && took <= LEASE + HAND_OVER, "{took:?}");
    assert!(!other.handle.is_leader());
    let ends = other.handle.transitions().into_iter().filter_map(|transition| match transition.change {
        Change::StoppedLeading { reason, .. } => Some(reason),
        _ => None,
    });
    assert_eq!(ends.collect::<Vec<_>>(), [TermEndReason::Transferred { to: "a".to_owned() }]);
}

#[tokio::test(start_paused = true)]
async fn a_leader_forgets_the_requests_when_it_has_led_for_128_leases() {
    let store = MemoryStore::new();
    let _other = worse(&store).await;
    let mut best = best(&store);
    best.leads().await;
    sleep(LEASE * 128 - RETRY).await;
    assert_eq!(stored(&store).await.record.failbacks, 1);
    sleep(RETRY * 3).await;
    assert_eq!(stored(&store).await.record.failbacks, 0);
    assert!(best.handle.is_leader());
}

#[tokio::test(start_paused = true)]
async fn nobody_asks_without_the_setting_or_without_a_better_rank() {
    for (rank, failback) in [(0, false), (1, true), (2, true)] {
        let store = MemoryStore::new();
        let leader = worse(&store).await;
        let candidate = Node::start_with(&store, "a", |builder| builder.rank(rank).failback(failback));
        sleep(LEASE * 20).await;
        assert!(leader.handle.is_leader());
        assert!(candidate.lock.ops().iter().all(|op| *op == Op::Get), "rank {rank}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_preferred_candidate_that_restarts_every_few_seconds_never_asks() {
    let store = MemoryStore::new();
    let other = worse(&store).await;
    for _ in 0..100 {
        let best = best(&store);
        sleep(SECOND * 7).await;
        best.crash();
    }
    assert!(other.handle.is_leader());
    assert_eq!(stored(&store).await.record.leader_transitions, 1);
}

/// A candidate that lives long enough to take the lease back, and crashes soon afterwards, takes it back ever more rarely.
#[tokio::test(start_paused = true)]
async fn each_request_doubles_the_delay_across_restarts() {
    let store = MemoryStore::new();
    let mut other = worse(&store).await;
    let mut waits = Vec::new();
    for _ in 0..9 {
        let mut best = best(&store);
        waits.push(best.leads().await);
        sleep(SECOND * 3).await;
        best.crash();
        other.leads().await;
    }
    for (number, wait) in waits.iter().enumerate() {
        let delay = LEASE * (1 << number.min(6));
        assert!(*wait >= delay && *wait <= delay + HAND_OVER, "{number}: {wait:?}, {waits:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_failed_read_restarts_the_failback_delay() {
    let store = MemoryStore::new();
    let _other = worse(&store).await;
    let mut best = best(&store);
    sleep(LEASE - SECOND).await;
    best.lock.set_outage(Some(Fault::Refuse(StoreErrorKind::Rejected)));
    sleep(SECOND * 5).await;
    best.lock.set_outage(None);
    assert!(best.leads().await >= LEASE);
}

/// Plants a free lock, for which candidates have asked this often.
async fn asked(store: &MemoryStore, failbacks: u8) {
    let mut record = record("", LEASE, 0);
    record.failbacks = failbacks;
    plant(store, &record).await;
}

#[tokio::test(start_paused = true)]
async fn a_failed_read_costs_one_lease_of_a_long_failback_delay() {
    let store = MemoryStore::new();
    asked(&store, 3).await;
    let _other = worse(&store).await;
    let mut best = best(&store);
    let began = tokio::time::Instant::now();
    sleep(LEASE * 5).await;
    best.lock.set_outage(Some(Fault::Refuse(StoreErrorKind::Rejected)));
    let reads = best.lock.ops().len();
    while best.lock.ops().len() == reads {
        sleep(RETRY / 10).await;
    }
    best.lock.set_outage(None);
    best.leads().await;
    let took = began.elapsed();
    assert!(took >= LEASE * 9 && took <= LEASE * 9 + HAND_OVER * 2, "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn a_lease_is_taken_back_although_one_read_in_twenty_fails() {
    let store = MemoryStore::new();
    asked(&store, 6).await;
    let _other = worse(&store).await;
    let mut best = best(&store);
    for read in 1..100 {
        let fault = Fault::Refuse(StoreErrorKind::Ambiguous);
        best.lock = best.lock.with_fault(Op::Get, read * 20, fault);
    }
    let took = timeout(LEASE * 100, best.leads()).await.unwrap();
    assert!(took >= LEASE * 64, "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn the_time_of_a_cool_down_does_not_count() {
    let store = MemoryStore::new();
    let mut best = Node::start_with(&store, "a", |builder| builder.failback(true).step_down_cool_down(LEASE * 3));
    best.leads().await;
    let mut other = Node::start(&store, "b", 1);
    assert!(best.handle.step_down());
    other.leads().await;
    let took = best.leads().await;
    assert!(took >= LEASE * 4 - HAND_OVER && took <= LEASE * 4 + HAND_OVER, "{took:?}");
}

#[test]
fn a_request_is_logged_once() {
    let events = logged(tracing::Level::INFO, async || {
        let store = MemoryStore::new();
        let _other = worse(&store).await;
        best(&store).leads().await;
    });
    let asked = events.iter().filter(|event| event.contains("asked the leader, whose rank is worse, to hand over"));
    assert_eq!(asked.count(), 1, "{events:?}");
}
