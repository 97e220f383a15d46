//! Writes whose answer is lost.

use std::sync::{Arc, OnceLock};

use futures_util::FutureExt as _;
use leaderelection::MemoryStore;
use leaderelection::StoreErrorKind::{Ambiguous, Conflict, Fatal};
use leaderelection::fence::FencedError;
use leaderelection::implement::ConditionalStore as _;

use super::{append, list};
use crate::support::{Call, Fault, Faulty};

/// The object holds `[0]` with token 1 when the calls are counted from 0. The first write, which is the second call,
/// goes wrong. Before the read that follows, `meanwhile` happens.
async fn store(fault: Fault, meanwhile: impl Fn(MemoryStore) + Send + Sync + 'static) -> Faulty {
    let (inner, first) = (Arc::new(OnceLock::<MemoryStore>::new()), 2);
    let store = Faulty::new({
        let inner = Arc::clone(&inner);
        move |call, _, before| match (call, before.checked_sub(first)) {
            (Call::Put, Some(1)) => Some(fault),
            (Call::Get, Some(2)) => {
                meanwhile(inner.get().unwrap().clone());
                None
            }
            _ => None,
        }
    });
    inner.set(store.inner.clone()).unwrap();
    list(store.clone()).update(1, append(0)).await.unwrap();
    store
}

/// So many writes of others, with this token: 100, 101, ...
fn others(writes: u32, token: u64) -> impl Fn(MemoryStore) + Send + Sync {
    move |store| {
        for number in 100..100 + writes {
            list(store.clone()).update(token, append(number)).now_or_never().unwrap().unwrap();
        }
    }
}

async fn value(store: &Faulty) -> Vec<u32> {
    list(store.inner.clone()).read().await.unwrap().value.unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_committed_write_is_not_repeated() {
    for lied in [Ambiguous, Conflict] {
        let store = store(Fault::ApplyThen(lied), |_| {}).await;
        assert_eq!(list(store.clone()).update(1, append(1)).await.unwrap(), [0, 1], "{lied:?}");
        assert_eq!(value(&store).await, [0, 1], "{lied:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_uncommitted_write_is_repeated() {
    let store = store(Fault::Refuse(Ambiguous), |_| {}).await;
    assert_eq!(list(store.clone()).update(1, append(1)).await.unwrap(), [0, 1]);
    assert_eq!(value(&store).await, [0, 1]);
}

#[tokio::test(start_paused = true)]
async fn a_committed_write_under_others_is_not_repeated() {
    let store = store(Fault::ApplyThen(Ambiguous), others(15, 1)).await;
    assert_eq!(list(store.clone()).update(1, append(1)).await.unwrap(), [0, 1]);
    assert_eq!(value(&store).await[..3], [0, 1, 100]);
    assert_eq!(value(&store).await.len(), 17);
}

#[tokio::test(start_paused = true)]
async fn a_write_that_others_came_before_is_made_anew() {
    let store = store(Fault::Refuse(Ambiguous), others(15, 1)).await;
    assert_eq!(list(store.clone()).update(1, append(1)).await.unwrap().len(), 17);
    assert_eq!(value(&store).await[15..], [114, 1]);
}

#[tokio::test(start_paused = true)]
async fn a_write_that_a_newer_leader_came_before_is_refused() {
    let store = store(Fault::Refuse(Ambiguous), others(1, 2)).await;
    assert!(list(store.clone()).update(1, append(1)).await.unwrap_err().stale().is_some());
    assert_eq!(value(&store).await, [0, 100]);
}

#[tokio::test(start_paused = true)]
async fn a_write_that_a_newer_leader_has_built_upon_has_happened() {
    let store = store(Fault::ApplyThen(Ambiguous), others(1, 2)).await;
    assert_eq!(list(store.clone()).update(1, append(1)).await.unwrap(), [0, 1]);
    assert_eq!(value(&store).await, [0, 1, 100]);
}

#[tokio::test(start_paused = true)]
async fn a_write_that_too_many_others_hide_is_in_doubt() {
    for fault in [Fault::ApplyThen(Ambiguous), Fault::Refuse(Ambiguous)] {
        let store = store(fault, others(16, 1)).await;
        let error = list(store.clone()).update(1, append(1)).await.unwrap_err();
        assert!(matches!(error, FencedError::Unknown { .. }), "{fault:?}: {error:?}");
        assert_eq!(error.to_string(), "cannot tell if memory:list was written; claim it again, and check the value");
        assert!(value(&store).await.iter().filter(|&&number| number == 1).count() <= 1);
    }
}

#[tokio::test(start_paused = true)]
async fn a_conflict_is_no_doubt_however_many_have_written() {
    let store = store(Fault::Refuse(Conflict), others(40, 1)).await;
    assert_eq!(list(store.clone()).update(1, append(1)).await.unwrap().len(), 42);
}

#[tokio::test(start_paused = true)]
async fn a_write_to_an_object_that_was_deleted_is_in_doubt() {
    let delete = |store: MemoryStore| {
        let object = store.get("list").now_or_never().unwrap().unwrap().unwrap();
        store.delete("list", Some(&object.version)).now_or_never().unwrap().unwrap();
    };
    let store = store(Fault::ApplyThen(Ambiguous), delete).await;
    assert!(matches!(list(store).update(1, append(1)).await, Err(FencedError::Unknown { .. })));
}

#[tokio::test(start_paused = true)]
async fn a_doubt_outlives_the_errors_that_follow() {
    // Two calls make the object; the read after the first write, and all that follow, are denied.
    let store = Faulty::new(|call, _, before| match (call, before) {
        (_, ..3) => None,
        (Call::Put, 3) => Some(Fault::ApplyThen(Ambiguous)),
        _ => Some(Fault::Refuse(Fatal)),
    });
    list(store.clone()).update(1, append(0)).await.unwrap();
    let error = list(store.clone()).update(1, append(1)).await.unwrap_err();
    assert!(matches!(error, FencedError::Unknown { .. }), "{error:?}");
    assert_eq!(store.requests(), 5);
    assert_eq!(list(store.inner).claim(1).await.unwrap(), Some(vec![0, 1]));
}

#[tokio::test(start_paused = true)]
async fn a_store_that_never_answers_a_write_leaves_it_in_doubt() {
    let store = Faulty::new(|call, _, _| (call == Call::Put).then_some(Fault::Refuse(Ambiguous)));
    let error = list(store.clone()).update(1, append(1)).await.unwrap_err();
    assert!(matches!(error, FencedError::Unknown { .. }), "{error:?}");
    assert_eq!(store.requests(), 16);
}

#[tokio::test(start_paused = true)]
async fn a_claim_decides_a_write_that_was_dropped() {
    for (fault, expected) in [(Fault::ApplyThenHang, vec![0, 1]), (Fault::Hang, vec![0])] {
        let store = store(fault, |_| {}).await;
        let list = list(store.clone());
        assert!(list.update(1, append(1)).now_or_never().is_none(), "it hangs");
        assert_eq!(list.claim(1).await.unwrap(), Some(expected));
    }
}
