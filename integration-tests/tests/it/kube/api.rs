//! The rules of API servers on which the store depends, request by request and without the store. Our own server, which the
//! tests use, and a real one have to give the same answers, but for one.

use http_body_util::BodyExt as _;
use hyper::{Method, Request};
use kube::Client;
use kube::client::Body;
use leaderelection::implement::ConditionalStoreExt as _;
use leaderelection_integration_tests::servers::kube_api::KubeApi;
use leaderelection_integration_tests::servers::unique_name;
use serde_json::{Value, json};

use crate::cloud::Service as _;
use crate::cloud::kube::Kube;
use crate::cloud::s3::S3;

/// The status of a refusal, its reason, and the resource that it is about.
type Refusal = (u16, &'static str, &'static str);

const BAD: Refusal = (400, "BadRequest", "");
const INVALID: Refusal = (422, "Invalid", "Lease");
const CONFLICT: Refusal = (409, "Conflict", "leases");
const NO_LEASE: Refusal = (404, "NotFound", "leases");

/// Requests to an API server as they are sent, and its answers.
pub(super) struct Api {
    client: Client,
    leases: String,
}

impl Api {
    pub(super) fn of(kube: &Kube) -> Self {
        Self::in_namespace(kube, &kube.config().default_namespace)
    }

    fn in_namespace(kube: &Kube, namespace: &str) -> Self {
        let mut config = kube.config();
        config.default_retry = false;
        let client = Client::try_from(config).expect("a client");
        Self { client, leases: format!("/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases") }
    }

    /// Sends a request about one Lease, or about all if the name is empty. Returns the status and the object of the answer.
    pub(super) async fn send(&self, method: Method, name: &str, body: &Value) -> (u16, Value) {
        let target = if name.is_empty() { self.leases.clone() } else { format!("{}/{name}", self.leases) };
        let body = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
        let request = Request::builder().method(method).uri(target).header("content-type", "application/json");
        let answer = self.client.send(request.body(Body::from(body)).expect("a request")).await.expect("an answer");
        let status = answer.status().as_u16();
        let content = answer.into_body().collect().await.expect("the whole answer").to_bytes();
        (status, serde_json::from_slice(&content).expect("JSON"))
    }

    async fn refuses(&self, method: Method, name: &str, body: &Value, refusal: Refusal) {
        let (status, said) = self.send(method.clone(), name, body).await;
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let answer = (status, text(&said["reason"]), text(&said["details"]["kind"]));
        assert_eq!((answer.0, &*answer.1, &*answer.2), refusal, "{method} {name} {body}: {said}");
    }

    /// Creates a Lease, and returns it as the server has it.
    async fn created(&self, name: &str) -> Value {
        let (status, lease) = self.send(Method::POST, "", &lease(name)).await;
        assert_eq!(status, 201, "{lease}");
        lease
    }
}

fn lease(name: &str) -> Value {
    json!({
        "apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": name},
        "spec": {"holderIdentity": "pod-1", "leaseDurationSeconds": 15, "leaseTransitions": 3},
    })
}

/// A copy with another value at a path such as `/metadata/uid`.
fn with(lease: &Value, path: &str, value: impl Into<Value>) -> Value {
    let mut lease = lease.clone();
    let (parent, field) = path.rsplit_once('/').expect("a path");
    lease.pointer_mut(parent).expect("a parent")[field] = value.into();
    lease
}

async fn a_lease_is_created_once(kube: &Kube) {
    let name = unique_name();
    let api = Api::of(kube);
    api.refuses(Method::GET, &name, &Value::Null, NO_LEASE).await;
    let created = api.created(&name).await;
    for field in ["uid", "resourceVersion", "creationTimestamp"] {
        assert!(created["metadata"][field].as_str().is_some_and(|value| !value.is_empty()), "{created}");
    }
    let (status, read) = api.send(Method::GET, &name, &Value::Null).await;
    assert_eq!((status, read), (200, created));
    api.refuses(Method::POST, "", &lease(&name), (409, "AlreadyExists", "leases")).await;

    let other = unique_name();
    let versioned = with(&lease(&other), "/metadata/resourceVersion", "7");
    api.refuses(Method::POST, "", &versioned, (500, "", "")).await;
    let elsewhere = Api::in_namespace(kube, &other);
    elsewhere.refuses(Method::POST, "", &lease(&other), (404, "NotFound", "namespaces")).await;
    elsewhere.refuses(Method::GET, &other, &Value::Null, NO_LEASE).await;
    kube.lease_store().discard(&name).await.expect("deleted");
}

async fn an_update_replaces_the_version_that_it_names(kube: &Kube) {
    let name = unique_name();
    let api = Api::of(kube);
    let first = api.created(&name).await;
    let (status, same) = api.send(Method::PUT, &name, &first).await;
    assert_eq!((status, same), (200, first.clone()), "nothing has changed");
    let (status, second) = api.send(Method::PUT, &name, &with(&first, "/spec/holderIdentity", "pod-2")).await;
    assert_eq!((status, &second["spec"]["holderIdentity"]), (200, &json!("pod-2")), "{second}");
    for field in ["uid", "creationTimestamp"] {
        assert_eq!(second["metadata"][field], first["metadata"][field], "{field}");
    }
    assert_ne!(second["metadata"]["resourceVersion"], first["metadata"]["resourceVersion"]);

    let third = with(&second, "/spec/holderIdentity", "pod-3");
    let stale = with(&third, "/metadata/resourceVersion", first["metadata"]["resourceVersion"].clone());
    api.refuses(Method::PUT, &name, &stale, CONFLICT).await;
    api.refuses(Method::PUT, &name, &with(&third, "/metadata/resourceVersion", ""), (422, "Invalid", "leases")).await;
    api.refuses(Method::PUT, &name, &with(&third, "/metadata/uid", "another"), CONFLICT).await;
    api.refuses(Method::PUT, &name, &with(&third, "/metadata/name", "another"), BAD).await;
    let (status, third) = api.send(Method::PUT, &name, &with(&third, "/metadata/uid", "")).await;
    assert_eq!((status, &third["metadata"]["uid"]), (200, &first["metadata"]["uid"]), "{third}");
    kube.lease_store().discard(&name).await.expect("deleted");
}

