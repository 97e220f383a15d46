//! The reason that `lost` returns: that of the outcome, and at once.

use leaderelection::{Elector, LeaderCallbacks, LeaderHandle, MemoryStore, StoreErrorKind, TermEndReason};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::support::{Fault, LEASE, TestLock, elector, plant, record, spawn_run};

/// A leader's surroundings.
struct Stage {
    store: MemoryStore,
    lock: TestLock,
    handle: LeaderHandle,
    cancel: CancellationToken,
}

/// Lets a leader lose its term by `end`, and returns the reasons that `lost` and the run name.
async fn ended_by(end: impl AsyncFnOnce(&Stage)) -> (TermEndReason, Option<TermEndReason>) {
    let store = MemoryStore::new();
    let lock = TestLock::new(&store, "a");
    let elector = elector(lock.clone(), LeaderCallbacks::new());
    let mut handle = elector.handle();
    let (cancel, running) = spawn_run(elector);
    let leadership = handle.elected().await.unwrap();
    assert_eq!(leadership.end_reason(), None);
    end(&Stage { store, lock, handle, cancel }).await;
    let lost = timeout(LEASE, leadership.lost()).await.expect("the term ends");
    assert_eq!(leadership.end_reason(), Some(&lost), "later questions have the same answer");
    (lost, running.await.unwrap().reason().cloned())
}

#[tokio::test(start_paused = true)]
async fn lost_returns_the_reason_that_the_run_names() {
    let same = |reason: TermEndReason| (reason.clone(), Some(reason));
    let cancelled = ended_by(async |stage| stage.cancel.cancel()).await;
    assert_eq!(cancelled, same(TermEndReason::Cancelled));
    let stepped_down = ended_by(async |stage| assert!(stage.handle.step_down())).await;
    assert_eq!(stepped_down, same(TermEndReason::SteppedDown));
    let transferred = ended_by(async |stage| stage.handle.transfer_to("b").unwrap()).await;
    assert_eq!(transferred, same(TermEndReason::Transferred { to: "b".to_owned() }));
    let outage = Some(Fault::Refuse(StoreErrorKind::Rejected));
    let not_renewed = ended_by(async |stage| stage.lock.set_outage(outage)).await;
    assert_eq!(not_renewed, same(TermEndReason::RenewDeadline));
    let usurper = record("b", LEASE, 7);
    let taken_over = ended_by(async |stage| drop(plant(&stage.store, &usurper).await)).await;
    assert_eq!(taken_over, same(TermEndReason::TakenOver { by: "b".to_owned() }));
}

#[tokio::test(start_paused = true)]
async fn a_command_from_this_process_tells_its_reason_before_the_elector_runs() {
    ended_by(async |stage| {
        let leadership = stage.handle.leadership().expect("it leads");
        leadership.step_down();
        assert_eq!(leadership.end_reason(), Some(&TermEndReason::SteppedDown));
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_dropped_election_and_work_that_panics_have_reasons_of_their_own() {
    let (seen, mut views) = tokio::sync::mpsc::unbounded_channel();
    let dropped = elector(TestLock::new(&MemoryStore::new(), "a"), LeaderCallbacks::new());
    let mut handle = dropped.handle();
    let (_cancel, running) = spawn_run(dropped);
    let leadership = handle.elected().await.unwrap();
    running.abort();
    assert_eq!(timeout(LEASE, leadership.lost()).await, Ok(TermEndReason::Cancelled));

    let panics = LeaderCallbacks::new().on_start_leading(move |leadership| {
        seen.send(leadership).unwrap();
        async { panic!("on purpose") }
    });
    let (_cancel, running) = spawn_run(elector(TestLock::new(&MemoryStore::new(), "a"), panics));
    let leadership = views.recv().await.unwrap();
    assert_eq!(timeout(LEASE, leadership.lost()).await, Ok(TermEndReason::WorkPanicked));
    assert_eq!(running.await.unwrap().reason(), Some(&TermEndReason::WorkPanicked));
}
