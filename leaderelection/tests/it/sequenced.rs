//! A sequenced store, with crashes, stalls and strangers.

mod costs;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use futures_util::FutureExt as _;
use leaderelection::implement::{
    ConditionalStore, ConditionalStoreExt, ListedObject, MAX_BODY_BYTES, Precondition, Version,
};
use leaderelection::{StoreError, StoreErrorKind};
use leaderelection_sequenced::{CreateOnlyStore as _, MemoryCreateOnlyStore, Request, SequencedStore};
use tokio::time::timeout;

type Store = SequencedStore<MemoryCreateOnlyStore>;

const KEY: &str = "locks/key";

fn number(number: u64) -> String {
    format!("{KEY}/{number:020}")
}

fn matches(version: u64) -> Precondition {
    Precondition::Matches(Version::new(version.to_string()))
}

/// Writes as the next writer that reads the object would; an empty body deletes.
async fn write(store: &Store, body: &str) -> Result<(), StoreError> {
    let found = store.get(KEY).await?;
    let condition = found.as_ref().map_or(Precondition::Absent, |found| Precondition::Matches(found.version.clone()));
    match found {
        Some(found) if body.is_empty() => store.delete(KEY, Some(&found.version)).await,
        _ => store.put(KEY, body.to_owned().into(), &condition).await.map(drop),
    }
}

async fn body(store: &Store) -> Option<(String, u64)> {
    let found = store.get(KEY).await.unwrap()?;
    Some((String::from_utf8(found.body.to_vec()).unwrap(), found.version.as_str().parse().unwrap()))
}

/// A view of the objects whose process dies at the `nth` moment: before or after a request.
fn dies_at(objects: &MemoryCreateOnlyStore, nth: usize) -> MemoryCreateOnlyStore {
    let moments = AtomicUsize::new(0);
    objects.with_hook(move |_, _| {
        if moments.fetch_add(1, Ordering::Relaxed) == nth {
            return std::future::pending().boxed();
        }
        async { Ok(()) }.boxed()
    })
}

/// Lets a process die at every moment of a write of `next`. Returns the number of moments.
async fn dies_everywhere(before_it: &[&str], next: &str) -> usize {
    for nth in 0.. {
        let objects = MemoryCreateOnlyStore::new();
        for earlier in before_it {
            write(&SequencedStore::new(objects.clone()), earlier).await.unwrap();
        }
        let before = body(&SequencedStore::new(objects.clone())).await;
        let dying = SequencedStore::new(dies_at(&objects, nth));
        let outcome = timeout(Duration::from_secs(1), write(&dying, next)).await;

        let other = SequencedStore::new(objects.clone());
        let after = body(&other).await;
        let newest = before_it.len() as u64;
        let written = (!next.is_empty()).then(|| (next.to_owned(), newest + 1));
        match &outcome {
            Ok(outcome) => {
                outcome.as_ref().unwrap();
                assert_eq!(after, written, "an acknowledged write is there");
            }
            Err(_) => assert!(after == before || after == written, "moment {nth}: {after:?}"),
        }
        // The store goes on, and no version comes back.
        let last = if after == written && after != before { newest + 1 } else { newest };
        write(&other, "of the next writer").await.unwrap();
        assert_eq!(body(&other).await, Some(("of the next writer".to_owned(), last + 1)), "moment {nth}");
        let stale = other.put(KEY, "late".into(), &matches(last)).await.unwrap_err();
        assert_eq!(stale.kind(), StoreErrorKind::Conflict);
        assert!(objects.keys().len() <= 3, "moment {nth}: {:?}", objects.keys());
        if outcome.is_ok() {
            return nth;
        }
    }
    unreachable!("a write has a last moment")
}

#[tokio::test(start_paused = true)]
async fn a_process_that_dies_between_any_two_requests_spoils_nothing() {
    let create = dies_everywhere(&[], "the first").await;
    let update = dies_everywhere(&["one", "two", "three"], "an update").await;
    let delete = dies_everywhere(&["one", "two", "three"], "").await;
    let again = dies_everywhere(&["one", "two", ""], "after a deletion").await;
    assert!(create >= 6 && update >= 8 && delete >= 8 && again >= 8, "{create}, {update}, {delete}, {again} moments");
}

