//! The tokens of terms, whatever a client writes.

use leaderelection::implement::{ConditionalStore as _, Precondition};
use serde_json::json;

use crate::api::{Api, KEY, WEB, lease, with};

#[tokio::test]
async fn a_token_grows_with_each_term_and_never_falls() {
    let api = Api::new();
    let mut answer = api.post(&lease("a")).await;
    assert_eq!((answer.status, answer.token()), (201, 0), "{answer:?}");
    let later = "2026-02-02T10:20:00.000000Z";
    for (changed, token, what) in [
        (json!({"renewTime": later}), 0, "a renewal"),
        (json!({"holderIdentity": "b", "leaseTransitions": 1}), 1, "another holder"),
        (json!({"acquireTime": later}), 2, "the same holder begins anew, and counts nothing as client-go does"),
        (json!({"holderIdentity": "", "leaseDurationSeconds": 1}), 2, "a release"),
        (json!({"holderIdentity": "c", "leaseTransitions": null}), 3, "a holder that counts nothing, as Python's"),
        (json!({"holderIdentity": "d", "leaseTransitions": 7}), 7, "a holder that counts further"),
        (json!({"holderIdentity": "e", "leaseTransitions": 0}), 8, "a holder that counts from the beginning"),
    ] {
        let written = with(&answer.body, &changed);
        answer = api.put(&written).await;
        assert_eq!((answer.status, answer.token()), (200, token), "{what}: {answer:?}");
        assert_eq!(answer.body["spec"]["leaseTransitions"], written["spec"]["leaseTransitions"], "{what}");
        assert_eq!(api.record().await["leaderTransitions"], token, "{what}");
        assert_eq!(api.another().get().await.body, answer.body, "{what}");
    }
}

#[tokio::test]
async fn a_client_cannot_write_the_token() {
    let api = Api::new();
    let mut written = api.post(&lease("a")).await.is(201);
    written["metadata"]["annotations"]["leaderelection/token"] = "99".into();
    written["metadata"]["annotations"]["note"] = "keep".into();
    let answer = api.put(&written).await;
    assert_eq!((answer.status, answer.token()), (200, 0));
    assert_eq!(answer.body["metadata"]["annotations"]["note"], "keep");
}

#[tokio::test]
async fn a_deleted_lease_begins_anew_with_a_larger_token_and_another_uid() {
    let api = Api::new();
    let first = api.post(&with(&lease("a"), &json!({"leaseTransitions": 4}))).await.is(201);
    assert_eq!(api.send("DELETE", WEB, "", "").await.is(200)["status"], "Success");
    assert_eq!(api.get().await.is(404)["details"]["kind"], "leases");
    assert_eq!(api.send("GET", crate::api::LEASES, "", "").await.is(200)["items"], json!([]));
    assert_eq!(api.put(&first).await.is(409)["reason"], "Conflict", "nobody gets back what was deleted");
    api.send("DELETE", WEB, "", "").await.is(404);
    let second = api.post(&lease("a")).await;
    assert_eq!((second.status, second.token()), (201, 5), "{second:?}");
    assert_ne!(second.body["metadata"]["uid"], first["metadata"]["uid"]);
    assert_ne!(second.body["metadata"]["resourceVersion"], first["metadata"]["resourceVersion"]);
}

#[tokio::test]
async fn a_renewal_is_one_request_and_a_server_that_starts_anew_reads_once() {
    let api = Api::new();
    let mut held = api.post(&lease("a")).await.is(201);
    let renewed = |held: &serde_json::Value, second: u32| {
        with(held, &json!({"renewTime": format!("2026-02-02T10:16:{second:02}.000000Z")}))
    };
    drop(api.store.take_calls());
    for second in 0..3 {
        held = api.put(&renewed(&held, second)).await.is(200);
        assert_eq!(api.store.take_calls().len(), 1);
    }
    let fresh = api.another();
    held = fresh.put(&renewed(&held, 10)).await.is(200);
    assert_eq!(api.store.take_calls().len(), 2);
    fresh.put(&renewed(&held, 11)).await.is(200);
    fresh.get().await.is(200);
    fresh
        .post(&serde_json::json!({
            "apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "other"},
        }))
        .await
        .is(201);
    assert_eq!(api.store.take_calls().len(), 3, "one for each");
    // The version of the first server is not the object's any more.
    assert_eq!(api.put(&renewed(&held, 12)).await.is(409)["reason"], "Conflict");
}

#[tokio::test]
async fn no_term_begins_beyond_the_largest_token_which_nobody_could_read() {
    let api = Api::new();
    let held = api.post(&lease("a")).await.is(201);
    let mut record = api.record().await;
    record["leaderTransitions"] = ((1_u64 << 53) - 1).into();
    let version = api.store.inner.get(KEY).await.unwrap().unwrap().version;
    api.store.inner.put(KEY, record.to_string().into(), &Precondition::Matches(version)).await.unwrap();
    let refused = api.another().put(&with(&held, &json!({"holderIdentity": "b"}))).await.is(422);
    assert_eq!(refused["reason"], "Invalid", "{refused}");
    let renewed = api.another().put(&with(&held, &json!({"renewTime": "2026-02-02T10:16:00.000000Z"}))).await;
    assert_eq!((renewed.status, renewed.token()), (200, (1 << 53) - 1), "its holder goes on");
    api.another().get().await.is(200);
}
