//! The fence holds in every order of the requests of two leaders, and its suite finds the stores on which it does not.

use std::panic::AssertUnwindSafe;

use futures_util::FutureExt as _;
use leaderelection::MemoryStore;
use leaderelection::implement::{ConditionalStoreExt as _, ListedObject};
use leaderelection_conformance::{Duel, check_fence};

use crate::broken_store::{Breakage, Broken};

#[tokio::test]
async fn every_order_of_the_requests_of_two_leaders_loses_nothing() {
    let store = MemoryStore::new();
    let orders = check_fence(store.clone(), "suite", Duel::default()).await;
    assert_eq!(orders, 235);
    assert_eq!(
        ListedObject::keys(store.list("").await.unwrap()),
        Vec::<String>::new(),
        "the suite cleans up behind itself"
    );
}

/// A test run has one write of each leader, and `.ci/deep` two.
#[tokio::test]
async fn nor_does_any_order_in_which_an_answer_is_lost() {
    let writes = std::env::var("LEADERELECTION_TEST_WRITES").map_or(1, |writes| writes.parse().expect("a number"));
    let duel = Duel { writes, loses_an_answer: true };
    let orders = if writes == 1 { 1_027 } else { 30_253 };
    assert_eq!(check_fence(MemoryStore::new(), "suite", duel).await, orders);
}

#[tokio::test]
async fn versions_that_are_hashes_suffice() {
    let duel = Duel { writes: 1, loses_an_answer: true };
    assert_eq!(check_fence(Broken::new(Breakage::ContentVersions), "suite", duel).await, 1_027);
}

#[tokio::test(start_paused = true)]
async fn a_store_that_rejects_and_loses_answers_suffices() {
    for fault in [Breakage::Overloaded, Breakage::Limited] {
        check_fence(Broken::new(fault), "suite", Duel { writes: 1, ..Duel::default() }).await;
    }
}

#[tokio::test]
async fn a_store_without_conditions_is_found() {
    for (fault, what) in [
        (Breakage::NoPreconditions, "were acknowledged; the contract says: a fenced object holds every write"),
        (Breakage::ConstantVersion, "were acknowledged; the contract says: a fenced object holds every write"),
        (Breakage::WritesAllTheSame, "were acknowledged; the contract says: a fenced object holds every write"),
        (Breakage::Cache, "it has version 2; the contract says: a write fails only if its token is stale"),
    ] {
        let check = check_fence(Broken::new(fault), "suite", Duel::default());
        let panic = AssertUnwindSafe(check).catch_unwind().await.expect_err(&format!("{fault:?} passed"));
        let message = panic.downcast::<String>().unwrap();
        assert!(message.contains(what) && message.contains("(the older leader reads; "), "{fault:?}: {message}");
    }
}
