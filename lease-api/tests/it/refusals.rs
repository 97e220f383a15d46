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
        (json!({"finalizers": [1]}), 422),
        (json!({"finalizers": ["example.org/a"]}), 422),
        (json!({"labels": {"a b": "c"}}), 422),
        (json!({"labels": {"a": "b c"}}), 422),
        (json!({"labels": {"a": "b".repeat(64)}}), 422),
        (json!({"labels": {"example.org/a": ""}}), 201),
        (json!({"annotations": {"a b": "c"}}), 422),
        (json!({"annotations": {"a": "b c"}}), 201),
        (json!({"ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "a", "uid": ""}]}), 422),
        (
            json!({"ownerReferences": vec![json!({"apiVersion": "v1", "kind": "Pod", "name": "a", "uid": "1", "controller": true}); 2]}),
            422,
        ),
        (json!({"name": "", "generateName": ""}), 422),
        (json!({"ownerReferences": ["pod"]}), 400),
        (json!({"resourceVersion": "", "labels": {}, "finalizers": [], "ownerReferences": []}), 201),
    ] {
        let answer = Api::new().post(&changed(&lease("a"), &metadata)).await;
        assert_eq!(answer.status, status, "{metadata}: {}", answer.body);
        if metadata.get("resourceVersion").is_none() {
            continue;
        }
        let kept = answer.body["metadata"].as_object().cloned().unwrap_or_default();
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
async fn a_deletion_whose_conditions_cannot_be_read_deletes_nothing() {
    let api = Api::new();
    api.post(&lease("a")).await.is(201);
    for options in [
        json!({"preconditions": {"resourceVersion": 5}}),
        json!({"preconditions": {"uid": ["a"]}}),
        json!({"preconditions": "a"}),
        json!({"kind": "Pod"}),
        json!([]),
        json!(5),
    ] {
        for target in [WEB, LEASES] {
            api.send("DELETE", target, "application/json", options.to_string()).await.is(400);
        }
    }
    api.get().await.is(200);
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

#[tokio::test]
async fn a_generated_name_begins_as_its_client_wants() {
    let api = Api::new();
    let sent = changed(&lease("a"), &json!({"name": null, "generateName": "web-"}));
    let names = [api.post(&sent).await.is(201), api.post(&sent).await.is(201)];
    let names = names.map(|lease| lease["metadata"]["name"].as_str().unwrap().to_owned());
    assert!(names.iter().all(|name| name.len() == 9 && name.starts_with("web-")) && names[0] != names[1], "{names:?}");
    let long = changed(&sent, &json!({"generateName": "a".repeat(300)}));
    assert_eq!(api.post(&long).await.is(201)["metadata"]["name"].as_str().unwrap().len(), 253);
}

#[tokio::test]
async fn nobody_impersonates_and_strict_clients_repeat_no_field() {
    let api = Api::new();
    let request = axum::http::Request::builder().uri(LEASES).header("impersonate-user", "root");
    let said = api.ask(request.body(axum::body::Body::empty()).unwrap()).await.is(403);
    assert_eq!(said["reason"], "Forbidden", "{said}");
    assert_eq!(api.store.requests(), 0);
    let twice = r#"{"metadata": {"name": "web"}, "spec": {"holderIdentity": "a", "holderIdentity": "b"}}"#;
    let said = api.send("POST", &format!("{LEASES}?fieldValidation=Strict"), "", twice).await.is(400);
    assert!(said["message"].as_str().unwrap().contains("duplicate"), "{said}");
    api.send("POST", &format!("{LEASES}?fieldValidation=Sometimes"), "", twice).await.is(422);
    api.send("POST", &format!("{LEASES}?fieldValidation=Ignore"), "", twice).await.is(201);
}

#[tokio::test]
async fn a_body_in_yaml_is_read_and_nothing_in_it_stands_for_more_than_it_says() {
    let api = Api::new();
    let yaml =
        "apiVersion: coordination.k8s.io/v1\nkind: Lease\nmetadata: {name: web}\nspec:\n  leaseDurationSeconds: 15\n";
    assert_eq!(api.send("POST", LEASES, "application/yaml", yaml).await.is(201)["spec"]["leaseDurationSeconds"], 15);
    let applied = format!("{yaml}  holderIdentity: b\n");
    let apply = format!("{WEB}?fieldManager=me");
    let lease = api.send("PATCH", &apply, "application/apply-patch+yaml", applied).await.is(200);
    assert_eq!(lease["spec"]["holderIdentity"], "b");
    for bad in ["a: &a [1]\nb: *a\n", "a: 1\na: 2\n", "- 1\n", "a: [\n", "a: 1\n---\nb: 2\n"] {
        api.send("POST", LEASES, "application/yaml", bad).await.is(400);
    }
}

#[tokio::test]
async fn an_apply_changes_nothing_of_others_unless_it_is_forced() {
    let api = Api::new();
    let held = api.post(&changed(&lease("a"), &json!({"labels": {"app": "web"}}))).await.is(201);
    let apply = async |query: &str, labels: Value| {
        let sent = json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "web", "labels": labels}});
        let target = format!("{WEB}?fieldManager=me&{query}");
        api.send("PATCH", &target, "application/apply-patch+yaml", sent.to_string()).await
    };
    let refused = apply("", json!({"app": "api"})).await.is(409);
    let said = refused["message"].as_str().unwrap();
    assert!(said.contains(".metadata.labels.app") && said.contains("--force-conflicts"), "{said}");
    assert_eq!(api.get().await.is(200), held);
    apply("", json!({"app": "web", "tier": "1"})).await.is(200);
    assert_eq!(
        apply("force=true", json!({"app": "api"})).await.is(200)["metadata"]["labels"],
        json!({"app": "api", "tier": "1"})
    );
}

#[tokio::test]
async fn a_selection_of_leases_is_deleted_at_once() {
    let api = Api::new();
    for (name, rank) in [("a", "1"), ("b", "2"), ("c", "3")] {
        api.post(&changed(&lease("x"), &json!({"name": name, "labels": {"rank": rank}}))).await.is(201);
    }
    let selected = format!("{LEASES}?labelSelector=rank%3E1");
    let tried = api.send("DELETE", &format!("{selected}&dryRun=All"), "", "").await.is(200);
    let deleted = api.send("DELETE", &selected, "", "").await.is(200);
    assert_eq!((tried["items"].clone(), deleted["kind"].as_str()), (deleted["items"].clone(), Some("LeaseList")));
    let names = |list: &Value| -> Vec<String> {
        list["items"].as_array().unwrap().iter().map(|item| item["metadata"]["name"].to_string()).collect()
    };
    assert_eq!(names(&deleted), ["\"b\"", "\"c\""]);
    assert_eq!(names(&api.send("GET", LEASES, "", "").await.is(200)), ["\"a\""]);
}
