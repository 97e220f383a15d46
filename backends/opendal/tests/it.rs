//! The adapters for operators of `opendal`, in memory: OpenDAL's memory can create and not replace on a condition.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

use leaderelection::implement::{ConditionalStore as _, MAX_BODY_BYTES, Precondition};
use leaderelection::{ObjectLock, StoreError, StoreErrorKind};
use leaderelection_conformance::{Effort, ProbeConfig, Verdict, check_lock, check_store, probe};
use leaderelection_opendal::{OpendalAdapter, OpendalObjects};
use leaderelection_sequenced::{CreateOnlyStore as _, SequencedStore};
use opendal::layers::CapabilityOverrideLayer;
use opendal::services::Memory;
use opendal::{Capability, Operator};

fn memory() -> Operator {
    Operator::new(Memory::default()).expect("an operator")
}

fn objects() -> OpendalObjects {
    OpendalObjects::new(memory()).expect("it can create")
}

/// A service with other capabilities.
fn other(change: fn(Capability) -> Capability) -> Operator {
    memory().layer(CapabilityOverrideLayer::new(change))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sequenced_store_over_a_service_keeps_its_contract() {
    check_store(SequencedStore::new(objects()), "conformance", Effort { rounds: 4, racers: 16 }).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lock_in_a_sequenced_store_keeps_its_contract() {
    let store = SequencedStore::new(objects());
    let new_lock = move |key: &str, identity: &str| ObjectLock::new(store.clone(), key, identity);
    check_lock(new_lock, Effort { rounds: 4, racers: 16 }).await;
}

#[tokio::test]
async fn the_probe_finds_a_sequenced_store_fit() {
    let report = probe(SequencedStore::new(objects()), &ProbeConfig::default()).await;
    assert_eq!(report.verdict(), Verdict::Fit, "{report}");
}

#[test]
fn what_a_service_can_do_is_known_at_construction() {
    let refused = |answer: Result<(), StoreError>| {
        let error = answer.expect_err("refused");
        assert_eq!(error.kind(), StoreErrorKind::Fatal);
        error.to_string()
    };
    let adapter = |operator| OpendalAdapter::new(operator).map(drop);
    let objects = |operator| OpendalObjects::new(operator).map(drop);

    let text = refused(adapter(memory()));
    assert!(text.contains("the service memory of opendal can create an object conditionally, but not rep"), "{text}");
    assert!(text.contains("SequencedStore over OpendalObjects"), "{text}");
    objects(memory()).expect("it can create");

    let neither = || other(|can| Capability { write_with_if_not_exists: false, ..can });
    for text in [refused(adapter(neither())), refused(objects(neither()))] {
        assert!(text.contains("the service memory of opendal can neither create nor replace"), "{text}");
    }
    let text = refused(objects(other(|can| Capability { list: false, ..can })));
    assert!(text.contains("the service memory of opendal cannot read, list and delete"), "{text}");

    adapter(other(|can| Capability { write_with_if_match: true, ..can })).expect("by the ETag");
    adapter(other(|can| Capability { write_with_if_version_match: true, ..can })).expect("by the version");
}

#[tokio::test]
async fn a_key_that_would_not_come_back_the_same_is_named() {
    let objects = objects();
    for key in ["", "/a", "a/", "a//b", "../a", " a", "a\tb"] {
        for error in [
            objects.read(key).await.map(drop).expect_err("refused"),
            objects.create(key, "{}\n".into()).await.expect_err("refused"),
            objects.remove(key).await.expect_err("refused"),
        ] {
            assert_eq!(error.kind(), StoreErrorKind::Fatal, "{key:?}");
            assert!(error.to_string().contains(&format!("the key {key:?} would be changed by")), "{error}");
        }
    }
    for key in ["a%20b", "a b", "~a#b", "ä", "b/c", "b/c/d"] {
        objects.create(key, "{}\n".into()).await.expect("created");
        let listed = objects.list(key, None).await.expect("a listing");
        assert!(listed.iter().any(|entry| entry.key == key), "{listed:?}");
        assert!(listed.iter().all(|entry| entry.key.starts_with(key)), "{listed:?}");
    }
}

#[tokio::test]
async fn a_large_object_is_not_ours() {
    let operator = memory();
    operator.write("photo", vec![0xff; MAX_BODY_BYTES + 2]).await.expect("written");
    let error = OpendalObjects::new(operator).expect("objects").read("photo").await.expect_err("too large");
    assert_eq!(error.kind(), StoreErrorKind::Unreadable);
}

#[tokio::test]
async fn a_second_creation_is_a_conflict_and_a_deletion_is_refused() {
    let objects = objects();
    objects.create("key", "first\n".into()).await.expect("created");
    let error = objects.create("key", "second\n".into()).await.expect_err("there is one");
    assert_eq!(error.kind(), StoreErrorKind::Conflict, "{error:?}");
    assert_eq!(objects.read("key").await.expect("read").expect("an object").bytes, "first\n");

    let claims_more = other(|can| Capability { write_with_if_match: true, ..can });
    let adapter = OpendalAdapter::new(claims_more).expect("an adapter");
    adapter.put("key", "{}".into(), &Precondition::Absent).await.expect_err("memory has no ETag");
    let error = adapter.delete("key", Some(&leaderelection::implement::Version::new("1"))).await.expect_err("refused");
    assert_eq!(error.kind(), StoreErrorKind::Fatal);
    assert!(error.to_string().starts_with("memory://"), "{error}");
    assert!(error.to_string().contains("not deleted, because opendal does not tell"), "{error}");
}
