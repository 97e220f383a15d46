//! New timings while the elector runs (rule 22).

use std::future::pending;
use std::time::Duration;

use leaderelection::{DefaultLeaderElector, Elector, LeaderHandle, MemoryStore, StoreErrorKind, Timings};
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;
use tracing::Level;

use crate::support::{
    DEADLINE, Fault, Journal, LEASE, Op, RETRY, TestLock, builder, elector, logged, plant, record, spawn_run, stored,
};

const SECOND: Duration = Duration::from_secs(1);
const MOMENT: Duration = Duration::from_millis(1);

fn timings(lease: u64, deadline: u64, retry: u64) -> Timings {
    Timings::new(SECOND * lease as u32, SECOND * deadline as u32, SECOND * retry as u32).unwrap()
}

async fn leader(lock: &TestLock) -> (LeaderHandle, CancellationToken) {
    let elector = elector(lock.clone(), Journal::default().callbacks());
    let handle = elector.handle();
    let (cancel, _running) = spawn_run(elector);
    sleep(MOMENT).await;
    assert!(handle.is_leader());
    (handle, cancel)
}

#[tokio::test(start_paused = true)]
async fn a_longer_deadline_counts_after_a_renewal_with_the_longer_lease() {
    let store = MemoryStore::new();
    let lock = TestLock::new(&store, "a");
    let (handle, _cancel) = leader(&lock).await;
    handle.reconfigure(timings(60, 40, 1)).unwrap();
    sleep(MOMENT).await;
    assert!(handle.status().remaining <= DEADLINE, "nothing is committed so far");
    // The next renewal comes at the new pace, one second after the last.
    sleep(SECOND).await;
    assert!(handle.status().remaining > SECOND * 39, "{:?}", handle.status().remaining);
    assert_eq!(stored(&store).await.record.lease_duration, SECOND * 60);
}

#[tokio::test(start_paused = true)]
async fn a_longer_deadline_does_not_count_before_a_renewal() {
    let store = MemoryStore::new();
    let lock = TestLock::new(&store, "a");
    let (handle, _cancel) = leader(&lock).await;
    lock.set_outage(Some(Fault::Refuse(StoreErrorKind::Rejected)));
    handle.reconfigure(timings(60, 40, 1)).unwrap();
    sleep(DEADLINE - MOMENT * 2).await;
    assert!(handle.is_leader());
    sleep(MOMENT * 2).await;
    assert!(!handle.is_leader());
}

#[tokio::test(start_paused = true)]
async fn a_shorter_deadline_counts_at_once() {
    let store = MemoryStore::new();
    let lock = TestLock::new(&store, "a");
    let (handle, _cancel) = leader(&lock).await;
    lock.set_outage(Some(Fault::Hang));
    sleep(SECOND * 3).await;
    handle.reconfigure(timings(6, 4, 1)).unwrap();
    sleep(MOMENT).await;
    assert!(handle.status().remaining < SECOND, "the last renewal is three seconds old, and the deadline four seconds");
    sleep(SECOND).await;
    assert!(!handle.is_leader());
}

#[tokio::test(start_paused = true)]
async fn a_renewal_older_than_the_shorter_deadline_ends_the_term_at_once() {
    let lock = TestLock::new(&MemoryStore::new(), "a");
    let (handle, _cancel) = leader(&lock).await;
    lock.set_outage(Some(Fault::Hang));
    sleep(SECOND * 5).await;
    handle.reconfigure(timings(6, 4, 1)).unwrap();
    sleep(MOMENT).await;
    assert!(!handle.is_leader());
}

#[tokio::test(start_paused = true)]
async fn a_shorter_lease_in_doubt_counts_after_a_longer_one_is_set() {
    let lock = TestLock::new(&MemoryStore::new(), "a");
    let (handle, _cancel) = leader(&lock).await;
    handle.reconfigure(timings(6, 4, 1)).unwrap();
    lock.set_outage(Some(Fault::ApplyThenHang));
    sleep(SECOND * 2).await;
    handle.reconfigure(timings(60, 40, 1)).unwrap();
    sleep(SECOND * 2).await;
    assert!(!handle.is_leader(), "others wait for six seconds only");
}

