//! The suites pass correct stores, and find every store with a known fault.

use std::time::Duration;

use leaderelection::implement::{ConditionalStore, ConditionalStoreExt, ListedObject};
use leaderelection::{LeaderElectionRecord, Majority, MemoryLock, MemoryStore, ObjectLock};
use leaderelection_conformance::{Effort, check_lock, check_store};

use crate::broken_store::{Breakage, Broken};

#[tokio::test(flavor = "multi_thread")]
async fn memory_store_conforms() {
    let store = MemoryStore::new();
    check_store(store.clone(), "suite", Effort::default()).await;
    assert_eq!(
        ListedObject::keys(store.list("").await.unwrap()),
        Vec::<String>::new(),
        "the suite cleans up behind itself"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn memory_lock_conforms() {
    let store = MemoryStore::new();
    check_lock(move |key, identity| MemoryLock::new(store.clone(), key, identity), Effort::default()).await;
}

#[tokio::test]
async fn one_thread_suffices() {
    check_store(MemoryStore::new(), "suite", Effort { rounds: 2, racers: 8 }).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_whose_versions_are_hashes_conforms() {
    check_store(Broken::new(Breakage::ContentVersions), "suite", Effort::default()).await;
}

#[tokio::test]
async fn a_lock_whose_versions_are_hashes_conforms() {
    let store = Broken::new(Breakage::ContentVersions);
    let new_lock = move |key: &str, identity: &str| ObjectLock::new(store.clone(), key, identity);
    check_lock(new_lock, Effort { rounds: 1, racers: 2 }).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_without_conditional_deletions_conforms_if_it_says_so() {
    let store = Broken::new(Breakage::NoConditionalDelete);
    check_store(store.clone(), "suite", Effort::default()).await;
    assert_eq!(ListedObject::keys(store.list("").await.unwrap()), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_that_rejects_and_loses_answers_under_load_conforms() {
    check_store(Broken::new(Breakage::Overloaded), "suite", Effort::default()).await;
}

#[tokio::test(start_paused = true)]
async fn a_store_that_limits_rates_conforms() {
    check_store(Broken::new(Breakage::Limited), "suite", Effort { rounds: 4, racers: 8 }).await;
}

#[tokio::test(start_paused = true)]
async fn a_lock_that_limits_rates_conforms_and_every_race_has_a_winner() {
    let store = Broken::new(Breakage::Limited);
    let limited = store.clone();
    let new_lock = move |key: &str, identity: &str| ObjectLock::new(limited.clone(), key, identity);
    check_lock(new_lock, Effort { rounds: 1, racers: 8 }).await;
    let raced = ListedObject::keys(store.list("suite-updaters").await.unwrap());
    assert_eq!(raced.len(), 12);
    for key in raced {
        let body = store.get(&key).await.unwrap().expect("a record").body;
        let record = LeaderElectionRecord::from_json(&body, Duration::MAX).unwrap();
        let write_id = record.write_id.unwrap_or_default();
        assert!(write_id.starts_with("updaters of race "), "nobody was allowed to update {key}: {write_id}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_broken_store_is_caught() {
    for (fault, verdict) in [
        (Breakage::ConstantVersion, "two contents have the version same"),
        (Breakage::NoPreconditions, "a second create was accepted"),
        (Breakage::CheckThenAct, "at most one succeeds"),
        (Breakage::UpdateCreates, "an update of a missing object was accepted"),
        (Breakage::UnconditionalDelete, "a stale deletion was accepted"),
        (Breakage::DeletesAllTheSame, "a stale deletion failed with Fatal, but deleted the object"),
        (Breakage::VersionFromAnotherResponse, "a body and a version from the same response"),
        (Breakage::HiddenRetry, "a call that had nothing to conflict with"),
        (Breakage::LostUpdate, "its write is not there"),
        (Breakage::RestartedVersions, "created anew, an object has the version"),
        (Breakage::Cache, "after an update, a read shows"),
        (Breakage::AnySize, "a write of an empty body was accepted"),
        (Breakage::ListsEverything, "before anything was created, the list is"),
        (Breakage::ListsOtherVersions, "the list shows the version"),
        (Breakage::ForgetsBetweenPages, "all pages of `list_page` together"),
        (Breakage::IgnoresWhereAPageBegins, "a page that is `seekable`"),
        (Breakage::ExaggeratesAges, "after its creation, its age is 3600"),
        (Breakage::TellsTheAgeOfTheObject, "after an update, its age is"),
    ] {
        let message = verdict_on(check_store(Broken::new(fault), "suite", Effort::default())).await;
        assert!(message.contains(verdict), "{fault:?} was caught for another reason: {message}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn locks_on_broken_stores_are_caught() {
    for (fault, verdict) in [
        (Breakage::ConstantVersion, "two contents have the version same"),
        (Breakage::NoPreconditions, "a second create was accepted"),
        (Breakage::CheckThenAct, "at most one succeeds"),
        (Breakage::HiddenRetry, "a call that had nothing to conflict with"),
        (Breakage::LostUpdate, "its write is not there"),
        (Breakage::Cache, "after an update, a read shows"),
    ] {
        let store = Broken::new(fault);
        let new_lock = move |key: &str, identity: &str| ObjectLock::new(store.clone(), key, identity);
        let message = verdict_on(check_lock(new_lock, Effort::default())).await;
        assert!(message.contains(verdict), "{fault:?} was caught for another reason: {message}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lock_made_of_two_conforms() {
    let (old, new) = (MemoryStore::new(), MemoryStore::new());
    check_lock(move |key, identity| both(&old, &new, key, identity), Effort::default()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lock_made_of_two_is_caught_if_one_of_them_is_broken() {
    let mixed = "which none of the racing creators of race 1 wrote";
    for (fault, is_old, verdict) in [
        (Breakage::NoPreconditions, true, "after a second create that was refused, a read shows"),
        (Breakage::CheckThenAct, true, mixed),
        (Breakage::ConstantVersion, true, "after a stale update that was refused, a read shows"),
        (Breakage::HiddenRetry, true, "a call that had nothing to conflict with"),
        (Breakage::HiddenRetry, false, "a call that had nothing to conflict with"),
        (Breakage::LostUpdate, true, mixed),
        (Breakage::LostUpdate, false, mixed),
        (Breakage::Cache, true, "after an update, a read shows"),
        (Breakage::Cache, false, "after an update, a read shows"),
    ] {
        let (broken, good) = (Broken::new(fault), MemoryStore::new());
        let new_lock = move |key: &str, identity: &str| {
            if is_old { both(&broken, &good, key, identity) } else { both(&good, &broken, key, identity) }
        };
        let message = verdict_on(check_lock(new_lock, Effort::default())).await;
        assert!(message.contains(verdict), "{fault:?}, {is_old} was caught for another reason: {message}");
    }
}

/// The first half of a rejected write is committed, so the write cannot be repeated as it was.
#[tokio::test(start_paused = true)]
async fn a_lock_made_of_two_fails_if_the_second_store_limits_rates() {
    for (is_old, conforms) in [(true, true), (false, false)] {
        let (limited, good) = (Broken::new(Breakage::Limited), MemoryStore::new());
        let new_lock = move |key: &str, identity: &str| {
            if is_old { both(&limited, &good, key, identity) } else { both(&good, &limited, key, identity) }
        };
        let suite = check_lock(new_lock, Effort { rounds: 2, racers: 8 });
        if conforms {
            suite.await;
        } else {
            let message = verdict_on(suite).await;
            assert!(
                message.contains("stale update: cannot update lock") && message.contains("(inconclusive)"),
                "{message}"
            );
        }
    }
}

fn both(
    old: &(impl ConditionalStore + Clone),
    new: &(impl ConditionalStore + Clone),
    key: &str,
    identity: &str,
) -> Majority {
    Majority::both(ObjectLock::new(old.clone(), key, identity), ObjectLock::new(new.clone(), key, identity)).unwrap()
}

/// The message with which a suite panicked.
async fn verdict_on(suite: impl Future<Output = ()> + Send + 'static) -> String {
    let panic = tokio::spawn(suite).await.expect_err("a broken store passed").into_panic();
    *panic.downcast::<String>().expect("a suite panics with a message")
}
