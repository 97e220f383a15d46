//! The views for code that does not lead: handles, streams, callbacks and health checks.

use std::future::pending;
use std::time::Duration;

use futures_util::StreamExt;
use leaderelection::clock::TokioClock;
use leaderelection::{DefaultLeaderElector, Elector, LeaderCallbacks, MemoryStore, StoreErrorKind};
use tokio::time::{advance, sleep};
use tracing::Level;

use crate::support::{
    DEADLINE, Fault, Journal, LEASE, RETRY, TestLock, builder, elector, logged, plant, record, spawn_run,
};

#[tokio::test(start_paused = true)]
async fn validity_is_a_comparison_with_the_clock_and_not_a_flag() {
    let store = MemoryStore::new();
    let elector = elector(TestLock::new(&store, "a"), LeaderCallbacks::new());
    let mut handle = elector.handle();
    let run = elector.run(pending());
    tokio::pin!(run);
    while !handle.is_leader() {
        tokio::select! {
            _ = &mut run => unreachable!("leads until it is cancelled"),
            changed = handle.changed() => changed.unwrap(),
        }
    }
    // The elector is polled no more, as if the process had been frozen.
    let leadership = handle.leadership().unwrap();
    let left = leadership.remaining();
    assert!(left <= DEADLINE);
    advance(left - Duration::from_nanos(1)).await;
    assert!(leadership.is_valid() && handle.is_leader() && handle.fencing_token().is_some());
    advance(Duration::from_nanos(1)).await;
    assert!(!leadership.is_valid() && !handle.is_leader() && handle.fencing_token().is_none());
    assert_eq!(leadership.remaining(), Duration::ZERO);

    // When the elector goes on, it notices the loss before it does anything else.
    let outcome = run.await.unwrap();
    assert_eq!(outcome.reason(), Some(&leaderelection::TermEndReason::RenewDeadline));
}

#[tokio::test(start_paused = true)]
async fn a_handle_names_us_only_while_we_lead() {
    let store = MemoryStore::new();
    let lock = TestLock::new(&store, "a");
    let elector = elector(lock.clone(), Journal::default().callbacks());
    let mut handle = elector.handle();
    let campaign = tokio::spawn(async move { elector.campaign(pending()).await });
    handle.elected().await.unwrap();
    assert_eq!((handle.leader().as_deref(), handle.holder().as_deref()), (Some("a"), Some("a")));

    lock.set_outage(Some(Fault::Refuse(StoreErrorKind::Ambiguous)));
    while handle.is_leader() {
        assert_eq!(handle.leader().as_deref(), Some("a"));
        handle.changed().await.unwrap();
    }
    sleep(LEASE * 3).await;
    let status = handle.status();
    assert_eq!((status.leader, status.holder.as_deref()), (None, Some("a")), "cut off from the lock");

    lock.set_outage(None);
    handle.elected().await.unwrap();
    assert_eq!(handle.leader().as_deref(), Some("a"));
    assert!(handle.step_down());
    assert_eq!((handle.leader(), handle.holder().as_deref()), (None, Some("a")), "the release is not written yet");
    campaign.abort();
}

#[tokio::test(start_paused = true)]
async fn a_handle_names_another_until_its_lease_has_expired() {
    for holder in ["b", "a"] {
        let store = MemoryStore::new();
        plant(&store, &record(holder, LEASE, 3)).await;
        let lock = TestLock::new(&store, "a");
        let elector = elector(lock.clone(), LeaderCallbacks::new());
        let mut handle = elector.handle();
        let _running = spawn_run(elector);
        handle.changed().await.unwrap();
        lock.set_outage(Some(Fault::Hang));
        // The name of an earlier process of ours would be taken for our own.
        let named = (holder == "b").then(|| "b".to_owned());
        assert_eq!(handle.leader(), named);
        advance(LEASE - Duration::from_nanos(1)).await;
        assert_eq!(handle.leader(), named);
        advance(Duration::from_nanos(1)).await;
        assert_eq!((handle.leader(), handle.holder().as_deref()), (None, Some(holder)));
        assert!(handle.observed().unwrap().has_expired());
    }
}

