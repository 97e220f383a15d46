//! A store that refuses the writes that it has to accept: no candidate can lead, and every candidate reports the
//! reason.

use leaderelection::handle::Operation;
use leaderelection::{Elector, MemoryStore, StoreErrorKind};
use tokio::time::{sleep, timeout};
use tracing::Level;

use crate::support::{
    DEADLINE, Fault, Journal, LEASE, Op, TestLock, elector, logged, plant, record, spawn_run, stored,
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
