//! Foreign objects, which an elector never writes over, and wrong wall clocks, which change no decision.

use std::future::pending;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use chrono::{DateTime, TimeDelta, Utc};
use leaderelection::clock::{Clock, LocalInstant, TokioClock};
use leaderelection::implement::{ConditionalStore, Precondition};
use leaderelection::lock::MAX_LEADER_TRANSITIONS;
use leaderelection::{DefaultLeaderElector, Elector, LeaderCallbacks, MemoryStore, StoreErrorKind, TermEndReason};
use tokio::time::sleep;
use tracing::Level;

use crate::support::{Fault, LEASE, Op, RETRY, TestLock, builder, elector, logged, plant, record, spawn_run, stored};

const PHOTO: &[u8] = b"\xff\xd8\xff\xe0 JFIF, somebody's holidays";

#[tokio::test(start_paused = true)]
async fn an_object_that_is_no_record_is_never_written_over() {
    let store = MemoryStore::new();
    store.put("lock", Bytes::from_static(PHOTO), &Precondition::Absent).await.unwrap();
    let lock = TestLock::new(&store, "a");
    let elector = elector(lock.clone(), LeaderCallbacks::new());
    let handle = elector.handle();
    let _running = spawn_run(elector);
    sleep(LEASE * 10).await;
    assert!(lock.take_ops().iter().all(|op| *op == Op::Get));
    let photo = store.get("lock").await.unwrap().unwrap();
    assert_eq!(photo.body, PHOTO);

    // Once the photo is moved away, the election goes on.
    store.delete("lock", Some(&photo.version)).await.unwrap();
    sleep(RETRY * 11).await;
    assert!(handle.is_leader());
}

#[tokio::test(start_paused = true)]
async fn a_leader_whose_record_is_overwritten_stops_and_leaves_it() {
    let store = MemoryStore::new();
    let lock = TestLock::new(&store, "a");
    let config = builder(lock.clone(), LeaderCallbacks::new()).release_on_cancel(true).build().unwrap();
    let elector = DefaultLeaderElector::new(config);
    let handle = elector.handle();
    let _campaign = tokio::spawn(async move { elector.campaign(pending()).await });
    sleep(RETRY / 2).await;
    assert!(handle.is_leader());
    let version = stored(&store).await.version;
    store.put("lock", Bytes::from_static(PHOTO), &Precondition::Matches(version)).await.unwrap();
    sleep(RETRY).await;
    assert!(!handle.is_leader());
    sleep(LEASE * 10).await;
    assert_eq!(store.get("lock").await.unwrap().unwrap().body, PHOTO);
}

#[tokio::test(start_paused = true)]
async fn a_deleted_object_ends_the_term_and_comes_back_with_a_larger_token() {
    let store = MemoryStore::new();
    let elector = elector(TestLock::new(&store, "a"), LeaderCallbacks::new());
    let handle = elector.handle();
    let mut watcher = elector.handle();
    let _campaign = tokio::spawn(async move { elector.campaign(pending()).await });
    sleep(RETRY * 2 + RETRY / 2).await;
    assert_eq!(handle.fencing_token(), Some(1.into()));
    store.delete("lock", Some(&stored(&store).await.version)).await.unwrap();
    sleep(RETRY).await;
    assert!(!handle.is_leader());
    let lost_at = tokio::time::Instant::now();
    while !watcher.is_leader() {
        watcher.changed().await.unwrap();
    }
    // The lease that was cut short ran from the last renewal, at most a retry period before the loss.
    assert!(lost_at.elapsed() >= LEASE - RETRY * 2, "{:?}", lost_at.elapsed());
    assert_eq!(handle.fencing_token(), Some(2.into()));
}