#[tokio::test(start_paused = true)]
async fn health_fails_just_past_the_lease_and_the_tolerated_delay() {
    let store = MemoryStore::new();
    let elector = elector(TestLock::new(&store, "a"), LeaderCallbacks::new());
    let health = elector.health_check(RETRY);
    assert_eq!(health.check(), Ok(()), "no leader, no complaint");
    let handle = elector.handle();
    {
        let run = elector.run(pending());
        tokio::pin!(run);
        while !handle.is_leader() {
            let _ = futures_util::poll!(&mut run);
            tokio::task::yield_now().await;
        }
        // The elector is stuck: it is not polled.
        advance(LEASE + RETRY).await;
        assert_eq!(health.check(), Ok(()), "exactly at the limit");
        advance(Duration::from_nanos(1)).await;
        let error = health.check().unwrap_err().to_string();
        assert!(error.contains("memory:lock") && error.contains("15s") && error.contains("2s"), "{error}");
    }
    assert_eq!(health.check(), Ok(()), "no term is open any more");
}

#[tokio::test(start_paused = true)]
async fn a_stream_tells_every_change() {
    let store = MemoryStore::new();
    plant(&store, &record("b", LEASE, 3)).await;
    let elector = elector(TestLock::new(&store, "a"), LeaderCallbacks::new());
    let handle = elector.handle();
    let mut stream = Box::pin(handle.into_stream());
    let (cancel, running) = spawn_run(elector);
    let first = stream.next().await.unwrap();
    assert_eq!((first.leader, first.fencing_token), (None, None));
    assert_eq!(stream.next().await.unwrap().leader.as_deref(), Some("b"));
    let leading = stream.next().await.unwrap();
    assert_eq!((leading.leader.as_deref(), leading.fencing_token), (Some("a"), Some(4.into())));
    assert!(leading.is_leader());
    cancel.cancel();
    assert!(!stream.next().await.unwrap().is_leader());
    running.await.unwrap();
    while let Some(status) = stream.next().await {
        assert!(!status.is_leader());
    }
}

#[test]
fn a_shared_identity_never_makes_two_leaders_and_is_reported() {
    let errors = logged(Level::ERROR, async || {
        let store = MemoryStore::new();
        let config = |seed| {
            let lock = TestLock::new(&store, "twin");
            let config = builder(lock, Journal::default().callbacks()).clock(TokioClock::new()).seed(seed);
            DefaultLeaderElector::new(config.build().unwrap())
        };
        let (first, second) = (config(1), config(2));
        let handles = [first.handle(), second.handle()];
        let _first = spawn_run(first);
        let _second = spawn_run(second);
        for _ in 0..1_000 {
            sleep(RETRY / 7).await;
            assert!(handles.iter().filter(|handle| handle.is_leader()).count() <= 1);
        }
        assert_eq!(handles.iter().filter(|handle| handle.is_leader()).count(), 1);
    });
    assert_eq!(errors.len(), 1, "{errors:?}");
    assert!(errors[0].contains("give every process an identity of its own"), "{errors:?}");
}

#[tokio::test(start_paused = true)]
async fn reclaiming_ones_own_identity_is_instant_and_a_new_term() {
    for reclaim in [false, true] {
        let store = MemoryStore::new();
        plant(&store, &record("a", LEASE, 3)).await;
        let config = builder(TestLock::new(&store, "a"), LeaderCallbacks::new()).reclaim_own_identity(reclaim);
        let elector = DefaultLeaderElector::new(config.build().unwrap());
        let handle = elector.handle();
        let _running = spawn_run(elector);
        sleep(RETRY).await;
        assert_eq!(handle.fencing_token(), reclaim.then_some(4.into()));
        sleep(LEASE).await;
        assert_eq!(handle.fencing_token(), Some(4.into()));
    }
}

#[tokio::test(start_paused = true)]
async fn a_handle_tells_of_another_process_under_its_identity() {
    let store = MemoryStore::new();
    let leader = elector(TestLock::new(&store, "a"), LeaderCallbacks::new());
    let mut leading = leader.handle();
    let (stop, leads) = spawn_run(leader);
    leading.elected().await.unwrap();
    // The seed of the tests follows from the identity, and write ids follow from the seed.
    let twin = builder(TestLock::new(&store, "a"), LeaderCallbacks::new()).seed(7).build().unwrap();
    let twin = DefaultLeaderElector::new(twin);
    let handle = twin.handle();
    let (_cancel, _running) = spawn_run(twin);
    sleep(RETRY).await;
    let seen = handle.observed().unwrap();
    assert!(!seen.of_duplicate && !seen.seen_to_change, "one look does not tell: {seen:?}");
    sleep(RETRY * 3).await;
    let seen = handle.observed().unwrap();
    assert!(seen.of_duplicate && seen.seen_to_change, "{seen:?}");
    assert_eq!(handle.leader(), None);
    assert!(!leading.observed().unwrap().of_duplicate, "the leader sees its own lease");
    stop.cancel();
    leads.await.unwrap();
    handle.clone().elected().await.unwrap();
    assert!(!handle.observed().unwrap().of_duplicate);
}
