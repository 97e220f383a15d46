//! Writes that an API server refuses, and those that change nothing.

use leaderelection_test_support::faulty::Call;
use serde_json::{Value, json};

use crate::api::{Api, LEASES, WEB, lease};

/// A Lease with other metadata.
fn changed(lease: &Value, metadata: &Value) -> Value {
    let mut lease = lease.clone();
    json_patch::merge(&mut lease["metadata"], metadata);
    lease
}

#[tokio::test]
async fn an_update_names_what_it_replaces() {
    let api = Api::new();
    let held = api.post(&lease("a")).await.is(201);
    for (metadata, status) in [
        (json!({"name": "other"}), 400),
        (json!({"namespace": "other"}), 400),
        (json!({"uid": "other"}), 409),
        (json!({"resourceVersion": "other"}), 409),
        (json!({"resourceVersion": ""}), 422),
        (json!({"resourceVersion": null}), 422),
        (json!({"namespace": "", "uid": ""}), 200),
    ] {
        let status_of = api.put(&changed(&held, &metadata)).await.status;
        assert_eq!(status_of, status, "{metadata}");
    }
    for (metadata, status) in [
        (json!({"uid": "gone"}), 409),
        (json!({"resourceVersion": "gone"}), 409),
        (json!({"uid": "", "resourceVersion": ""}), 201),
    ] {
        let nothing = Api::new();
        assert_eq!(nothing.put(&changed(&lease("a"), &metadata)).await.status, status, "{metadata}");
    }
}

#[tokio::test]
async fn a_creation_names_no_version_and_has_metadata_of_the_right_types() {
    for (metadata, status) in [
        (json!({"resourceVersion": "1"}), 500),
        (json!({"name": "Web"}), 422),
        (json!({"labels": {"app": 1}}), 400),
        (json!({"annotations": ["note"]}), 400),
        (json!({"finalizers": [1]}), 400),
        (json!({"ownerReferences": ["pod"]}), 400),
        (json!({"resourceVersion": "", "labels": {}, "finalizers": [], "ownerReferences": []}), 201),
    ] {
        let answer = Api::new().post(&changed(&lease("a"), &metadata)).await;
        assert_eq!(answer.status, status, "{metadata}: {}", answer.body);
        let kept = answer.body["metadata"].as_object().unwrap();
        assert!(["labels", "finalizers", "ownerReferences"].iter().all(|field| !kept.contains_key(*field)), "{kept:?}");
    }
}

#[tokio::test]
async fn owners_have_no_more_levels_than_they_have_fields() {
    let api = Api::new();
    let deep = (0..100).fold(json!("x"), |value, _| json!([value]));
    let mut owner = json!({"apiVersion": "v1", "kind": "Pod", "name": "pod-1", "uid": "u-2", "deep": deep});
    let sent = changed(&lease("a"), &json!({"ownerReferences": [owner]}));
    api.send("POST", &format!("{LEASES}?fieldValidation=Strict"), "", sent.to_string()).await.is(400);
    let kept = api.post(&sent).await.is(201);
    owner.as_object_mut().unwrap().remove("deep");
    assert_eq!(kept["metadata"]["ownerReferences"], json!([owner]));
    assert_eq!(api.another().get().await.is(200), kept, "a server that reads it anew");
}

#[tokio::test]
async fn a_deletion_has_conditions() {
    let api = Api::new();
    let held = api.post(&lease("a")).await.is(201);
    let named = &held["metadata"];
    for (preconditions, status) in [
        (json!({"uid": "other"}), 409),
        (json!({"resourceVersion": "other"}), 409),
        (json!({"uid": named["uid"], "resourceVersion": "other"}), 409),
        (json!({"uid": named["uid"], "resourceVersion": named["resourceVersion"]}), 200),
    ] {
        let options = json!({"preconditions": preconditions, "dryRun": []}).to_string();
        api.send("DELETE", WEB, "application/json", options).await.is(status);
    }
    api.get().await.is(404);
}

#[tokio::test]
async fn a_write_that_changes_nothing_is_not_sent() {
    let api = Api::new();
    let held = api.post(&lease("a")).await.is(201);
    drop(api.store.take_calls());
    assert_eq!(api.put(&held).await.is(200), held);
    assert_eq!(api.merge("", &json!({"spec": {"holderIdentity": "a"}})).await.is(200), held);
    assert_eq!(api.store.count(Call::Put), 0);
}
