//! The adapter for stores of `object_store`, in memory.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod contest;
mod faulty;

use std::sync::Arc;
use std::time::Duration;

use leaderelection::fence::FencedObject;
use leaderelection::implement::{
    ConditionalStore as _, ConditionalStoreExt, ListedObject, MAX_BODY_BYTES, Precondition, Version,
};
use leaderelection::{
    DefaultLeaderElector, Elector, LeaderCallbacks, LeaderElectionConfig, ObjectStoreBasedLock as _, RunOutcome,
    StoreErrorKind,
};
use leaderelection_conformance::{CheckKind, Effort, Outcome, ProbeConfig, Verdict, check_lock, check_store, probe};
use leaderelection_object_store::{ObjectStoreAdapter, ObjectStoreLock};
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::prefix::PrefixStore;
use object_store::{Error, ObjectStore as _, ObjectStoreExt as _, PutOptions};
use tokio_util::sync::CancellationToken;

use faulty::{Fault, Faulty};

fn in_memory() -> ObjectStoreAdapter {
    ObjectStoreAdapter::new(Arc::new(InMemory::new()))
}

/// An adapter whose writes suffer these faults, one after the other.
fn with_faults(faults: impl IntoIterator<Item = Fault>) -> (Arc<Faulty>, ObjectStoreAdapter) {
    let store = Arc::new(Faulty::new(faults));
    (Arc::clone(&store), ObjectStoreAdapter::new(store))
}

