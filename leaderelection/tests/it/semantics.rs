//! client-go's semantics, by the operations that reach the store and the callbacks that come back.

use std::time::Duration;

use leaderelection::{Elector, MemoryStore, StoreErrorKind, TermEndReason};
use tokio::time::{Instant, sleep, timeout};

use crate::support::{
    DEADLINE, Fault, Journal, LEASE, Op, RETRY, TestLock, builder, elector, plant, record, spawn_run, stored,
};

const MOMENT: Duration = Duration::from_millis(1);

#[tokio::test(start_paused = true)]
async fn the_first_create_has_token_1() {
    let store = MemoryStore::new();
    let lock = TestLock::new(&store, "a");
    let journal = Journal::default();
    let _running = spawn_run(elector(lock.clone(), journal.callbacks()));
    sleep(MOMENT).await;

    assert_eq!(lock.ops(), [Op::Get, Op::Create]);
    assert_eq!(journal.entries(), ["start 1"]);
    let record = stored(&store).await.record;
    assert_eq!((record.holder_identity.as_str(), record.leader_transitions), ("a", 1));
    assert_eq!(record.lease_duration, LEASE);
    assert!(record.acquire_time.is_some() && record.acquire_time == record.renew_time);
}

#[tokio::test(start_paused = true)]
async fn empty_holder_is_taken_at_once_with_one_more_transition() {
    let store = MemoryStore::new();
    plant(&store, &record("", Duration::from_secs(1), 6)).await;
    let lock = TestLock::new(&store, "a");
    let journal = Journal::default();
    let _running = spawn_run(elector(lock.clone(), journal.callbacks()));
    sleep(MOMENT).await;

    assert_eq!(lock.ops(), [Op::Get, Op::Update]);
    assert_eq!(journal.entries(), ["start 7"]);
    assert_eq!(stored(&store).await.record.leader_transitions, 7);
}

#[tokio::test(start_paused = true)]
async fn held_and_fresh_lease_is_one_get_and_no_write() {
    let store = MemoryStore::new();
    let version = plant(&store, &record("b", LEASE, 3)).await;
    let lock = TestLock::new(&store, "a");
    let elector = elector(lock.clone(), Journal::default().callbacks());
    let handle = elector.handle();
    let _running = spawn_run(elector);
    sleep(RETRY - MOMENT).await;

    assert_eq!(lock.ops(), [Op::Get]);
    assert_eq!(handle.leader().as_deref(), Some("b"));
    assert!(!handle.is_leader());
    assert_eq!(stored(&store).await.version, version);
}

