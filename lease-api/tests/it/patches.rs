//! Patches as clients send them.

use std::sync::atomic::{AtomicUsize, Ordering};

use leaderelection::StoreErrorKind::Conflict;
use leaderelection_test_support::faulty::{Call, Fault};
use serde_json::{Value, json};

use crate::api::{Api, MERGE, WEB, lease, with};

const APPLY: &str = "application/apply-patch+yaml";
const JSON_PATCH: &str = "application/json-patch+json";
const STRATEGIC: &str = "application/strategic-merge-patch+json";

fn version(lease: &Value) -> &Value {
    &lease["metadata"]["resourceVersion"]
}

#[tokio::test]
async fn kubert_takes_over_renews_and_releases() {
    let api = Api::new();
    let empty = json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "web"}});
    let found = api.post(&empty).await.is(201);
    let time = "2026-02-02T10:15:30.000000Z";
    let take = json!({
        "apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"resourceVersion": version(&found)},
        "spec": {
            "holderIdentity": "a", "leaseDurationSeconds": 6, "acquireTime": time, "renewTime": time, "leaseTransitions": 1,
        },
    });
    let target = format!("{WEB}?&force=true&fieldManager=kubert");
    let held = api.send("PATCH", &target, APPLY, take.to_string()).await.is(200);
    assert_eq!(held["spec"], take["spec"]);
    assert_eq!(api.send("PATCH", &target, APPLY, take.to_string()).await.is(200), held, "a balancer sends it twice");
    // Another replica has seen the same version.
    let other = with(&take, &json!({"holderIdentity": "b"}));
    assert_eq!(api.send("PATCH", &target, APPLY, other.to_string()).await.is(409)["reason"], "Conflict");
    drop(api.store.take_calls());
    let renew = json!({
        "metadata": {"resourceVersion": version(&held)}, "spec": {"renewTime": "2026-02-02T10:15:32.000000Z"},
    });
    let held = api.send("PATCH", WEB, STRATEGIC, renew.to_string()).await.is(200);
    assert_eq!(api.store.take_calls().len(), 1, "a renewal is one request");
    assert_eq!(held["spec"]["holderIdentity"], "a");
    let release = json!({"spec": {"acquireTime": null, "renewTime": null, "holderIdentity": null}});
    let released = api.send("PATCH", WEB, STRATEGIC, release.to_string()).await.is(200);
    assert_eq!(released["spec"], json!({"leaseDurationSeconds": 6, "leaseTransitions": 1}));
}

#[tokio::test]
async fn fabric8_releases_and_leaves_the_holder() {
    let api = Api::new();
    let held = api.post(&lease("a")).await.is(201);
    let patch = json!({"metadata": {"resourceVersion": version(&held)}, "spec": {"leaseDurationSeconds": 1}});
    let released = api.send("PATCH", WEB, MERGE, patch.to_string()).await.is(200);
    assert_eq!(released["spec"]["holderIdentity"], "a");
    assert_eq!(api.record().await["leaseDuration"], "1s");
}

#[tokio::test]
async fn an_apply_creates_and_needs_a_field_manager() {
    let api = Api::new();
    let wanted = lease("a").to_string();
    api.send("PATCH", WEB, APPLY, wanted.clone()).await.is(422);
    let target = format!("{WEB}?fieldManager=people");
    api.send("PATCH", &target, APPLY, wanted.clone()).await.is(201);
    api.send("PATCH", &target, APPLY, wanted).await.is(200);
    let head = "apiVersion: coordination.k8s.io/v1\nkind: Lease\n";
    let applied = api.send("PATCH", &target, APPLY, format!("{head}spec: {{}}")).await.is(200);
    assert_eq!(applied["spec"]["holderIdentity"], "a");
    for of_no_kind in ["spec: {", "spec: {}", "kind: Lease", "apiVersion: coordination.k8s.io/v1\nkind: Pod"] {
        api.send("PATCH", &target, APPLY, of_no_kind).await.is(400);
    }
    let unnamed = format!("{head}spec: {{holderIdentity: a}}");
    let created = api.send("PATCH", &target.replace("web", "other"), APPLY, unnamed).await.is(201);
    assert_eq!(created["metadata"]["name"], "other");
    api.send("PATCH", &target, "text/plain", "x").await.is(415);
    let other = format!("{}-2", WEB);
    assert_eq!(api.send("PATCH", &other, MERGE, "{}").await.is(404)["reason"], "NotFound");
}

#[tokio::test]
async fn patches_are_checked_like_whole_leases() {
    let api = Api::new();
    let held = api.post(&lease("a")).await.is(201);
    for patch in [
        json!({"spec": {"renewTime": "2026-02-02T10:15:30Z"}}),
        json!({"spec": {"leaseDurationSeconds": 0}}),
        json!({"spec": {"leaseDurationSeconds": 86_401}}),
        json!({"spec": 7}),
    ] {
        assert_eq!(api.merge("", &patch).await.is(422)["reason"], "Invalid", "{patch}");
    }
    api.merge("", &json!({"metadata": {"name": "other"}})).await.is(400);
    api.merge("", &json!({"metadata": {"uid": "another"}})).await.is(409);
    api.merge("", &json!({"metadata": {"resourceVersion": "another"}})).await.is(409);
    api.send("PATCH", WEB, MERGE, "{").await.is(400);
    for no_version in [Value::Null, json!("")] {
        let take = json!({"metadata": {"resourceVersion": no_version}, "spec": {"holderIdentity": "b"}});
        let refused = api.merge("dryRun=All", &take).await.is(409);
        assert!(refused["message"].as_str().unwrap().contains("force=true"), "{take}: {refused}");
    }
    let test = |version: &Value| {
        json!([
            {"op": "test", "path": "/metadata/resourceVersion", "value": version},
            {"op": "replace", "path": "/spec/holderIdentity", "value": "b"},
        ])
        .to_string()
    };
    api.send("PATCH", WEB, JSON_PATCH, test(&json!("another"))).await.is(422);
    let answer = api.send("PATCH", WEB, JSON_PATCH, test(version(&held))).await;
    assert_eq!(answer.token(), 1);
    assert_eq!(answer.is(200)["spec"]["holderIdentity"], "b");
}

