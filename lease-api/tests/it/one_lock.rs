//! One object for candidates of this library and for clients of the API.

use std::time::Duration;

use leaderelection::implement::{ConditionalStore as _, VersionedRecord};
use leaderelection::lock::LockParts;
use leaderelection::{LeaderElectionRecord, MemoryStore, ObjectLock, ObjectStoreBasedLock as _};
use serde_json::json;

use crate::api::{Api, KEY, MERGE, WEB, lease, with};

fn lock(api: &Api) -> ObjectLock<MemoryStore> {
    ObjectLock::new(api.store.inner.clone(), KEY, "ours")
}

async fn found(api: &Api) -> VersionedRecord {
    lock(api).get().await.unwrap().expect("a record")
}

/// Takes the lock, or renews it, as a candidate of this library does.
async fn hold(api: &Api, write_id: &str) {
    let VersionedRecord { mut record, version, .. } = found(api).await;
    if record.holder_identity != "ours" {
        record.leader_transitions += 1;
    }
    record.holder_identity = "ours".to_owned();
    record.lease_duration = Duration::from_millis(14_500);
    record.write_id = Some(write_id.to_owned());
    lock(api).update(&record, &version).await.unwrap();
}

#[tokio::test]
async fn each_side_sees_the_writes_of_the_other_and_keeps_its_fields() {
    let api = Api::new();
    let mut record = LeaderElectionRecord::new("ours", Duration::from_secs(15));
    record.leader_transitions = 7;
    record.write_id = Some("1-1-1".to_owned());
    record.unknown.set("completedJobs", &["2026-11-22"]);
    lock(&api).create(&record).await.unwrap();

    let held = api.get().await.is(200);
    assert_eq!(held["spec"]["holderIdentity"], "ours");
    assert_eq!(held["spec"]["leaseTransitions"], 7);
    assert_eq!(held["spec"]["leaseDurationSeconds"], 15);
    let mut taken = with(
        &held,
        &json!({
            "holderIdentity": "theirs", "leaseTransitions": 8, "renewTime": "2026-02-02T10:16:00.000000Z",
        }),
    );
    taken["metadata"]["labels"] = json!({"app": "web"});
    let taken = api.put(&taken).await.is(200);
    assert_eq!(taken["metadata"]["uid"], held["metadata"]["uid"]);
    let seen = found(&api).await.record;
    assert_eq!((&*seen.holder_identity, seen.leader_transitions), ("theirs", 8));
    assert_eq!(seen.completed_jobs(), ["2026-11-22"]);

    hold(&api, "1-2-2").await;
    let back = api.get().await.is(200);
    let spec = &back["spec"];
    assert_eq!((&spec["holderIdentity"], &spec["leaseTransitions"]), (&json!("ours"), &json!(9)), "{back}");
    assert_eq!(spec["leaseDurationSeconds"], 15, "a part of a second counts as a second");
    assert_eq!(back["metadata"]["labels"]["app"], "web");
    assert_eq!(back["metadata"]["uid"], held["metadata"]["uid"]);
    // The version that the client has named stands for what was there before.
    assert_eq!(api.put(&taken).await.is(409)["reason"], "Conflict");
    let before = back["metadata"]["resourceVersion"].clone();
    hold(&api, "1-3-3").await;
    assert_ne!(api.get().await.body["metadata"]["resourceVersion"], before, "every write has a version of its own");
}

#[tokio::test]
async fn the_wish_of_an_operator_outlives_renewals_and_ends_with_the_next_term() {
    let api = Api::new();
    api.post(&lease("a")).await.is(201);
    let VersionedRecord { mut record, version, .. } = found(&api).await;
    record.preferred_holder = Some("b".to_owned());
    record.write_id = Some("1-1-1".to_owned());
    lock(&api).update(&record, &version).await.unwrap();
    let mut held =
        api.put(&with(&api.get().await.body, &json!({"renewTime": "2026-02-02T10:16:00.000000Z"}))).await.is(200);
    assert_eq!(found(&api).await.record.preferred_holder.as_deref(), Some("b"));
    held = api.put(&with(&held, &json!({"holderIdentity": "", "leaseDurationSeconds": 1}))).await.is(200);
    assert_eq!(found(&api).await.record.preferred_holder.as_deref(), Some("b"));
    api.put(&with(&held, &json!({"holderIdentity": "b"}))).await.is(200);
    assert_eq!(found(&api).await.record.preferred_holder, None);
}

#[tokio::test]
async fn a_late_release_takes_no_lease_from_this_library() {
    let api = Api::new();
    api.post(&lease("theirs")).await.is(201);
    hold(&api, "1-1-1").await;
    // client-go reads before it releases, and keeps the `leaseTransitions` that it finds.
    let now = "2026-02-02T10:30:00.000000Z";
    let empty = json!({"holderIdentity": "", "leaseDurationSeconds": 1, "acquireTime": now, "renewTime": now});
    let release = with(&api.get().await.body, &empty);
    assert_eq!(api.put(&release).await.is(409)["reason"], "Conflict");
    api.send("PATCH", WEB, MERGE, json!({"spec": empty}).to_string()).await.is(409);
    assert_eq!(found(&api).await.record.holder_identity, "ours");
    // A person may.
    api.merge("", &json!({"spec": {"holderIdentity": ""}})).await.is(200);
}

