//! A store that refuses the writes that it has to accept: no candidate can lead, and every candidate reports the
//! reason.

use std::time::Duration;

use leaderelection::handle::Operation;
use leaderelection::{Elector, MemoryStore, StoreErrorKind};
use tokio::time::{Instant, sleep, timeout};
use tracing::Level;

use crate::support::{
    DEADLINE, Fault, Journal, LEASE, Op, RETRY, TestLock, elector, logged, plant, record, spawn_run, stored,
};

const REFUSED: Fault = Fault::Refuse(StoreErrorKind::Conflict);

#[tokio::test(start_paused = true)]
async fn a_leader_whose_renewals_are_refused_in_vain_is_told() {
    let store = MemoryStore::new();
    let elector = elector(TestLock::new(&store, "a").with_every(Op::Update, REFUSED), Journal::default().callbacks());
    let mut handle = elector.handle();
    let _running = spawn_run(elector);
    let error = timeout(DEADLINE, handle.next_error()).await.unwrap().unwrap();
    assert_eq!((error.kind, error.operation), (StoreErrorKind::Fatal, Operation::Update));
    assert!(error.message.contains("the record still has the version"), "{}", error.message);
    assert!(error.message.contains("`leaderelect probe`"), "{}", error.message);
    assert!(handle.is_leader(), "until its deadline");
}

#[tokio::test(start_paused = true)]
async fn a_candidate_whose_takeovers_or_creates_are_refused_in_vain_is_told() {
    for (op, operation) in [(Op::Update, Operation::Update), (Op::Create, Operation::Create)] {
        let store = MemoryStore::new();
        if op == Op::Update {
            plant(&store, &record("dead", LEASE, 3)).await;
        }
        let elector = elector(TestLock::new(&store, "a").with_every(op, REFUSED), Journal::default().callbacks());
        let mut handle = elector.handle();
        let _running = spawn_run(elector);
        let error = timeout(LEASE * 2, handle.next_error()).await.unwrap().unwrap();
        assert_eq!((error.kind, error.operation), (StoreErrorKind::Fatal, operation), "{}", error.message);
    }
}

#[tokio::test(start_paused = true)]
async fn a_candidate_whose_writes_are_rejected_polls_like_a_follower() {
    let store = MemoryStore::new();
    plant(&store, &record("", LEASE, 3)).await;
    let lock = TestLock::new(&store, "a").with_every(Op::Update, Fault::Refuse(StoreErrorKind::Fatal));
    let elector = elector(lock.clone(), Journal::default().callbacks());
    let handle = elector.handle();
    let _running = spawn_run(elector);
    let longest_poll = RETRY.mul_f64(2.2) + Duration::from_millis(1);
    let started = Instant::now();
    while started.elapsed() < LEASE * 20 {
        sleep(RETRY).await;
        let seen = handle.status().observed.map(|lease| lease.checked_for);
        assert!(seen.is_some_and(|age| age <= longest_poll), "{seen:?}");
    }
    let writes = lock.take_ops().into_iter().filter(|op| *op == Op::Update).count();
    assert!((10..=30).contains(&writes), "{writes} writes in 150 retry periods: each pause has 5 to 11");

    plant(&store, &record("b", LEASE, 4)).await;
    sleep(longest_poll).await;
    assert_eq!(handle.leader().as_deref(), Some("b"));
}

#[test]
fn it_is_logged_less_and_less_often() {
    let store = MemoryStore::new();
    let errors = logged(Level::ERROR, async || {
        plant(&store, &record("dead", LEASE, 3)).await;
        let lock = TestLock::new(&store, "a").with_every(Op::Update, REFUSED);
        let _running = spawn_run(elector(lock, Journal::default().callbacks()));
        sleep(LEASE * 100).await;
        assert_eq!(stored(&store).await.record.holder_identity, "dead");
    });
    assert!((5..12).contains(&errors.len()), "{errors:#?}");
    assert!(errors[0].contains("rejected the condition of 3 writes in a row"), "{errors:#?}");
}