/// The candidate of the article in which a stalled candidate leads an epoch that is over.
#[tokio::test(start_paused = true)]
async fn a_stalled_candidate_whose_number_has_been_removed_wins_nothing() {
    let objects = MemoryCreateOnlyStore::new();
    let leader = SequencedStore::new(objects.clone());
    write(&leader, "one").await.unwrap();

    let (go, gone) = tokio::sync::oneshot::channel::<()>();
    let gone = gone.shared();
    let stalled = SequencedStore::new(objects.with_hook(move |request, is_done| {
        let gone = gone.clone();
        async move {
            if matches!(request, Request::Create(..)) && !is_done {
                let _ = gone.await;
            }
            Ok(())
        }
        .boxed()
    }));
    assert_eq!(body(&stalled).await, Some(("one".to_owned(), 1)));
    let candidate = tokio::spawn(async move {
        let won = stalled.put(KEY, "stalled".into(), &matches(1)).await;
        (won, stalled)
    });
    for renewal in ["two", "three", "four", "five"] {
        write(&leader, renewal).await.unwrap();
    }
    assert_eq!(objects.keys(), [number(4), number(5)]);
    go.send(()).unwrap();
    let (won, stalled) = candidate.await.unwrap();
    assert_eq!(won.unwrap_err().kind(), StoreErrorKind::Ambiguous);
    assert_eq!(objects.keys(), [number(2), number(4), number(5)], "the creation was committed below the highest");
    assert_eq!(body(&stalled).await, Some(("five".to_owned(), 5)), "its own write is not what it finds");
    assert_eq!(body(&leader).await, Some(("five".to_owned(), 5)));
    write(&leader, "six").await.unwrap();
    assert_eq!(objects.keys(), [number(5), number(6)], "the next write removes it");
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_is_lost_leaves_the_outcome_open_and_a_read_shows_it() {
    let objects = MemoryCreateOnlyStore::new();
    let lossy = SequencedStore::new(objects.with_hook(|request, is_done| {
        let is_lost = is_done && matches!(request, Request::Create(..));
        let lost = || StoreError::new(StoreErrorKind::Ambiguous, "the answer is lost");
        async move { if is_lost { Err(lost()) } else { Ok(()) } }.boxed()
    }));
    assert_eq!(write(&lossy, "one").await.unwrap_err().kind(), StoreErrorKind::Ambiguous);
    assert_eq!(body(&lossy).await, Some(("one".to_owned(), 1)));
}

#[tokio::test(start_paused = true)]
async fn a_listing_that_fails_after_the_creation_leaves_the_outcome_open() {
    let objects = MemoryCreateOnlyStore::new();
    write(&SequencedStore::new(objects.clone()), "one").await.unwrap();
    let creations = Arc::new(AtomicUsize::new(0));
    let store = SequencedStore::new(objects.with_hook(move |request, is_done| {
        if matches!(request, Request::Create(..)) {
            creations.fetch_add(1, Ordering::Relaxed);
        }
        let fails = matches!(request, Request::List(..)) && !is_done && creations.load(Ordering::Relaxed) > 0;
        let wait = Some(Duration::from_secs(7));
        let slow_down = move || StoreError::new(StoreErrorKind::Rejected, "slow down").with_retry_after(wait);
        async move { if fails { Err(slow_down()) } else { Ok(()) } }.boxed()
    }));
    let error = write(&store, "two").await.unwrap_err();
    assert_eq!((error.kind(), error.retry_after()), (StoreErrorKind::Ambiguous, Some(Duration::from_secs(7))));
    assert_eq!(body(&SequencedStore::new(objects)).await, Some(("two".to_owned(), 2)));
}

#[tokio::test(start_paused = true)]
async fn objects_of_others_and_locks_below_are_no_numbers() {
    let objects = MemoryCreateOnlyStore::new();
    let store = SequencedStore::new(objects.clone());
    let strange = [
        KEY.to_owned(),
        format!("{KEY}/"),
        format!("{KEY}/notes.txt"),
        format!("{KEY}/99999999999999999999"),
        format!("{KEY}/00000000000000000000"),
        format!("{KEY}/0000000000000000009"),
        format!("{KEY}/000000000000000000099"),
        format!("{KEY}/below/{:020}", 99),
        format!("{KEY}-other/{:020}", 99),
    ];
    for key in &strange {
        objects.create(key, "foreign\n".into()).await.unwrap();
    }
    assert_eq!(body(&store).await, None);
    for round in 1..=4 {
        write(&store, "own").await.unwrap();
        assert_eq!(body(&store).await, Some(("own".to_owned(), round)));
    }
    let keys = ListedObject::keys(store.list("locks/").await.unwrap());
    assert_eq!(keys, [KEY.to_owned(), format!("{KEY}-other"), format!("{KEY}/below")]);
    assert_eq!(ListedObject::keys(store.list("locks/key/").await.unwrap()), [format!("{KEY}/below")]);
    store.discard(KEY).await.unwrap();
    let mut left = strange.to_vec();
    left.sort();
    assert_eq!(objects.keys(), left, "nothing of others is removed");
}

#[tokio::test(start_paused = true)]
async fn a_key_that_could_be_taken_for_another_is_refused() {
    let store = SequencedStore::new(MemoryCreateOnlyStore::new());
    for key in ["", "/a", "a/", &format!("a/{:020}", 7), &format!("{:020}/b", 7)] {
        for error in [
            store.get(key).await.unwrap_err(),
            store.put(key, "body".into(), &Precondition::Absent).await.unwrap_err(),
            store.delete(key, Some(&Version::new("1"))).await.unwrap_err(),
            store.discard(key).await.unwrap_err(),
        ] {
            assert_eq!(error.kind(), StoreErrorKind::Fatal, "{key}: {error}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn the_last_number_blocks_every_write() {
    let objects = MemoryCreateOnlyStore::new();
    objects.create(&number(u64::MAX), "last\n".into()).await.unwrap();
    let store = SequencedStore::new(objects);
    assert_eq!(body(&store).await, Some(("last".to_owned(), u64::MAX)));
    let error = store.put(KEY, "next".into(), &matches(u64::MAX)).await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Fatal, "{error}");
    for version in ["", "0", "07", "+7", "seven", "99999999999999999999"] {
        let error = store.put(KEY, "next".into(), &Precondition::Matches(Version::new(version))).await.unwrap_err();
        assert_eq!(error.kind(), StoreErrorKind::Conflict, "{version}: {error}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_object_that_is_not_complete_is_neither_a_record_nor_a_deletion() {
    for part in ["", "{\"holderIdentity\":"] {
        let objects = MemoryCreateOnlyStore::new();
        let store = SequencedStore::new(objects.clone());
        write(&store, "whole").await.unwrap();
        objects.create(&number(2), part.into()).await.unwrap();
        for store in [store, SequencedStore::new(objects.clone())] {
            let error = store.get(KEY).await.unwrap_err();
            assert_eq!(error.kind(), StoreErrorKind::Rejected, "{error}");
            assert!(error.to_string().contains(&number(2)), "{error}");
            assert!(store.put(KEY, "over it".into(), &matches(1)).await.is_err());
            assert!(store.put(KEY, "over it".into(), &Precondition::Absent).await.is_err());
        }
        let listed = SequencedStore::new(objects.clone()).list("locks/").await.unwrap();
        assert_eq!(ListedObject::keys(listed), [KEY], "it exists as far as is known");
    }
}

#[tokio::test(start_paused = true)]
async fn bodies_are_kept_byte_for_byte() {
    let store = SequencedStore::new(MemoryCreateOnlyStore::new());
    for (index, body) in ["\n", "\n\n", "a\n", "\0"].into_iter().enumerate() {
        let key = format!("bodies/{index}");
        store.put(&key, body.into(), &Precondition::Absent).await.unwrap();
        assert_eq!(store.get(&key).await.unwrap().unwrap().body, body);
    }
    let largest = Bytes::from(vec![b'\n'; MAX_BODY_BYTES]);
    store.put("largest", largest.clone(), &Precondition::Absent).await.unwrap();
    assert_eq!(store.get("largest").await.unwrap().unwrap().body, largest);
}

/// A lock that is removed by hand begins anew, also for processes that know its last number.
#[tokio::test(start_paused = true)]
async fn a_discarded_lock_begins_anew_for_everybody() {
    let objects = MemoryCreateOnlyStore::new();
    let (one, other) = (SequencedStore::new(objects.clone()), SequencedStore::new(objects.clone()));
    for text in ["a", "b", "c"] {
        write(&one, text).await.unwrap();
    }
    assert_eq!(body(&other).await, Some(("c".to_owned(), 3)));
    one.discard(KEY).await.unwrap();
    assert!(objects.keys().is_empty());
    assert_eq!(body(&other).await, None);
    write(&one, "anew").await.unwrap();
    assert_eq!(body(&other).await, Some(("anew".to_owned(), 1)));
}

/// A reader that looked long ago, and whose place and the number after it are both gone.
#[tokio::test(start_paused = true)]
async fn a_reader_whose_place_is_gone_sees_the_newest() {
    for stray in [None, Some("of another"), Some("place")] {
        let objects = MemoryCreateOnlyStore::new();
        let (writer, reader) = (SequencedStore::new(objects.clone()), SequencedStore::new(objects.clone()));
        write(&writer, "place").await.unwrap();
        assert_eq!(body(&reader).await, Some(("place".to_owned(), 1)));
        for text in ["b", "c", "d", "e"] {
            write(&writer, text).await.unwrap();
        }
        // A creation of another candidate that is committed at the number beyond the reader's place, long after its
        // time.
        if let Some(stray) = stray {
            objects.create(&number(2), format!("{stray}\n").into()).await.unwrap();
        }
        assert_eq!(body(&reader).await, Some(("e".to_owned(), 5)));
    }
}

#[tokio::test(start_paused = true)]
async fn ages_come_with_the_answer_that_shows_the_version() {
    let objects = MemoryCreateOnlyStore::new();
    write(&SequencedStore::new(objects.clone()), "one").await.unwrap();
    tokio::time::advance(Duration::from_secs(9)).await;
    let found = SequencedStore::new(objects).get(KEY).await.unwrap().unwrap();
    assert_eq!(found.age, Some(Duration::from_secs(9)));
}