#[tokio::test(start_paused = true)]
async fn a_follower_reads_at_the_new_pace_at_once() {
    let store = MemoryStore::new();
    plant(&store, &record("other", LEASE * 100, 3)).await;
    let lock = TestLock::new(&store, "b");
    let elector = elector(lock.clone(), Journal::default().callbacks());
    let handle = elector.handle();
    drop(spawn_run(elector));
    handle.reconfigure(timings(300, 200, 100)).unwrap();
    sleep(SECOND * 500).await;
    lock.take_ops();
    handle.reconfigure(timings(15, 10, 2)).unwrap();
    sleep(RETRY.mul_f64(2.2)).await;
    assert_eq!(lock.take_ops(), [Op::Get]);
    sleep(SECOND * 44).await;
    assert!((10..=22).contains(&lock.take_ops().len()));
}

#[tokio::test(start_paused = true)]
async fn an_elector_that_does_not_run_takes_the_timings_when_it_runs() {
    let store = MemoryStore::new();
    let elector = elector(TestLock::new(&store, "a"), Journal::default().callbacks());
    elector.handle().reconfigure(timings(60, 40, 1)).unwrap();
    let handle = elector.handle();
    drop(spawn_run(elector));
    sleep(MOMENT).await;
    assert!(handle.status().remaining > SECOND * 39);
    assert_eq!(stored(&store).await.record.lease_duration, SECOND * 60);
}

#[test]
fn timings_that_do_not_suit_the_elector_are_refused_and_change_nothing() {
    let lock = TestLock::new(&MemoryStore::new(), "a");
    let config = builder(lock, Journal::default().callbacks()).follower_interval(SECOND * 8).build().unwrap();
    let handle = DefaultLeaderElector::new(config).handle();
    let refused = handle.reconfigure(timings(90_000, 10, 2)).unwrap_err().to_string();
    assert_eq!(refused, "lease_duration (1day 1h) must be at most 24h, the limit of this lock");
    let refused = handle.reconfigure(timings(10, 8, 2)).unwrap_err();
    assert_eq!(refused.field(), "follower_interval");
    assert!(handle.reconfigure(timings(30, 20, 4)).is_ok());
}

#[tokio::test(start_paused = true)]
async fn the_health_check_and_the_cool_down_follow_the_new_lease() {
    let store = MemoryStore::new();
    let elector = elector(TestLock::new(&store, "a"), Journal::default().callbacks());
    let (health, handle) = (elector.health_check(Duration::ZERO), elector.handle());
    let campaign = tokio::spawn(async move { elector.campaign(pending()).await });
    sleep(MOMENT).await;
    handle.reconfigure(timings(60, 40, 1)).unwrap();
    sleep(SECOND * 5).await;
    assert!(health.check().is_ok());
    assert!(handle.step_down());
    let gone = Instant::now();
    while !handle.is_leader() {
        sleep(SECOND / 10).await;
    }
    assert!(gone.elapsed() >= SECOND * 60, "{:?}", gone.elapsed());
    campaign.abort();
}

#[test]
fn new_timings_are_logged_with_their_warnings() {
    let run = async || {
        let elector = elector(TestLock::new(&MemoryStore::new(), "a"), Journal::default().callbacks());
        let handle = elector.handle();
        drop(spawn_run(elector));
        sleep(MOMENT).await;
        handle.reconfigure(timings(15, 10, 8)).unwrap();
        sleep(MOMENT).await;
    };
    let told = logged(Level::INFO, run);
    assert!(
        told.iter().any(|line| line.contains("applied new timings") && line.contains("retry_period=8s")),
        "{told:#?}"
    );
    let warned = logged(Level::WARN, run);
    assert!(warned.iter().any(|line| line.contains("a single slow request would end a term")), "{warned:#?}");
}