#[tokio::test(start_paused = true)]
async fn access_that_is_denied_is_tried_again_slowly_and_then_works() {
    let store = MemoryStore::new();
    let lock = TestLock::new(&store, "a");
    lock.set_outage(Some(Fault::Refuse(StoreErrorKind::Fatal)));
    let elector = elector(lock.clone(), LeaderCallbacks::new());
    let handle = elector.handle();
    let (cancel, running) = spawn_run(elector);
    sleep(Duration::from_secs(600)).await;
    let tries = lock.take_ops().len();
    assert!((20..=60).contains(&tries), "{tries} tries in ten minutes");
    lock.set_outage(None);
    sleep(RETRY * 11).await;
    assert!(handle.is_leader());
    cancel.cancel();
    assert_eq!(running.await.unwrap().reason(), Some(&TermEndReason::Cancelled));
}

/// A machine whose wall clock jumps a year back and forth, at two reads of three.
#[derive(Debug)]
struct JumpyClock(TokioClock, std::sync::atomic::AtomicU32);

#[async_trait]
impl Clock for JumpyClock {
    fn now(&self) -> LocalInstant {
        self.0.now()
    }

    fn wall_time(&self) -> DateTime<Utc> {
        let looks = self.1.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
        let year = TimeDelta::days(365);
        self.0.wall_time() + if looks.is_multiple_of(3) { year } else { -year }
    }

    async fn sleep_until(&self, deadline: LocalInstant) -> LocalInstant {
        self.0.sleep_until(deadline).await
    }
}

#[test]
fn a_wall_clock_jump_changes_only_the_times_people_read() {
    let warnings = logged(Level::WARN, async || {
        let store = MemoryStore::new();
        let clock = || JumpyClock(TokioClock::new(), std::sync::atomic::AtomicU32::new(0));
        let (leader, follower) = (TestLock::new(&store, "a"), TestLock::new(&store, "b"));
        let config = |lock: &TestLock| builder(lock.clone(), LeaderCallbacks::new()).clock(clock()).build().unwrap();
        let leading = DefaultLeaderElector::new(config(&leader));
        let handle = leading.handle();
        let _leading = spawn_run(leading);
        sleep(RETRY / 2).await;
        let _following = spawn_run(DefaultLeaderElector::new(config(&follower)));
        sleep(LEASE * 20).await;
        assert_eq!(handle.fencing_token(), Some(1.into()));
        assert!(follower.ops().iter().all(|op| *op == Op::Get));
        let record = stored(&store).await.record;
        assert!(record.renew_time.unwrap() - record.acquire_time.unwrap() != TimeDelta::zero());
    });
    assert!(warnings.iter().any(|warning| warning.contains("check its time synchronization")), "{warnings:?}");
}

#[test]
fn a_wall_clock_that_goes_as_the_other_one_is_no_news() {
    let warnings = logged(Level::WARN, async || {
        let store = MemoryStore::new();
        let leading = elector(TestLock::new(&store, "a"), LeaderCallbacks::new());
        let _leading = spawn_run(leading);
        sleep(LEASE * 20).await;
    });
    assert_eq!(warnings, Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn a_token_without_a_successor_ends_all_terms_but_writes_nothing() {
    let store = MemoryStore::new();
    plant(&store, &record("", LEASE, MAX_LEADER_TRANSITIONS)).await;
    let lock = TestLock::new(&store, "a");
    let elector = elector(lock.clone(), LeaderCallbacks::new());
    let handle = elector.handle();
    let _running = spawn_run(elector);
    sleep(LEASE * 10).await;
    assert!(!handle.is_leader());
    assert!(lock.ops().iter().all(|op| *op == Op::Get));

    plant(&store, &record("", LEASE, MAX_LEADER_TRANSITIONS - 1)).await;
    let other = crate::support::elector(TestLock::new(&store, "b"), LeaderCallbacks::new());
    let last = other.handle();
    let _running = spawn_run(other);
    sleep(RETRY).await;
    assert_eq!(last.fencing_token(), Some(MAX_LEADER_TRANSITIONS.into()), "the last one is still believed");
    assert_eq!(stored(&store).await.record.leader_transitions, MAX_LEADER_TRANSITIONS);
}
