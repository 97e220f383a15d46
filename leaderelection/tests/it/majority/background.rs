//! The requests that a write leaves to the background, and the releases that wait for them (M6, M10).

use std::sync::atomic::Ordering::Relaxed;

use leaderelection::{LeaderElectionRecord, Majority, MemoryStore, ObjectStoreBasedLock};
use tokio::time::{Instant, sleep};

use super::slow::{SLOWNESS, pairs, parts};
use crate::support::{LEASE, RETRY, record, stored};

/// At most one request about an object is in flight from one candidate.
#[tokio::test(start_paused = true)]
async fn a_poll_ends_the_writes_that_the_last_call_left_behind() {
    let stores = <[MemoryStore; 3]>::default();
    let parts = parts(&stores, "a", 2);
    let lock = Majority::of(parts.clone()).unwrap();
    lock.create(&record("a", LEASE, 0)).await.unwrap();
    sleep(SLOWNESS / 10).await;
    assert_eq!(parts[2].open.load(Relaxed), 1);
    lock.get().await.unwrap();
    assert_eq!(parts[2].open.load(Relaxed), 0);
}

/// A short job ends before all parts have answered the write by which its term began.
#[tokio::test(start_paused = true)]
async fn a_release_reaches_a_part_that_carries_out_the_last_write_late() {
    for slow in 0..3 {
        let stores = <[MemoryStore; 3]>::default();
        let lock = Majority::of(parts(&stores, "a", slow)).unwrap();
        let taken = lock.create(&record("a", LEASE, 0)).await.unwrap();
        lock.update(&record("", RETRY, 0), &taken).await.unwrap();
        for store in &stores {
            assert!(stored(store).await.record.is_released(), "{slow} is slow");
        }
    }
}

/// The parts that are known when a release begins are too few if one of them refuses it.
#[tokio::test(start_paused = true)]
async fn a_release_reaches_a_late_part_while_another_refuses_it() {
    for (slow, refusing) in pairs().filter(|(slow, refusing)| slow != refusing) {
        let stores = <[MemoryStore; 3]>::default();
        let parts = parts(&stores, "a", slow);
        let lock = Majority::of(parts.clone()).unwrap();
        let taken = lock.create(&record("a", LEASE, 0)).await.unwrap();
        parts[refusing].refuses_releases.store(true, Relaxed);
        lock.update(&record("", RETRY, 0), &taken).await.unwrap();
        for (part, store) in stores.iter().enumerate() {
            let is_released = stored(store).await.record.is_released();
            assert_eq!(is_released, part != refusing, "{slow} is slow, {refusing} refuses");
        }
    }
}

fn release(id: &str) -> LeaderElectionRecord {
    let mut release = record("", RETRY, 0);
    release.write_id = Some(id.to_owned());
    release
}

/// Candidates that have read the released part are about to take it.
#[tokio::test(start_paused = true)]
async fn a_release_that_is_tried_again_leaves_alone_what_it_has_released() {
    let stores = <[MemoryStore; 3]>::default();
    let parts = parts(&stores, "a", 2);
    let lock = Majority::of(parts[..2].to_vec()).unwrap();
    let taken = lock.create(&record("a", LEASE, 0)).await.unwrap();
    parts[0].refuses_releases.store(true, Relaxed);
    lock.update(&release("first"), &taken).await.unwrap_err();
    let before = stored(&stores[1]).await;
    assert!(before.record.is_released());
    let shown = lock.get().await.unwrap().unwrap();
    lock.update(&release("second"), &shown.version).await.unwrap_err();
    assert_eq!(stored(&stores[1]).await.version, before.version);
    parts[0].refuses_releases.store(false, Relaxed);
    let shown = lock.get().await.unwrap().unwrap();
    lock.update(&release("third"), &shown.version).await.unwrap();
    assert_eq!(stored(&stores[1]).await.version, before.version);
    assert!(stored(&stores[0]).await.record.is_released());
}

#[tokio::test(start_paused = true)]
async fn a_release_with_a_mark_replaces_one_without() {
    let stores = <[MemoryStore; 3]>::default();
    let parts = parts(&stores, "a", 2);
    let lock = Majority::of(parts[..2].to_vec()).unwrap();
    let taken = lock.create(&record("a", LEASE, 0)).await.unwrap();
    parts[0].refuses_releases.store(true, Relaxed);
    lock.update(&release("first"), &taken).await.unwrap_err();
    let shown = lock.get().await.unwrap().unwrap();
    let mut marked = release("second");
    marked.unknown.set("completedJobs", &["today"]);
    lock.update(&marked, &shown.version).await.unwrap_err();
    assert_eq!(stored(&stores[1]).await.record.completed_jobs(), ["today"]);
}

/// A release does not wait for the answer to a renewal of a part that is away since before.
#[tokio::test(start_paused = true)]
async fn a_release_waits_for_no_part_that_was_away_before_the_last_renewal() {
    let stores = <[MemoryStore; 3]>::default();
    let mut parts = parts(&stores, "a", 2);
    parts[2].latency = LEASE;
    let lock = Majority::of(parts.clone()).unwrap();
    let taken = lock.create(&record("a", LEASE, 0)).await.unwrap();
    let renewed = lock.update(&record("a", LEASE, 0), &taken).await.unwrap();
    let began = Instant::now();
    lock.update(&record("", RETRY, 0), &renewed).await.unwrap();
    assert!(began.elapsed() < RETRY);
}

/// The part has not answered a write before the last one, which therefore left it alone.
#[tokio::test(start_paused = true)]
async fn a_release_waits_for_an_earlier_write_while_another_part_refuses_it() {
    for (slow, refusing) in pairs().filter(|(slow, refusing)| slow != refusing) {
        let stores = <[MemoryStore; 3]>::default();
        let parts = parts(&stores, "a", slow);
        let lock = Majority::of(parts.clone()).unwrap();
        let mut version = lock.create(&record("a", LEASE, 0)).await.unwrap();
        sleep(SLOWNESS * 2).await;
        for _ in 0..2 {
            version = lock.update(&record("a", LEASE, 0), &version).await.unwrap();
        }
        parts[refusing].refuses_releases.store(true, Relaxed);
        lock.update(&record("", RETRY, 0), &version).await.unwrap();
        assert!(stored(&stores[slow]).await.record.is_released(), "{slow} is slow, {refusing} refuses");
    }
}
