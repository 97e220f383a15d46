//! Stores that refuse, and the patience with them.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use leaderelection::MemoryStore;
use leaderelection::StoreErrorKind::{self, Ambiguous, Conflict, Fatal, Rejected, Unreadable};
use leaderelection::fence::FencedError;
use leaderelection::implement::ConditionalStore as _;
use tokio::time::Instant;

use super::{append, list};
use crate::support::{Call, Fault, Faulty};

/// Rejects its first writes, and asks for a pause.
fn throttled(rejections: usize, retry_after: Option<Duration>) -> Faulty {
    let rejected = AtomicUsize::new(0);
    let rejects = move |call| call == Call::Put && rejected.fetch_add(1, Ordering::SeqCst) < rejections;
    let mut store = Faulty::new(move |call, _, _| rejects(call).then_some(Fault::Refuse(Rejected)));
    store.retry_after = retry_after;
    store
}

fn assert_store_error(error: &FencedError, kind: StoreErrorKind) {
    assert!(matches!(error, FencedError::Store(error) if error.kind() == kind), "{error:?}");
}

#[tokio::test(start_paused = true)]
async fn retry_after_is_waited_for() {
    let (store, began) = (throttled(2, Some(Duration::from_secs(7))), Instant::now());
    list(store).update(1, append(1)).await.unwrap();
    assert!((14..15).contains(&began.elapsed().as_secs()), "{:?}", began.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_store_that_asks_for_minutes_is_left_to_the_caller() {
    let (store, began) = (throttled(1, Some(Duration::from_secs(60))), Instant::now());
    let error = list(store).update(1, append(1)).await.unwrap_err();
    assert_store_error(&error, Rejected);
    assert_eq!(began.elapsed(), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn rejections_are_waited_out_seven_times_and_no_more() {
    list(throttled(7, None)).update(1, append(1)).await.unwrap();
    let began = Instant::now();
    let error = list(throttled(8, None)).update(1, append(1)).await.unwrap_err();
    assert_store_error(&error, Rejected);
    assert!(began.elapsed() < Duration::from_secs(8), "{:?}", began.elapsed());
}

#[tokio::test(start_paused = true)]
async fn reads_are_tried_again() {
    let store = Faulty::new(|_, _, before| match before {
        0 => Some(Fault::Refuse(Ambiguous)),
        1 => Some(Fault::Refuse(Rejected)),
        _ => None,
    });
    assert_eq!(list(store.clone()).read().await.unwrap().token, None);
    assert_eq!(store.requests(), 3);
}

#[tokio::test(start_paused = true)]
async fn what_will_not_change_is_not_tried_again() {
    for kind in [Fatal, Unreadable] {
        for (call, requests) in [(Call::Get, 1), (Call::Put, 2)] {
            let store = Faulty::new(move |it, _, _| (it == call).then_some(Fault::Refuse(kind)));
            let error = list(store.clone()).update(1, append(1)).await.unwrap_err();
            assert_store_error(&error, kind);
            assert_eq!(store.requests(), requests, "{kind:?} {call:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn conflicts_with_nobody_come_to_an_end() {
    let store = Faulty::new(|call, _, _| (call == Call::Put).then_some(Fault::Refuse(Conflict)));
    assert_store_error(&list(store.clone()).update(1, append(1)).await.unwrap_err(), Conflict);
    assert_eq!(store.requests(), 16);
}

#[tokio::test(start_paused = true)]
async fn a_value_that_is_too_large_is_not_sent() {
    let store = MemoryStore::new();
    let error = list(store.clone()).write(1, &vec![10_000; 20_000]).await.unwrap_err();
    assert_store_error(&error, Fatal);
    assert!(error.to_string().contains("write between 1 and 65536 bytes"), "{error}");
    assert_eq!(store.get("list").await.unwrap(), None);
}
