//! The fences against leaders of the past: in memory, and in an object of a store.

mod doubt;
mod layer;
mod trouble;
mod vectors;

use std::sync::Barrier;
use std::thread;

use leaderelection::clock::TokioClock;
use leaderelection::fence::{Fence, FencedError, FencedObject};
use leaderelection::implement::{ConditionalStore, Precondition};
use leaderelection::{LeaderElectionRecord, MemoryLock, MemoryStore, ObjectStoreBasedLock as _, StoreErrorKind};

use crate::support::{Faulty, LEASE};

/// A list to append to, in simulated time.
fn list<S: ConditionalStore>(store: S) -> FencedObject<S, Vec<u32>> {
    FencedObject::new(store, "list").with_clock(TokioClock::new())
}

fn append(number: u32) -> impl FnMut(Option<Vec<u32>>) -> Vec<u32> {
    move |list| list.into_iter().flatten().chain([number]).collect()
}

async fn put(store: &MemoryStore, body: &str) {
    store.put("list", body.to_owned().into(), &Precondition::Absent).await.unwrap();
}

async fn body(store: &MemoryStore) -> String {
    String::from_utf8(store.get("list").await.unwrap().unwrap().body.into()).unwrap()
}

#[test]
fn a_fence_keeps_the_highest_token() {
    let fence = Fence::new();
    for (token, passes) in [(0, true), (3, true), (3, true), (2, false), (4, true), (3, false)] {
        assert_eq!(fence.check(token).is_ok(), passes, "{token}");
    }
    assert_eq!(fence.highest(), 4);
    assert_eq!(
        fence.check(1).unwrap_err().to_string(),
        "fencing token 1 is stale, because 4 has been seen; stop working: another leader has taken over"
    );
}

#[test]
fn a_fence_that_starts_again_keeps_what_it_was_told() {
    let fence = Fence::starting_at(7.into());
    assert_eq!((fence.highest(), fence.check(6).is_ok(), fence.check(7).is_ok()), (7.into(), false, true));
}

