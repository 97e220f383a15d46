//! The requests of a sequenced store, and what it leaves behind.

use std::sync::{Arc, Mutex};

use futures_util::FutureExt as _;
use leaderelection::implement::{ConditionalStore, Precondition};
use leaderelection_sequenced::{DEFAULT_KEEP, MemoryCreateOnlyStore, Request, SequencedStore};

use super::{KEY, body, matches, write};

/// Counts the requests of a store by kind.
fn counted(objects: &MemoryCreateOnlyStore) -> (MemoryCreateOnlyStore, Arc<Mutex<Vec<Request>>>) {
    let requests = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&requests);
    let counted = objects.with_hook(move |request, is_done| {
        if !is_done {
            seen.lock().unwrap().push(request);
        }
        async { Ok(()) }.boxed()
    });
    (counted, requests)
}

fn kinds(requests: &Mutex<Vec<Request>>) -> String {
    let kind = |request: &Request| match request {
        Request::Read(_) => 'r',
        Request::Create(..) => 'c',
        Request::List(..) => 'l',
        Request::Remove(_) => 'd',
        _ => '?',
    };
    std::mem::take(&mut *requests.lock().unwrap()).iter().map(kind).collect()
}

#[tokio::test(start_paused = true)]
async fn the_costs_are_those_that_are_told() {
    let objects = MemoryCreateOnlyStore::new();
    let (leader, leads) = counted(&objects);
    let (follower, follows) = counted(&objects);
    let (leader, follower) = (SequencedStore::new(leader), SequencedStore::new(follower));
    write(&leader, "1").await.unwrap();
    for version in 1..4 {
        leader.put(KEY, "renewal".into(), &matches(version)).await.unwrap();
    }
    kinds(&leads);
    leader.put(KEY, "renewal".into(), &matches(4)).await.unwrap();
    assert_eq!(kinds(&leads), "cld", "a renewal");

    body(&follower).await;
    assert_eq!(kinds(&follows), "lrl", "the first read");
    for _ in 0..2 {
        let mut polls = String::new();
        for _ in 0..10 {
            body(&follower).await;
            polls += &kinds(&follows);
        }
        assert_eq!(polls, "rr".repeat(9) + "rl", "reads that find nothing new");
    }
    for (writes, expected) in [(1, "rrl"), (2, "rrrl"), (3, "rrlrl")] {
        for _ in 0..writes {
            write(&leader, "new").await.unwrap();
        }
        body(&follower).await;
        assert_eq!(kinds(&follows), expected, "a read that finds {writes} new writes");
    }
    // A takeover on what a listing has shown, and one on what was only read.
    let newest = body(&follower).await.unwrap().1;
    kinds(&follows);
    follower.put(KEY, "takeover".into(), &matches(newest)).await.unwrap();
    assert_eq!(kinds(&follows), "lcld", "a takeover is confirmed by a listing before it");
}

#[tokio::test]
async fn thousands_of_renewals_leave_the_kept_objects() {
    for keep in [DEFAULT_KEEP, 10] {
        let objects = MemoryCreateOnlyStore::new();
        let store = SequencedStore::new(objects.clone()).keep(keep);
        let mut version = store.put(KEY, "first".into(), &Precondition::Absent).await.unwrap();
        for _ in 0..10_000 {
            version = store.put(KEY, "renewal".into(), &Precondition::Matches(version)).await.unwrap();
            assert!(objects.keys().len() as u64 <= keep);
        }
        assert_eq!(objects.keys().len() as u64, keep);
        let kept = store.history(KEY).await.unwrap();
        assert_eq!(kept.len() as u64, keep);
        assert_eq!(kept.last().map(|object| object.version.clone()), Some(version));
    }
}

/// A sweep that is longer than a request may take would make every write an ambiguous one.
#[tokio::test(start_paused = true)]
async fn no_write_removes_more_than_a_few_objects() {
    let (objects, requests) = counted(&MemoryCreateOnlyStore::new());
    let long = SequencedStore::new(objects.clone()).keep(1000);
    for _ in 0..200 {
        write(&long, "renewal").await.unwrap();
    }
    for (keep, left) in [(100, 100..=112), (2, 2..=2)] {
        let shorter = SequencedStore::new(objects.clone()).keep(keep);
        for _ in 0..40 {
            kinds(&requests);
            write(&shorter, "renewal").await.unwrap();
            let removals = kinds(&requests).matches('d').count();
            assert!(removals <= 16, "{removals} removals by one write");
        }
        let count = objects.keys().len();
        assert!(left.contains(&count), "{count} objects are left of {keep}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_long_history_is_not_listed_by_every_write() {
    let (objects, requests) = counted(&MemoryCreateOnlyStore::new());
    let store = SequencedStore::new(objects.clone()).keep(80);
    for _ in 0..200 {
        write(&store, "renewal").await.unwrap();
        assert!(objects.keys().len() <= 90, "an eighth more than is kept");
    }
    assert!((80..=90).contains(&objects.keys().len()), "{}", objects.keys().len());
    let requests = requests.lock().unwrap();
    let of_all = requests.iter().filter(|request| matches!(request, Request::List(_, None))).count();
    assert!(of_all <= 200 / 10 + 2, "{of_all} listings of all objects");
}