#[tokio::test(start_paused = true)]
async fn a_patch_without_a_version_does_not_take_a_live_lease() {
    let api = Api::new();
    api.post(&lease("a")).await.is(201);
    let take = json!({"spec": {"holderIdentity": "b", "leaseTransitions": 1}});
    assert_eq!(api.merge("&fieldManager=b", &take).await.is(409)["reason"], "Conflict");
    let unversioned = json!([{"op": "replace", "path": "/spec/holderIdentity", "value": "b"}]).to_string();
    api.send("PATCH", WEB, "application/json-patch+json", unversioned).await.is(409);
    // Whoever holds the lease may renew it and release it so.
    api.merge("", &json!({"spec": {"holderIdentity": "a", "renewTime": "2026-02-02T10:16:00.000000Z"}})).await.is(200);
    assert_eq!(api.merge("force=true", &take).await.is(200)["spec"]["holderIdentity"], "b");
    let named = json!({
        "metadata": {"resourceVersion": api.get().await.body["metadata"]["resourceVersion"]},
        "spec": {"holderIdentity": "c"},
    });
    api.merge("", &named).await.is(200);
    tokio::time::advance(Duration::from_secs(14)).await;
    api.merge("", &take).await.is(409);
    tokio::time::advance(Duration::from_secs(2)).await;
    api.merge("", &take).await.is(200);
}

#[tokio::test]
async fn a_record_that_no_client_has_created_has_an_identity_of_its_own() {
    let api = Api::new();
    let begun = json!({"acquireTime": "2000-01-01T00:00:00.000000Z"});
    let first = api.post(&with(&lease("theirs"), &begun)).await.is(201)["metadata"].clone();
    let created = first["creationTimestamp"].as_str().expect("a time");
    assert!(created > "2000-01-01T00:00:00Z", "{created}, and the term is older");
    api.send("DELETE", WEB, "", "").await.is(200);
    hold(&api, "1-1-1").await;
    let second = api.get().await.is(200)["metadata"].clone();
    assert_ne!(second["uid"], first["uid"]);
    assert_eq!(second.get("creationTimestamp"), None, "nobody knows it");
    assert_eq!(api.another().get().await.body["metadata"]["uid"], second["uid"], "every server says the same");
    let body = api.store.inner.get(KEY).await.unwrap().unwrap().body;
    let other = KEY.replace("web", "other");
    api.store.inner.put(&other, body, &leaderelection::implement::Precondition::Absent).await.unwrap();
    let third = api.send("GET", &WEB.replace("web", "other"), "", "").await.is(200);
    assert_ne!(third["metadata"]["uid"], second["uid"]);
}

/// Two of three parts are enough for its candidates, who would not miss this one.
#[tokio::test]
async fn a_part_of_a_lock_is_shown_and_not_written() {
    let api = Api::new();
    let mut record = LeaderElectionRecord::new("ours", Duration::from_secs(15));
    record.write_id = Some("1-1-1".to_owned());
    record.parts = Some(LockParts::new(2, ["a", "b", "c"].map(str::to_owned).into(), 0));
    let mut version = lock(&api).create(&record).await.unwrap();
    for holder in ["ours", ""] {
        record.holder_identity = holder.to_owned();
        version = lock(&api).update(&record, &version).await.unwrap();
        let shown = api.get().await.is(200);
        assert_eq!(shown["spec"]["holderIdentity"], holder);
        let taken = with(&shown, &json!({"holderIdentity": "theirs", "leaseTransitions": 1}));
        let deleted = api.send("DELETE", WEB, "", "").await;
        for answer in [api.put(&taken).await, api.merge("force=true", &taken).await, deleted] {
            let refusal = answer.is(409)["message"].as_str().unwrap().to_owned();
            assert!(
                refusal.contains("need 2 of a, b, c wrote its record, and this candidate needs this lock alone"),
                "{refusal}"
            );
        }
    }
    record.parts = Some(LockParts::new(3, ["a", "b", "c"].map(str::to_owned).into(), 0));
    lock(&api).update(&record, &version).await.unwrap();
    let shown = api.get().await.is(200);
    api.put(&with(&shown, &json!({"holderIdentity": "theirs", "leaseTransitions": 1}))).await.is(200);
}

#[tokio::test]
async fn an_object_that_is_no_lease_is_neither_missing_nor_written_over() {
    let api = Api::new();
    api.store.inner.put(KEY, "{}".into(), &leaderelection::implement::Precondition::Absent).await.unwrap();
    assert!(api.get().await.is(500)["message"].as_str().unwrap().contains("memory:leases/default/web"));
    api.post(&lease("a")).await.is(500);
    api.put(&lease("a")).await.is(500);
    api.send("DELETE", WEB, "", "").await.is(500);
    assert_eq!(api.record().await, json!({}));
    assert_eq!(api.send("GET", crate::api::LEASES, "", "").await.is(200)["items"], json!([]));
}

#[tokio::test]
async fn a_lock_of_a_session_is_shown_and_listed_and_not_written() {
    let api = Api::new();
    let record = json!({"holderIdentity": "ours", "session": "s-1", "leaderTransitions": 3, "writeId": "1-1-1"});
    api.store
        .inner
        .put(KEY, record.to_string().into(), &leaderelection::implement::Precondition::Absent)
        .await
        .unwrap();
    let shown = api.get().await.is(200);
    assert_eq!((&shown["spec"]["holderIdentity"], &shown["spec"]["leaseTransitions"]), (&json!("ours"), &json!(3)));
    assert_eq!(shown["spec"].get("leaseDurationSeconds"), None, "it has no lease");
    assert_eq!(api.send("GET", crate::api::LEASES, "", "").await.is(200)["items"], json!([shown]));
    let taken = with(&shown, &json!({"holderIdentity": "theirs", "leaseDurationSeconds": 15}));
    for answer in [api.put(&taken).await, api.send("DELETE", WEB, "", "").await, api.merge("force=true", &taken).await]
    {
        let refused = answer.is(409);
        assert!(refused["message"].as_str().unwrap().contains("session \"s-1\""), "{refused}");
    }
    assert_eq!(api.record().await, record);
}
