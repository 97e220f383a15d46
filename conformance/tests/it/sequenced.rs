//! The suites on a store that is made of one that can only create.

use leaderelection::sequenced::{MemoryCreateOnlyStore, SequencedStore};
use leaderelection::{ConditionalStore, ObjectLock};
use leaderelection_conformance::{Effort, check_lock, check_store};

#[tokio::test(flavor = "multi_thread")]
async fn a_sequenced_store_conforms() {
    let objects = MemoryCreateOnlyStore::new();
    check_store(SequencedStore::new(objects.clone()), "suite", Effort::default()).await;
    assert!(SequencedStore::new(objects).list("").await.unwrap().is_empty(), "the suite deletes what it wrote");
}

/// Every candidate has a store of its own, as in a process of its own.
#[tokio::test(flavor = "multi_thread")]
async fn a_lock_of_a_sequenced_store_conforms() {
    let objects = MemoryCreateOnlyStore::new();
    let new_lock = |key: &str, identity: &str| ObjectLock::new(SequencedStore::new(objects.clone()), key, identity);
    check_lock(new_lock, Effort::default()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sequenced_store_with_a_history_conforms() {
    check_store(SequencedStore::new(MemoryCreateOnlyStore::new()).keep(40), "suite", Effort::default()).await;
    check_store(SequencedStore::new(MemoryCreateOnlyStore::new()).keep(1), "suite", Effort::default()).await;
}