#[test]
fn of_many_threads_only_those_that_raise_the_fence_or_meet_it_pass() {
    let (fence, start) = (Fence::new(), Barrier::new(8));
    let passed: Vec<Vec<u64>> = thread::scope(|scope| {
        let check = |thread| {
            let (fence, start) = (&fence, &start);
            scope.spawn(move || {
                start.wait();
                (0..1000).map(|round: u64| round * 8 + thread).filter(|&token| fence.check(token).is_ok()).collect()
            })
        };
        let threads: Vec<_> = (0..8).map(check).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert_eq!(fence.highest(), 7999);
    assert!(passed.concat().contains(&7999));
}

#[tokio::test]
async fn the_object_holds_token_writes_and_value() {
    let store = MemoryStore::new();
    let list = list(store.clone());
    assert_eq!(list.to_string(), "memory:list");
    assert_eq!(list.update(7, append(1)).await.unwrap(), [1]);
    assert_eq!(list.update(7, append(2)).await.unwrap(), [1, 2]);
    let json: serde_json::Value = serde_json::from_str(&body(&store).await).unwrap();
    assert_eq!(json["fencingToken"], 7);
    assert_eq!(json["value"], serde_json::json!([1, 2]));
    assert_eq!(json["recentWrites"].as_array().map(Vec::len), Some(2));
    assert_eq!(json.as_object().map(serde_json::Map::len), Some(3));
    let read = list.read().await.unwrap();
    assert_eq!((read.token, read.value), (Some(7.into()), Some(vec![1, 2])));
}

#[tokio::test]
async fn a_leader_of_the_past_is_refused_and_writes_nothing() {
    let store = Faulty::default();
    let list = list(store.clone());
    list.update(2, append(2)).await.unwrap();
    let (before, requests) = (body(&store.inner).await, store.requests());
    let refusals = [
        list.update(1, append(1)).await.unwrap_err(),
        list.write(1, &vec![1]).await.unwrap_err(),
        list.claim(1).await.unwrap_err(),
    ];
    for error in refusals {
        assert_eq!(error.stale().map(|stale| (stale.token, stale.highest)), Some((1.into(), 2.into())));
        let expected = "cannot write memory:list: fencing token 1 is stale, because 2 has been seen; \
                        stop working: another leader has taken over";
        assert_eq!(error.to_string(), expected);
    }
    assert_eq!(body(&store.inner).await, before);
    assert_eq!(store.requests() - requests, 3, "one read each");
}

#[tokio::test]
async fn a_claim_raises_the_fence_and_leaves_the_value() {
    let store = MemoryStore::new();
    let list = list(store.clone());
    assert_eq!(list.claim(1).await.unwrap(), None);
    let read = list.read().await.unwrap();
    assert_eq!((read.token, read.value), (Some(1.into()), None));
    list.update(1, append(1)).await.unwrap();
    assert_eq!(list.claim(2).await.unwrap(), Some(vec![1]));
    assert!(list.update(1, append(2)).await.unwrap_err().stale().is_some());
    // A second claim with the same token writes too, so that no earlier write can be committed.
    let before = body(&store).await;
    assert_eq!(list.claim(2).await.unwrap(), Some(vec![1]));
    assert_ne!(body(&store).await, before);
}

#[tokio::test]
async fn a_claim_keeps_the_value_to_the_letter() {
    #[derive(serde::Serialize, serde::Deserialize)]
    struct Known {
        a: u32,
    }
    let store = MemoryStore::new();
    put(&store, r#"{"fencingToken":0,"recentWrites":[],"value":{"a": 1, "b": 1.50}}"#).await;
    let object = FencedObject::<_, Known>::new(store.clone(), "list");
    assert_eq!(object.claim(1).await.unwrap().map(|known| known.a), Some(1));
    assert!(body(&store).await.ends_with(r#""value":{"a": 1, "b": 1.50}}"#));
}

#[tokio::test]
async fn a_null_is_a_value() {
    let object = FencedObject::<_, Option<u32>>::new(MemoryStore::new(), "null");
    assert_eq!(object.read().await.unwrap().value, None);
    object.write(1, &None).await.unwrap();
    assert_eq!(object.read().await.unwrap().value, Some(None));
}

#[tokio::test]
async fn foreign_objects_are_neither_read_nor_written_over() {
    for foreign in ["a photo", "{}", "[1]", r#"{"fencingToken":1}"#, r#"{"fencingToken":-1,"recentWrites":[]}"#] {
        let store = MemoryStore::new();
        put(&store, foreign).await;
        let list = list(store.clone());
        for error in [
            list.read().await.unwrap_err(),
            list.update(9, append(1)).await.unwrap_err(),
            list.write(9, &vec![1]).await.unwrap_err(),
            list.claim(9).await.unwrap_err(),
        ] {
            assert!(matches!(error, FencedError::Unreadable { .. }), "{foreign}: {error:?}");
            let expected =
                "memory:list does not hold a fenced value of this type; give the fenced object a key of its own";
            assert_eq!(error.to_string(), expected);
        }
        assert_eq!(body(&store).await, foreign);
    }
}

#[tokio::test]
async fn a_lock_and_a_fenced_object_do_not_touch_each_other() {
    let store = MemoryStore::new();
    let lock = MemoryLock::new(store.clone(), "list", "node-1");
    let version = lock.create(&LeaderElectionRecord::new("node-1", LEASE)).await.unwrap();
    assert!(matches!(list(store.clone()).claim(9).await, Err(FencedError::Unreadable { .. })));
    store.delete("list", Some(&version)).await.unwrap();
    list(store.clone()).claim(9).await.unwrap();
    assert_eq!(lock.get().await.unwrap_err().kind(), StoreErrorKind::Unreadable);
}

#[tokio::test]
async fn a_value_of_another_type_is_replaced_only_by_a_write() {
    let store = MemoryStore::new();
    FencedObject::<_, String>::new(store.clone(), "list").write(1, &"a text".to_owned()).await.unwrap();
    let list = list(store.clone());
    assert!(matches!(list.read().await, Err(FencedError::Unreadable { .. })));
    assert!(matches!(list.claim(2).await, Err(FencedError::Unreadable { .. })));
    assert!(matches!(list.update(2, append(1)).await, Err(FencedError::Unreadable { .. })));
    assert!(body(&store).await.contains(r#""fencingToken":1"#), "nothing was written");
    list.write(2, &vec![1]).await.unwrap();
    assert_eq!(list.read().await.unwrap().value, Some(vec![1]));
}

#[tokio::test]
async fn a_value_without_json_is_refused() {
    let object = FencedObject::<_, std::collections::BTreeMap<Vec<u8>, u8>>::new(MemoryStore::new(), "map");
    let error = object.write(1, &[(vec![1], 1)].into()).await.unwrap_err();
    assert!(matches!(error, FencedError::Unserializable { .. }), "{error:?}");
    assert_eq!(object.read().await.unwrap().token, None);
}

#[tokio::test]
async fn tasks_of_one_leader_lose_no_write() {
    let list = list(MemoryStore::new());
    let tasks: Vec<_> = (0..16)
        .map(|number| {
            let list = list.clone();
            tokio::spawn(async move { list.update(1, append(number)).await })
        })
        .collect();
    for task in tasks {
        task.await.unwrap().unwrap();
    }
    let mut numbers = list.read().await.unwrap().value.unwrap();
    numbers.sort_unstable();
    assert_eq!(numbers, Vec::from_iter(0..16));
}