async fn an_update_creates_a_deleted_lease_anew_unless_it_names_the_uid(kube: &Kube) {
    let name = unique_name();
    let api = Api::of(kube);
    let deleted = api.created(&name).await;
    kube.lease_store().discard(&name).await.expect("deleted");
    api.refuses(Method::PUT, &name, &deleted, CONFLICT).await;
    api.refuses(Method::GET, &name, &Value::Null, NO_LEASE).await;
    if !kube.is_real() {
        // An update that names anything that was deleted creates nothing on ours.
        return api.refuses(Method::PUT, &name, &with(&deleted, "/metadata/uid", ""), CONFLICT).await;
    }
    let (status, second) = api.send(Method::PUT, &name, &with(&deleted, "/metadata/uid", "")).await;
    assert_eq!(status, 201, "whatever resourceVersion it names: {second}");
    assert_ne!(second["metadata"]["uid"], deleted["metadata"]["uid"]);
    api.refuses(Method::PUT, &name, &deleted, CONFLICT).await;
    kube.lease_store().discard(&name).await.expect("deleted");
}

async fn a_deletion_has_preconditions(kube: &Kube) {
    let name = unique_name();
    let api = Api::of(kube);
    let metadata = api.created(&name).await["metadata"].clone();
    let options = |uid: &Value, version: &Value| {
        let preconditions = json!({"uid": uid, "resourceVersion": version});
        json!({"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": preconditions})
    };
    let (uid, version) = (&metadata["uid"], &metadata["resourceVersion"]);
    let unmet = (409, "Conflict", "Lease");
    api.refuses(Method::DELETE, &name, &options(&json!("another"), version), unmet).await;
    api.refuses(Method::DELETE, &name, &options(uid, &json!("999999")), unmet).await;
    let (status, said) = api.send(Method::DELETE, &name, &options(uid, version)).await;
    assert_eq!((status, &said["status"]), (200, &json!("Success")), "{said}");
    api.refuses(Method::DELETE, &name, &Value::Null, NO_LEASE).await;
}

async fn the_fields_of_a_lease_are_validated_and_spelled_in_one_way(kube: &Kube) {
    let name = unique_name();
    let api = Api::of(kube);
    for (field, value, refusal) in [
        ("leaseDurationSeconds", json!(0), INVALID),
        ("leaseDurationSeconds", json!("15"), BAD),
        ("leaseTransitions", json!(-1), INVALID),
        ("leaseTransitions", json!(2_147_483_648_u64), BAD),
        ("holderIdentity", json!(1), BAD),
        ("renewTime", json!("yesterday"), BAD),
        ("renewTime", json!("2026-02-02T10:15:30Z"), BAD),
        ("renewTime", json!("2026-02-02T10:15:30.1234567Z"), BAD),
    ] {
        api.refuses(Method::POST, "", &with(&lease(&name), &format!("/spec/{field}"), value), refusal).await;
    }
    for (path, value, refusal) in [
        ("/metadata/name", json!("Upper"), INVALID),
        ("/metadata/name", json!(""), INVALID),
        ("/metadata/name", json!("a".repeat(254)), INVALID),
        ("/kind", json!("ConfigMap"), BAD),
        ("/apiVersion", json!("v1"), BAD),
    ] {
        api.refuses(Method::POST, "", &with(&lease(&name), path, value), refusal).await;
    }
    let spec = json!({
        "holderIdentity": "", "leaseDurationSeconds": 1, "leaseTransitions": 2_147_483_647,
        "acquireTime": "2026-02-02T10:15:30.000000Z", "renewTime": "2026-02-02T11:15:30.500000+01:00",
        "preferredHolder": null, "strategy": "OldestEmulationVersion", "colour": "red",
    });
    let (status, created) = api.send(Method::POST, "", &with(&lease(&name), "/spec", spec)).await;
    let expected = json!({
        "holderIdentity": "", "leaseDurationSeconds": 1, "leaseTransitions": 2_147_483_647,
        "acquireTime": "2026-02-02T10:15:30.000000Z", "renewTime": "2026-02-02T10:15:30.500000Z",
    });
    assert_eq!((status, &created["spec"]), (201, &expected), "strategy needs a feature gate, and nothing has a colour");
    kube.lease_store().discard(&name).await.expect("deleted");
}

async fn every_rule(kube: &Kube) {
    a_lease_is_created_once(kube).await;
    an_update_replaces_the_version_that_it_names(kube).await;
    an_update_creates_a_deleted_lease_anew_unless_it_names_the_uid(kube).await;
    a_deletion_has_preconditions(kube).await;
    the_fields_of_a_lease_are_validated_and_spelled_in_one_way(kube).await;
}

#[tokio::test]
async fn every_rule_holds_on_a_cluster_or_in_memory() {
    every_rule(&Kube::new().await).await;
}

#[tokio::test]
async fn every_rule_holds_on_s3() {
    let store = S3::new().await.store().await;
    every_rule(&Kube::own(KubeApi::start_on(store, &format!("{}/", unique_name())).await).await).await;
}