#[tokio::test(flavor = "multi_thread")]
async fn the_store_keeps_its_contract() {
    let store = in_memory();
    check_store(store.clone(), "conformance", Effort::default()).await;
    assert_eq!(ListedObject::keys(store.list("").await.unwrap()), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_part_of_a_store_keeps_its_contract() {
    let part = PrefixStore::new(InMemory::new(), "elections/of/ours");
    check_store(ObjectStoreAdapter::new(Arc::new(part)), "conformance", Effort { rounds: 2, racers: 16 }).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_lock_keeps_its_contract() {
    let store = in_memory();
    check_lock(move |key, identity| ObjectStoreLock::new(store.clone(), key, identity), Effort::default()).await;
}

/// A store with a version beside the ETag, as Google has it.
#[tokio::test(flavor = "multi_thread")]
async fn a_store_that_compares_its_versions_keeps_its_contract() {
    let (_, store) = with_faults([]);
    let written = store.put("key", "{}".into(), &Precondition::Absent).await.unwrap();
    assert_eq!(written.as_str(), "\"0\"·v0");
    check_store(store, "conformance", Effort { rounds: 2, racers: 16 }).await;
}

#[tokio::test]
async fn the_probe_forgives_that_there_are_no_conditional_deletions() {
    let store = in_memory();
    let report = probe(store.clone(), &ProbeConfig::default()).await;
    assert_eq!(report.verdict(), Verdict::Fit, "{report}");
    let last = report.checks().last().unwrap();
    assert_eq!((last.kind(), last.outcome()), (CheckKind::StaleDelete, Outcome::Inconclusive), "{report}");
    assert!(last.detail().contains("object_store has no deletion with a condition"), "{report}");
    assert_eq!(report.leftovers(), Vec::<String>::new(), "{report}");
    assert_eq!(ListedObject::keys(store.list("").await.unwrap()), Vec::<String>::new());
}

#[tokio::test]
async fn a_deletion_is_refused_whatever_its_version() {
    let store = in_memory();
    let version = store.put("key", "{}".into(), &Precondition::Absent).await.unwrap();
    for expected in [version, Version::new("another")] {
        let error = store.delete("key", Some(&expected)).await.unwrap_err();
        assert_eq!(error.kind(), StoreErrorKind::Fatal);
        assert!(error.to_string().starts_with("InMemory: key: not deleted, because object_store has no"), "{error}");
    }
    assert!(store.get("key").await.unwrap().is_some());
    store.discard("key").await.unwrap();
    assert!(store.get("key").await.unwrap().is_none());
    store.discard("key").await.unwrap();
}

#[tokio::test]
async fn a_conflict_has_either_name() {
    let already_exists = || Error::AlreadyExists { path: "key".to_owned(), source: "409".into() };
    let precondition = || Error::Precondition { path: "key".to_owned(), source: "412".into() };
    let known = Version::new("\"0\"·v0");
    for error in [already_exists, precondition] as [fn() -> Error; 2] {
        for condition in [Precondition::Absent, Precondition::Matches(known.clone())] {
            let (_, store) = with_faults([Fault::Answered(error)]);
            let refused = store.put("key", "{}".into(), &condition).await.unwrap_err();
            assert_eq!(refused.kind(), StoreErrorKind::Conflict, "{condition:?}: {refused:?}");
        }
    }
}

#[tokio::test]
async fn a_failure_without_a_kind_of_its_own_is_ambiguous() {
    let generic = || Error::Generic { store: "S3", source: "status code: 500".into() };
    for fault in [Fault::Answered(generic), Fault::CommitsAnd(generic)] {
        let (inner, store) = with_faults([fault]);
        let error = store.put("key", "{}".into(), &Precondition::Absent).await.unwrap_err();
        assert_eq!(error.kind(), StoreErrorKind::Ambiguous, "{error:?}");
        let text = leaderelection::causes::with_causes(&error).to_string();
        assert!(text.contains("its effect is unknown") && text.contains("status code: 500"), "{text}");
        assert_eq!(inner.attempts(), 1);
    }
}

#[tokio::test]
async fn a_store_without_conditions_is_refused_and_another_is_named() {
    let local = || Error::NotImplemented {
        operation: "`put_opts` with mode `PutMode::Update`".to_owned(),
        implementer: "LocalFileSystem(file:///)".to_owned(),
    };
    let (_, store) = with_faults([Fault::Answered(local)]);
    let error = store.put("key", "{}".into(), &Precondition::Absent).await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Fatal);
    assert!(error.to_string().contains("FileStore of leaderelection-backends or a file:/// URL"), "{error}");
    assert!(leaderelection::causes::with_causes(&error).to_string().contains("LocalFileSystem"), "{error:?}");
}

#[tokio::test]
async fn a_key_that_would_not_come_back_the_same_is_named() {
    let store = in_memory();
    for key in ["", "/a", "a/", "a//b", "../a", "a\tb"] {
        for error in [
            store.get(key).await.map(drop).unwrap_err(),
            store.put(key, "{}".into(), &Precondition::Absent).await.map(drop).unwrap_err(),
            store.discard(key).await.unwrap_err(),
        ] {
            assert_eq!(error.kind(), StoreErrorKind::Fatal, "{key:?}");
            assert!(error.to_string().contains(&format!("the key {key:?} would be changed by")), "{error}");
        }
    }
    assert_eq!(store.list("a//b").await.unwrap_err().kind(), StoreErrorKind::Fatal);
    for key in ["a%20b", "a b", "~a#b", "ä"] {
        store.put(key, "{}".into(), &Precondition::Absent).await.unwrap();
        assert_eq!(ListedObject::keys(store.list(key).await.unwrap()), [key]);
    }
}

#[tokio::test]
async fn somebodys_photo_is_not_read() {
    let inner = InMemory::new();
    let photo = vec![0xff; MAX_BODY_BYTES + 1];
    inner.put(&Path::from("photo"), photo.into()).await.unwrap();
    let store = ObjectStoreAdapter::new(Arc::new(inner));
    assert_eq!(store.get("photo").await.unwrap_err().kind(), StoreErrorKind::Unreadable);
}

/// A client with retries sends a write again whose first answer was lost, and the second answer is a conflict.
#[tokio::test]
async fn a_leader_recognises_its_write_behind_a_repeated_conflict() {
    let (inner, store) = with_faults([Fault::Repeated, Fault::Repeated, Fault::Repeated]);
    let lock = ObjectStoreLock::new(store, "locks/scheduler", "node-1");
    let callbacks = LeaderCallbacks::new().on_start_leading(|leadership| async move { leadership.lost().await });
    let config = LeaderElectionConfig::builder(lock.clone(), callbacks)
        .lease_duration(Duration::from_secs(60))
        .renew_deadline(Duration::from_secs(40))
        .retry_period(Duration::from_millis(50))
        .release_on_cancel(true)
        .build()
        .unwrap();
    let (elector, cancel) = (DefaultLeaderElector::new(config), CancellationToken::new());
    let mut handle = elector.handle();
    let running = tokio::spawn({
        let cancel = cancel.clone();
        async move { elector.run(cancel.cancelled_owned()).await }
    });
    // A candidate that took the lease for somebody else's would wait for a minute.
    let elected = tokio::time::timeout(Duration::from_secs(30), handle.elected()).await.expect("at once").unwrap();
    assert_eq!(elected.fencing_token(), 1, "a takeover of its own lease");
    // Two renewals are repeated, and the third one is not.
    inner.wait_for_attempts(7).await;
    cancel.cancel();
    let outcome = running.await.unwrap().unwrap();
    assert!(matches!(outcome, RunOutcome::Led { fencing_token, .. } if fencing_token == 1), "{outcome:?}");
    assert_eq!(lock.get().await.unwrap().unwrap().record.holder_identity, "");
}

#[tokio::test]
async fn a_call_that_is_given_up_is_not_repeated_any_more() {
    let (inner, store) = with_faults([Fault::RepeatedForEver]);
    let store = store.with_request_timeout(Duration::from_millis(50));
    let error = store.put("key", "{}".into(), &Precondition::Absent).await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Ambiguous);
    assert!(error.to_string().contains("no answer within 50ms"), "{error}");
    assert!(inner.attempts() > 0);
    assert_eq!(inner.running(), 0);
}

#[tokio::test]
async fn a_fenced_object_of_the_store_refuses_a_leader_of_the_past() {
    let fenced = FencedObject::<_, u32>::new(in_memory(), "table/manifest");
    fenced.write(7, &1).await.unwrap();
    assert!(fenced.write(6, &2).await.unwrap_err().stale().is_some());
    assert_eq!(fenced.read().await.unwrap().value, Some(1));
}

#[tokio::test]
async fn no_proxy_may_keep_a_record() {
    let inner = InMemory::new();
    let store = ObjectStoreAdapter::new(Arc::new(inner.clone()));
    store.put("key", "{}".into(), &Precondition::Absent).await.unwrap();
    let found = inner.get(&Path::from("key")).await.unwrap();
    let kept = found.attributes.get(&object_store::Attribute::CacheControl).map(AsRef::as_ref);
    assert_eq!(kept, Some("no-store"));
    // Another program's object without these attributes is read all the same.
    inner.put_opts(&Path::from("key"), "{ }".into(), PutOptions::default()).await.unwrap();
    assert_eq!(store.get("key").await.unwrap().unwrap().body, "{ }");
}
