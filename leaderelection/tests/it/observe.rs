//! A process that watches a lock and does not compete for it.

use std::time::Duration;

use futures_util::{StreamExt as _, pin_mut};
use leaderelection::clock::TokioClock;
use leaderelection::handle::{Observer, observe};
use leaderelection::lock::{Bounded, TimeLimit};
use leaderelection::{MemoryStore, StoreErrorKind};
use tokio::time::{Instant, sleep, timeout};

use crate::support::{Fault, LEASE, Op, TestLock, plant, record};

const PERIOD: Duration = Duration::from_secs(4);

fn observer(store: &MemoryStore) -> (TestLock, Observer) {
    let lock = TestLock::new(store, "observer");
    (lock.clone(), observe(lock, PERIOD).on_clock(TokioClock::new()))
}

#[tokio::test(start_paused = true)]
async fn a_lease_is_followed_from_nothing_to_its_end() {
    let store = MemoryStore::new();
    let (_, mut observer) = observer(&store);
    let began = Instant::now();
    let seen = observer.next().await.unwrap();
    assert_eq!((seen.found.as_ref(), seen.lease(), seen.expires_at()), (None, None, None));
    assert!(seen.is_news() && !seen.was_seen_to_change);
    assert_eq!(began.elapsed(), Duration::ZERO, "the first read is due at once");

    plant(&store, &record("a", LEASE, 3)).await;
    let seen = observer.next().await.unwrap();
    assert_eq!(began.elapsed(), PERIOD);
    assert!(seen.is_news() && seen.was_seen_to_change && !seen.has_expired());
    assert_eq!((seen.leader(), seen.lease().unwrap().fencing_token), (Some("a"), 3.into()));

    let mut reads = 0;
    let seen = loop {
        let seen = observer.next().await.unwrap();
        assert!(!seen.is_news());
        reads += 1;
        if seen.has_expired() {
            break seen;
        }
    };
    assert_eq!(began.elapsed(), PERIOD + LEASE, "the last read comes when the lease runs out, not later");
    assert_eq!(reads, 4);
    assert_eq!(seen.lease().unwrap().unchanged_for, LEASE);

    plant(&store, &record("", LEASE, 3)).await;
    let seen = observer.next().await.unwrap();
    assert_eq!((seen.leader(), seen.expires_at(), seen.has_expired()), (None, None, false));
    assert!(seen.is_news());
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_was_there_before_is_not_said_to_have_changed() {
    let store = MemoryStore::new();
    plant(&store, &record("a", LEASE, 0)).await;
    let (_, mut observer) = observer(&store);
    for is_news in [true, false] {
        let seen = observer.next().await.unwrap();
        assert_eq!((seen.is_news(), seen.was_seen_to_change), (is_news, false));
    }
}

#[tokio::test(start_paused = true)]
async fn an_error_is_told_and_forgets_nothing() {
    let store = MemoryStore::new();
    plant(&store, &record("a", LEASE, 0)).await;
    let (lock, observer) = observer(&store);
    let stream = observer.into_stream();
    pin_mut!(stream);
    stream.next().await.unwrap().unwrap();
    lock.set_outage(Some(Fault::Refuse(StoreErrorKind::Rejected)));
    let began = Instant::now();
    assert_eq!(stream.next().await.unwrap().unwrap_err().kind(), StoreErrorKind::Rejected);
    assert_eq!(began.elapsed(), PERIOD);
    lock.set_outage(None);
    let seen = stream.next().await.unwrap().unwrap();
    assert_eq!(began.elapsed(), 2 * PERIOD);
    assert_eq!(seen.lease().unwrap().unchanged_for, 2 * PERIOD);
    assert!(!seen.is_news());
}

#[tokio::test(start_paused = true)]
async fn a_dropped_call_loses_nothing_and_does_not_begin_the_period_anew() {
    let store = MemoryStore::new();
    plant(&store, &record("a", LEASE, 0)).await;
    let (lock, mut observer) = observer(&store);
    observer.next().await.unwrap();
    let began = Instant::now();
    for _ in 0..3 {
        assert!(timeout(PERIOD / 4, observer.next()).await.is_err());
    }
    lock.set_outage(Some(Fault::Hang));
    assert!(timeout(PERIOD / 2, observer.next()).await.is_err());
    lock.set_outage(None);
    assert_eq!(lock.ops(), [Op::Get, Op::Get]);
    let seen = timeout(Duration::ZERO, observer.next()).await.unwrap().unwrap();
    assert_eq!(seen.lease().unwrap().unchanged_for, began.elapsed());
    assert_eq!(observer.last().unwrap().leader(), Some("a"));
}

#[tokio::test(start_paused = true)]
async fn a_silent_store_does_not_end_the_watch() {
    let lock = TestLock::new(&MemoryStore::new(), "observer").with_fault(Op::Get, 0, Fault::Hang);
    let limit = TimeLimit::new(Duration::from_secs(10)).on_clock(TokioClock::new());
    let mut observer = observe(Bounded::new(lock, limit), PERIOD).on_clock(TokioClock::new());
    assert_eq!(observer.next().await.unwrap_err().kind(), StoreErrorKind::Ambiguous);
    sleep(PERIOD).await;
    assert!(observer.next().await.unwrap().found.is_none());
}