#[tokio::test(start_paused = true)]
async fn the_records_own_duration_governs() {
    for lease in [Duration::from_secs(40), Duration::from_secs(5)] {
        let store = MemoryStore::new();
        plant(&store, &record("b", lease, 3)).await;
        let elector = elector(TestLock::new(&store, "a"), Journal::default().callbacks());
        let mut handle = elector.handle();
        let start = Instant::now();
        let _running = spawn_run(elector);
        while !handle.is_leader() {
            handle.changed().await.unwrap();
        }
        let waited = start.elapsed();
        assert!(waited >= lease, "took a lease of {lease:?} after {waited:?}");
        assert!(waited <= lease + RETRY / 10 + MOMENT * 2, "woke {waited:?} after a lease of {lease:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn every_renewal_of_the_holder_starts_the_wait_anew() {
    let store = MemoryStore::new();
    plant(&store, &record("b", LEASE, 3)).await;
    let elector = elector(TestLock::new(&store, "a"), Journal::default().callbacks());
    let handle = elector.handle();
    let _running = spawn_run(elector);
    for n in 0..10 {
        sleep(LEASE - RETRY * 3).await;
        let mut renewed = record("b", LEASE, 3);
        renewed.write_id = Some(format!("renewal {n}"));
        plant(&store, &renewed).await;
    }
    assert!(!handle.is_leader());
    assert_eq!(stored(&store).await.record.holder_identity, "b");
}

#[tokio::test(start_paused = true)]
async fn a_healthy_renewal_is_one_update_and_no_get() {
    let store = MemoryStore::new();
    let lock = TestLock::new(&store, "a");
    let _running = spawn_run(elector(lock.clone(), Journal::default().callbacks()));
    sleep(MOMENT).await;
    let acquired = stored(&store).await.record;
    lock.take_ops();
    sleep(RETRY * 5).await;

    assert_eq!(lock.ops(), [Op::Update; 5]);
    let renewed = stored(&store).await.record;
    assert_eq!(renewed.leader_transitions, acquired.leader_transitions);
    assert_eq!(renewed.acquire_time, acquired.acquire_time);
    assert!(renewed.renew_time > acquired.renew_time);
    assert_ne!(renewed.write_id, acquired.write_id);
}

#[tokio::test(start_paused = true)]
async fn a_conflict_on_renewal_is_read_and_another_holder_ends_the_term() {
    let store = MemoryStore::new();
    let lock = TestLock::new(&store, "a");
    let journal = Journal::default();
    let (_cancel, running) = spawn_run(elector(lock.clone(), journal.callbacks()));
    sleep(MOMENT).await;
    lock.take_ops();
    plant(&store, &record("b", LEASE, 1)).await;
    let outcome = timeout(RETRY + MOMENT, running).await.expect("stops at the next renewal").unwrap();

    assert_eq!(lock.ops(), [Op::Update, Op::Get]);
    assert_eq!(outcome.reason(), Some(&TermEndReason::TakenOver { by: "b".to_owned() }));
    assert_eq!(journal.entries(), ["start 1", "work ended", "stop"]);
    assert_eq!(stored(&store).await.record, record("b", LEASE, 1));
}

#[tokio::test(start_paused = true)]
async fn release_keeps_transitions_and_leaves_the_holder_empty() {
    let store = MemoryStore::new();
    plant(&store, &record("", Duration::from_secs(1), 6)).await;
    let lock = TestLock::new(&store, "a");
    let journal = Journal::default();
    let config = builder(lock.clone(), journal.callbacks()).release_on_cancel(true).build().unwrap();
    let (cancel, running) = spawn_run(leaderelection::DefaultLeaderElector::new(config));
    sleep(MOMENT).await;
    lock.take_ops();
    cancel.cancel();
    let outcome = running.await.unwrap();

    assert_eq!(outcome.reason(), Some(&TermEndReason::Cancelled));
    assert_eq!(outcome.fencing_token(), Some(7.into()));
    assert_eq!(lock.ops(), [Op::Update]);
    assert_eq!(journal.entries(), ["start 7", "work ended", "stop"]);
    let released = stored(&store).await.record;
    assert_eq!((released.holder_identity.as_str(), released.leader_transitions), ("", 7));
    assert_eq!(released.lease_duration, Duration::from_secs(1));
}

#[tokio::test(start_paused = true)]
async fn without_release_on_cancel_the_lease_is_left_to_expire() {
    let store = MemoryStore::new();
    let lock = TestLock::new(&store, "a");
    let (cancel, running) = spawn_run(elector(lock.clone(), Journal::default().callbacks()));
    sleep(MOMENT).await;
    cancel.cancel();
    running.await.unwrap();

    assert_eq!(lock.ops(), [Op::Get, Op::Create]);
    assert_eq!(stored(&store).await.record.holder_identity, "a");
}

#[tokio::test(start_paused = true)]
async fn release_after_a_lost_lease_writes_nothing() {
    let store = MemoryStore::new();
    let lock = TestLock::new(&store, "a");
    let config = builder(lock.clone(), Journal::default().callbacks()).release_on_cancel(true).build().unwrap();
    let (_cancel, running) = spawn_run(leaderelection::DefaultLeaderElector::new(config));
    sleep(MOMENT).await;
    lock.take_ops();
    let version = plant(&store, &record("b", LEASE, 1)).await;
    running.await.unwrap();

    assert_eq!(lock.ops(), [Op::Update, Op::Get]);
    assert_eq!(stored(&store).await.version, version);
}

#[tokio::test(start_paused = true)]
async fn a_renewal_committed_despite_an_error_keeps_the_leadership() {
    use StoreErrorKind::{Ambiguous, Conflict, Fatal, Rejected};
    let faults = [
        Fault::ApplyThen(Ambiguous),
        Fault::ApplyThen(Conflict),
        Fault::ApplyThen(Rejected),
        Fault::ApplyThen(Fatal),
        Fault::ApplyThenHang,
    ];
    for fault in faults {
        let store = MemoryStore::new();
        let lock = TestLock::new(&store, "a").with_fault(Op::Update, 1, fault);
        let journal = Journal::default();
        let elector = elector(lock.clone(), journal.callbacks());
        let handle = elector.handle();
        let _running = spawn_run(elector);
        sleep(LEASE * 4).await;

        assert!(handle.is_leader(), "{fault:?}");
        assert_eq!(journal.entries(), ["start 1"], "{fault:?}");
        assert_eq!(handle.fencing_token(), Some(1.into()), "{fault:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn renewals_that_are_not_applied_lose_the_leadership_by_the_deadline() {
    for kind in [StoreErrorKind::Ambiguous, StoreErrorKind::Rejected, StoreErrorKind::Fatal] {
        for fault in [Fault::Refuse(kind), Fault::Hang] {
            let store = MemoryStore::new();
            let lock = TestLock::new(&store, "a");
            let journal = Journal::default();
            let elector = elector(lock.clone(), journal.callbacks());
            let handle = elector.handle();
            let start = Instant::now();
            let (_cancel, running) = spawn_run(elector);
            sleep(MOMENT).await;
            lock.set_outage(Some(fault));
            sleep(DEADLINE - MOMENT * 2).await;
            assert!(handle.is_leader(), "{fault:?}");
            let outcome = running.await.unwrap();

            assert!(!handle.is_leader());
            assert_eq!(outcome.reason(), Some(&TermEndReason::RenewDeadline), "{fault:?}");
            assert!(start.elapsed() <= DEADLINE + MOMENT * 2, "{fault:?} after {:?}", start.elapsed());
            assert_eq!(journal.entries(), ["start 1", "work ended", "stop"], "{fault:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_won_acquisition_without_a_good_answer_makes_a_leader() {
    use StoreErrorKind::{Ambiguous, Conflict, Fatal, Rejected};
    for (op, seed) in [(Op::Create, None), (Op::Update, Some(record("", Duration::from_secs(1), 4)))] {
        for kind in [Ambiguous, Conflict, Rejected, Fatal] {
            let store = MemoryStore::new();
            if let Some(seed) = &seed {
                plant(&store, seed).await;
            }
            let lock = TestLock::new(&store, "a").with_fault(op, 0, Fault::ApplyThen(kind));
            let elector = elector(lock.clone(), Journal::default().callbacks());
            let mut handle = elector.handle();
            let start = Instant::now();
            let _running = spawn_run(elector);
            while !handle.is_leader() {
                handle.changed().await.unwrap();
            }
            let token = seed.as_ref().map_or(1, |seed| seed.leader_transitions + 1);
            assert_eq!(handle.fencing_token(), Some((token).into()), "{op:?} {kind:?}");
            // Not a lease behind itself; a refusal for good is tried again slowly.
            let bound = if kind == Fatal { RETRY * 11 } else { RETRY };
            assert!(start.elapsed() <= bound, "{op:?} {kind:?} took {:?}", start.elapsed());
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_leader_and_a_follower_make_one_request_per_period() {
    let store = MemoryStore::new();
    let (leader, follower) = (TestLock::new(&store, "a"), TestLock::new(&store, "b"));
    let _leading = spawn_run(elector(leader.clone(), Journal::default().callbacks()));
    sleep(MOMENT).await;
    let _following = spawn_run(elector(follower.clone(), Journal::default().callbacks()));
    sleep(MOMENT).await;
    leader.take_ops();
    follower.take_ops();
    let hour = Duration::from_secs(3600);
    sleep(hour).await;

    assert_eq!(leader.ops(), vec![Op::Update; 1800]);
    let reads = follower.take_ops();
    assert!(reads.iter().all(|op| *op == Op::Get));
    // A pause is one retry period and up to 1.2 more: 4.4 s at most, 3.2 s on average.
    let fewest = hour.as_secs_f64() / 4.4;
    let most = hour.as_secs_f64() / 2.0;
    let count = reads.len() as f64;
    assert!((fewest..=most).contains(&count), "{count} reads");
    assert!((count - hour.as_secs_f64() / 3.2).abs() < 80.0, "{count} reads");
}
