//! The store on the tests' own API server, or on the cluster that `LEADERELECTION_TEST_KUBE` names.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use hyper::Method;
use hyper::header::{HeaderValue, USER_AGENT};
use leaderelection::implement::{ConditionalStore, ConditionalStoreExt, ListedObject, Precondition};
use leaderelection::{LeaderElectionRecord, ObjectLock, ObjectStoreBasedLock as _, StoreErrorKind};
use leaderelection_backends::kubernetes::{KubernetesLeaseLock, LeaseStore};
use leaderelection_conformance::{Effort, check_lock};
use leaderelection_integration_tests::proxy::Proxy;
use leaderelection_integration_tests::proxy::sign::Signer;
use leaderelection_integration_tests::servers::unique_name;
use serde_json::{Value, json};

use super::api::Api;
use crate::cloud::Service as _;
use crate::cloud::kube::Kube;
use crate::rounds;

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
    let (leases, names) = (store.clone(), prefix.clone());
    let new_lock =
        move |key: &str, identity: &str| KubernetesLeaseLock::new(leases.clone(), format!("{names}-{key}"), identity);
    check_lock(new_lock, Effort { rounds: rounds(16), racers: 64 }).await;
    for key in ListedObject::keys(store.list(&prefix).await.expect("a listing")) {
        store.discard(&key).await.expect("deleted");
    }
}

#[tokio::test]
async fn an_update_does_not_bring_a_deleted_lease_back() {
    let kube = Kube::new().await;
    let (store, key) = (kube.lease_store(), unique_name());
    let version = store.put(&key, body("first"), &Precondition::Absent).await.expect("created");
    store.delete(&key, Some(&version)).await.expect("deleted");
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
        store.delete(&object.key, Some(&object.version.expect("listed"))).await.expect("deleted");
    }
    assert_eq!(store.list(&prefix).await.expect("listed"), []);
}

#[tokio::test]
async fn an_update_of_an_unread_version_reads_first() {
    let (kube, key) = (Kube::new().await, unique_name());
    let api = Api::of(&kube);
    let theirs = json!({
        "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
        "metadata": {"name": key, "labels": {"app": "scheduler"}, "annotations": {"note": "keep"}},
        "spec": {"holderIdentity": "pod-1", "leaseDurationSeconds": 15, "leaseTransitions": 3},
    });
    assert_eq!(api.send(Method::POST, "", &theirs).await.0, 201);
    let version = kube.lease_store().get(&key).await.expect("read").expect("a Lease").version;
    let (proxy, fresh) = by_proxy(&kube, kube.signer()).await;
    fresh.put(&key, body("ours"), &Precondition::Matches(version)).await.expect("updated");
    let methods: Vec<_> = proxy.traffic().into_iter().map(|exchange| exchange.request.method).collect();
    assert_eq!(methods, [Method::GET, Method::PUT]);
    let (_, lease) = api.send(Method::GET, &key, &Value::Null).await;
    assert_eq!(lease["metadata"]["labels"]["app"], "scheduler");
    assert_eq!(lease["metadata"]["annotations"]["note"], "keep");
    assert_eq!(lease["spec"]["holderIdentity"], "ours");
    kube.lease_store().discard(&key).await.expect("deleted");
}

/// The proxy sends the requests of one method in the name of a user who may do nothing. On a real cluster, the user of the
/// tests must be allowed to impersonate others, and Kubernetes must check roles.
#[tokio::test]
async fn denied_access_names_the_verb_and_the_resource() {
    let kube = Kube::new().await;
    for (verb, method) in [("get", Method::GET), ("create", Method::POST), ("update", Method::PUT)] {
        let signer: Signer = Arc::new(move |request| {
            if request.method == method {
                request.headers.insert("impersonate-user", HeaderValue::from_static("nobody"));
            }
        });
        let (_proxy, store) = by_proxy(&kube, signer).await;
        let lock = ObjectLock::new(store, unique_name(), "candidate");
        let created = lock.create(&record("candidate", 0)).await;
        let error = match verb {
            "get" => lock.get().await.expect_err("denied"),
            "create" => created.expect_err("denied"),
            _ => lock.update(&record("candidate", 1), &created.expect("created")).await.expect_err("denied"),
        };
        assert_eq!(error.kind(), StoreErrorKind::Fatal, "{verb}");
        let expected = format!("allow the verb {verb} on leases in the API group coordination.k8s.io (403 Forbidden)");
        let said = format!("cannot {verb} resource \"leases\"");
        let text = error.in_full();
        assert!(text.contains(&expected) && text.contains(&said), "{text}");
        kube.lease_store().discard(lock.key()).await.expect("deleted");
    }
}

#[tokio::test]
async fn a_missing_namespace_and_a_missing_lease_are_told_apart() {
    let kube = Kube::new().await;
    let elsewhere = LeaseStore::new(kube.config(), unique_name()).expect("a client");
    assert!(elsewhere.get("scheduler").await.expect("no error").is_none());
    let error = elsewhere.put("scheduler", body("a"), &Precondition::Absent).await.expect_err("no namespace");
    assert_eq!(error.kind(), StoreErrorKind::Fatal);
    assert!(error.to_string().contains("no such namespace; create it"), "{error}");
}

#[tokio::test]
async fn every_request_says_who_asks_and_how_long_somebody_waits() {
    let (kube, key) = (Kube::new().await, unique_name());
    let (proxy, store) = by_proxy(&kube, kube.signer()).await;
    store.put(&key, body("ours"), &Precondition::Absent).await.expect("created");
    let version = store.get(&key).await.expect("read").expect("a Lease").version;
    store.put(&key, body("ours"), &Precondition::Matches(version)).await.expect("updated");
    store.list(&key).await.expect("listed");
    store.discard(&key).await.expect("deleted");
    let traffic = proxy.traffic();
    assert_eq!(traffic.len(), 5);
    for request in traffic.into_iter().map(|exchange| exchange.request) {
        let agent = request.headers[USER_AGENT].to_str().expect("text");
        assert!(agent.starts_with("leaderelection/"), "{agent}");
        let seconds = LeaseStore::DEFAULT_REQUEST_TIMEOUT.as_secs();
        assert!(request.target.contains(&format!("?timeout={seconds}000ms")), "{}", request.target);
        let writes = matches!(request.method, Method::POST | Method::PUT);
        assert_eq!(request.target.contains("&fieldManager=leaderelection"), writes, "{}", request.target);
    }
}

#[tokio::test]
async fn what_a_lease_cannot_hold_is_not_sent() {
    let kube = Kube::new().await;
    let (proxy, store) = by_proxy(&kube, kube.signer()).await;
    for (key, body) in [("scheduler", &b"{}"[..]), ("scheduler", b""), ("a/b", &record("a", 0).to_json())] {
        let error = store.put(key, Bytes::copy_from_slice(body), &Precondition::Absent).await.expect_err("refused");
        assert_eq!(error.kind(), StoreErrorKind::Fatal, "{key}: {error}");
    }
    assert!(proxy.traffic().is_empty(), "{:?}", proxy.traffic());
}

async fn by_proxy(kube: &Kube, signer: Signer) -> (Proxy, Arc<dyn ConditionalStore>) {
    let proxy = Proxy::start_with(&kube.address(), signer, kube.connector()).await;
    let store = kube.store_by(&proxy.url()).await;
    (proxy, store)
}