#[tokio::test]
async fn a_patch_names_the_version_that_it_tests_first_or_leaves_in_the_lease() {
    let api = Api::new();
    let held = api.post(&lease("a")).await.is(201);
    let at = |op: &str, value: &Value| json!({"op": op, "path": "/metadata/resourceVersion", "value": value});
    let (right, none) = (version(&held), json!(""));
    let whole = json!({"op": "replace", "path": "/metadata", "value": {"name": "web"}});
    for (operations, why) in [
        (vec![at("remove", &none)], "force=true"),
        (vec![at("add", right), at("remove", &none)], "force=true"),
        (vec![at("add", right), whole], "force=true"),
        (vec![at("add", &none), at("test", &none)], "force=true"),
        (vec![at("replace", &json!("another"))], "modified"),
        (vec![at("remove", &none), at("add", &json!("another"))], "modified"),
        (vec![at("test", right), at("remove", &none)], ""),
        (vec![at("remove", &none), at("add", right)], ""),
    ] {
        let take = json!({"op": "replace", "path": "/spec/holderIdentity", "value": "b"});
        let patch = Value::Array([operations, vec![take]].concat()).to_string();
        let status = if why.is_empty() { 200 } else { 409 };
        let answer = api.send("PATCH", &format!("{WEB}?dryRun=All"), JSON_PATCH, patch.clone()).await.is(status);
        assert!(answer["message"].as_str().unwrap_or_default().contains(why), "{patch}: {answer}");
    }
}

#[tokio::test]
async fn a_patch_that_costs_too_much_is_refused_and_changes_nothing() {
    let api = Api::new();
    let held = api.post(&lease("a")).await.is(201);
    // Each copy doubles the levels of a value that is dropped, cloned and compared by recursion.
    let mut levels = vec![json!({"op": "add", "path": "/spec/a", "value": {"a": {}}})];
    let (mut place, mut below) = ("/spec/a/a".to_owned(), "/a".to_owned());
    for _ in 0..11 {
        levels.push(json!({"op": "copy", "from": "/spec/a", "path": format!("{place}/a")}));
        (place, below) = (format!("{place}/a{below}"), format!("{below}/a{below}"));
    }
    let text = json!({"op": "add", "path": "/metadata/labels", "value": {"a": "x".repeat(20_000)}});
    let again = json!({"op": "copy", "from": "/metadata/labels/a", "path": "/metadata/labels/b"});
    let copies = [vec![text], vec![again; 400]].concat();
    let tests = vec![json!({"op": "test", "path": "", "value": 0}); 1_001];
    for (patch, status, reason) in
        [(levels, 422, "Invalid"), (copies, 422, "Invalid"), (tests, 413, "RequestEntityTooLarge")]
    {
        let patch = Value::Array(patch).to_string();
        assert!(patch.len() < 64 * 1024);
        let refused = api.send("PATCH", WEB, JSON_PATCH, patch).await.is(status);
        assert_eq!((&refused["kind"], &refused["reason"]), (&json!("Status"), &json!(reason)), "{refused}");
    }
    assert_eq!(api.get().await.is(200), held);
}

#[tokio::test]
async fn a_patch_without_a_version_is_applied_to_what_is_there_by_then() {
    let (api, other) = {
        let api = Api::new();
        let other = api.another();
        (api, other)
    };
    let held = api.post(&lease("a")).await.is(201);
    other.put(&with(&held, &json!({"renewTime": "2026-02-02T10:16:00.000000Z"}))).await.is(200);
    let patched = api.merge("", &json!({"metadata": {"labels": {"app": "web"}}})).await.is(200);
    assert_eq!(patched["spec"]["renewTime"], "2026-02-02T10:16:00.000000Z");
    // Others write first, three times.
    let (beaten, times) = (AtomicUsize::new(0), 3);
    api.store.fail(move |call, _, _| {
        let is_beaten = call == Call::Put && beaten.fetch_add(1, Ordering::Relaxed) < times;
        is_beaten.then_some(Fault::Refuse(Conflict))
    });
    let patched = api.merge("", &json!({"metadata": {"labels": {"app": "api"}}})).await.is(200);
    assert_eq!(patched["metadata"]["labels"]["app"], "api");
    api.store.fail(|call, _, _| (call == Call::Put).then_some(Fault::Refuse(Conflict)));
    drop(api.store.take_calls());
    let named = json!({"metadata": {"resourceVersion": version(&patched), "labels": {"app": "web"}}});
    assert_eq!(api.merge("", &named).await.is(409)["reason"], "Conflict");
    assert_eq!(api.store.take_calls().len(), 2, "a read behind the refusal: a version that is gone does not come back");
}
