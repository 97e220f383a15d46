//! One attempt to lead.

use std::time::Duration;

use leaderelection::{Elector, LeaderCallbacks, MemoryStore, StoreErrorKind, TryLeadError};
use tokio::time::{Instant, sleep, timeout};

use super::MOMENT;
use crate::support::{Fault, LEASE, Op, RETRY, TestLock, builder, elector, plant, record, stored};

#[tokio::test(start_paused = true)]
async fn a_free_lease_is_led_after_a_read_and_a_write() {
    let store = MemoryStore::new();
    let lock = TestLock::new(&store, "a");
    let elector = elector(lock.clone(), LeaderCallbacks::new());
    let term = elector.try_lead().await.unwrap();
    assert_eq!((term.fencing_token(), lock.take_ops()), (1.into(), vec![Op::Get, Op::Create]));
    sleep(LEASE * 2).await;
    assert!(term.is_valid());
    term.release().await;
    assert!(stored(&store).await.record.is_released());
    assert_eq!(elector.try_lead().await.unwrap().fencing_token(), 2, "an attempt does not stand back");
}

#[tokio::test(start_paused = true)]
async fn an_attempt_names_the_leader_and_waits_for_nothing() {
    let store = MemoryStore::new();
    plant(&store, &record("b", LEASE, 7)).await;
    let lock = TestLock::new(&store, "a");
    let (elector, began) = (elector(lock.clone(), LeaderCallbacks::new()), Instant::now());
    let led = || TryLeadError::Led { leader: "b".to_owned() };
    assert_eq!(elector.try_lead().await.unwrap_err(), led());
    assert_eq!((lock.take_ops(), began.elapsed()), (vec![Op::Get], Duration::ZERO));
    // Nobody renews, so an attempt after the lease wins. Attempts before do not begin the wait anew.
    sleep(LEASE / 2).await;
    assert_eq!(elector.try_lead().await.unwrap_err(), led());
    sleep(LEASE / 2 + RETRY).await;
    let term = elector.try_lead().await.unwrap();
    assert_eq!(term.fencing_token(), 8);
    drop(term);
}

#[tokio::test(start_paused = true)]
async fn an_attempt_tells_what_the_store_said() {
    let store = MemoryStore::new();
    let lock = TestLock::new(&store, "a").with_fault(Op::Get, 0, Fault::Refuse(StoreErrorKind::Fatal));
    let elector = elector(lock, LeaderCallbacks::new());
    let Err(TryLeadError::Failed(error)) = elector.try_lead().await else { panic!("the store refused the read") };
    assert_eq!(error.kind, StoreErrorKind::Fatal);
    plant(&store, &record("b", LEASE, 7)).await;
    let led = elector.try_lead().await.unwrap_err();
    assert_eq!(led, TryLeadError::Led { leader: "b".to_owned() }, "the next attempt tells of no earlier failure");
}

#[tokio::test(start_paused = true)]
async fn an_attempt_whose_write_is_not_answered_learns_its_outcome() {
    for kind in [StoreErrorKind::Ambiguous, StoreErrorKind::Conflict] {
        let store = MemoryStore::new();
        let lock = TestLock::new(&store, "a").with_fault(Op::Create, 0, Fault::ApplyThen(kind));
        let elector = elector(lock, LeaderCallbacks::new());
        let term = elector.try_lead().await.unwrap();
        assert_eq!(term.fencing_token(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn an_attempt_lets_others_go_first_and_says_so() {
    let store = MemoryStore::new();
    let mut free = record("b", LEASE, 7);
    (free.holder_identity, free.preferred_holder) = (String::new(), Some("c".to_owned()));
    plant(&store, &free).await;
    let config = builder(TestLock::new(&store, "a"), LeaderCallbacks::new()).build().unwrap();
    let elector = leaderelection::DefaultLeaderElector::new(config);
    let attempt = timeout(MOMENT, elector.try_lead()).await.expect("waits for nothing");
    assert_eq!(attempt.unwrap_err(), TryLeadError::NotWon);
}
