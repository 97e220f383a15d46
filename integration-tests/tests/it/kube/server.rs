//! The store on the tests' own API server, or on the cluster that `LEADERELECTION_TEST_KUBE` names.

use std::time::Duration;

use bytes::Bytes;
use leaderelection::{
    ConditionalStore as _, LeaderElectionRecord, ListedObject, ObjectStoreBasedLock as _, Precondition, StoreErrorKind,
};
use leaderelection_backends::kubernetes::KubernetesLeaseLock;
use leaderelection_conformance::{Effort, check_lock};
use leaderelection_integration_tests::servers::kube_api::KubeApi;
use leaderelection_integration_tests::servers::unique_name;
use serde_json::json;

use super::store;
use crate::cloud::kube::Kube;

fn record(holder: &str, token: u64) -> LeaderElectionRecord {
    let mut record = LeaderElectionRecord::new(holder, Duration::from_secs(15));
    record.leader_transitions = token;
    record.write_id = Some(unique_name());
    record
}

fn body(holder: &str) -> Bytes {
    record(holder, 0).to_json().into()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn the_lock_keeps_its_contract() {
    let (kube, prefix) = (Kube::new().await, unique_name());
    let store = kube.lease_store();
    let new_lock =
        |key: &str, identity: &str| KubernetesLeaseLock::new(store.clone(), format!("{prefix}-{key}"), identity);
    check_lock(new_lock, Effort::default()).await;
    for key in ListedObject::keys(store.list(&prefix).await.expect("a listing")) {
        store.discard(&key).await.expect("deleted");
    }
}

#[tokio::test]
async fn an_update_does_not_bring_a_deleted_lease_back() {
    let kube = Kube::new().await;
    let (store, key) = (kube.lease_store(), unique_name());
    let version = store.put(&key, body("first"), &Precondition::Absent).await.expect("created");
    store.delete(&key, &version).await.expect("deleted");
    let update = async |version| store.put(&key, body("late"), &Precondition::Matches(version)).await;
    assert_eq!(update(version.clone()).await.expect_err("deleted").kind(), StoreErrorKind::Conflict);
    assert!(store.get(&key).await.expect("read").is_none());

    let second = store.put(&key, body("second"), &Precondition::Absent).await.expect("created again");
    assert_eq!(update(version).await.expect_err("another one").kind(), StoreErrorKind::Conflict);
    assert_eq!(store.get(&key).await.expect("read").expect("a Lease").version, second);
    store.discard(&key).await.expect("deleted");
}

#[tokio::test]
async fn a_listing_has_every_page_and_the_versions_of_reads() {
    let kube = Kube::new().await;
    let (store, prefix) = (kube.lease_store(), unique_name());
    let mut expected = Vec::new();
    for number in 0..105 {
        let key = format!("{prefix}-{number:03}");
        let version = store.put(&key, body("holder"), &Precondition::Absent).await.expect("created");
        expected.push(ListedObject::new(key, Some(version)));
    }
    let listed = store.list(&format!("{prefix}-")).await.expect("listed");
    assert_eq!(listed, expected);
    for object in listed {
        store.delete(&object.key, &object.version.expect("listed")).await.expect("deleted");
    }
    assert_eq!(store.list(&prefix).await.expect("listed"), []);
}

#[tokio::test]
async fn an_update_of_a_version_that_was_never_read_reads_first_and_keeps_what_is_there() {
    let api = KubeApi::start().await;
    let key = "scheduler";
    let theirs = json!({
        "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
        "metadata": {"name": key, "labels": {"app": "scheduler"}, "annotations": {"note": "keep"}},
        "spec": {"holderIdentity": "pod-1", "leaseDurationSeconds": 15, "leaseTransitions": 3},
    });
    api.plant(key, theirs);
    let version = store(&api.url()).get(key).await.expect("read").expect("a Lease").version;
    let fresh = store(&api.url());
    let before = api.requests().len();
    fresh.put(key, body("ours"), &Precondition::Matches(version)).await.expect("updated");
    let requests = api.requests().split_off(before);
    assert!(requests.len() == 2 && requests[0].starts_with("GET ") && requests[1].starts_with("PUT "), "{requests:?}");
    let lease = api.lease(key).expect("a Lease");
    assert_eq!(lease["metadata"]["labels"]["app"], "scheduler");
    assert_eq!(lease["metadata"]["annotations"]["note"], "keep");
    assert_eq!(lease["spec"]["holderIdentity"], "ours");
}

#[tokio::test]
async fn denied_access_names_the_verb_and_the_resource() {
    let api = KubeApi::start().await;
    let lock = KubernetesLeaseLock::new(store(&api.url()), "scheduler", "candidate");
    let version = lock.create(&record("candidate", 0)).await.expect("created");
    for verb in ["get", "create", "update"] {
        api.deny(verb);
        let error = match verb {
            "get" => lock.get().await.map(drop),
            "create" => lock.create(&record("candidate", 0)).await.map(drop),
            _ => lock.update(&record("candidate", 1), &version).await.map(drop),
        };
        let error = error.expect_err("denied");
        assert_eq!(error.kind(), StoreErrorKind::Fatal, "{verb}");
        let expected = format!("allow the verb {verb} on leases in the API group coordination.k8s.io (403 Forbidden)");
        assert!(error.in_full().contains(&expected), "{}", error.in_full());
    }
}

#[tokio::test]
async fn a_missing_namespace_and_a_missing_lease_are_told_apart() {
    let api = KubeApi::start().await;
    let config = kube::Config::new(api.url().parse().expect("a URL"));
    let elsewhere = leaderelection_backends::kubernetes::LeaseStore::new(config, "elsewhere").expect("a client");
    assert!(elsewhere.get("scheduler").await.expect("no error").is_none());
    let error = elsewhere.put("scheduler", body("a"), &Precondition::Absent).await.expect_err("no namespace");
    assert_eq!(error.kind(), StoreErrorKind::Fatal);
    assert!(error.to_string().contains("no such namespace; create it"), "{error}");
}

#[tokio::test]
async fn what_a_lease_cannot_hold_is_not_sent() {
    let api = KubeApi::start().await;
    let store = store(&api.url());
    for (key, body) in [("scheduler", &b"{}"[..]), ("scheduler", b""), ("a/b", &record("a", 0).to_json())] {
        let error = store.put(key, Bytes::copy_from_slice(body), &Precondition::Absent).await.expect_err("refused");
        assert_eq!(error.kind(), StoreErrorKind::Fatal, "{key}: {error}");
    }
    assert_eq!(api.requests(), Vec::<String>::new());
}
