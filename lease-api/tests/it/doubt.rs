//! Stores that lose their answers, and what a client is told.

use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use leaderelection::StoreError;
use leaderelection::StoreErrorKind::{Ambiguous, Conflict, Fatal, Rejected, Unreadable};
use leaderelection::implement::{ConditionalStore, ListedPage, PageToken, Precondition, Version, VersionedObject};
use leaderelection_test_support::faulty::{Call, Fault, Faulty};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::api::{Api, KEY, LEASES, Server, WEB, lease, with};

/// Lets the next writes fail so.
fn fail_writes(api: &Api, fault: Fault) {
    api.store.fail(move |call, _, _| (call == Call::Put).then_some(fault));
}

#[tokio::test(start_paused = true)]
async fn a_committed_write_succeeds_although_its_answer_was_lost() {
    // A balancer that sends a write twice gets a conflict, and proxies answer what they like.
    let refusals = [Conflict, Rejected, Fatal, Unreadable].map(Fault::ApplyThen);
    for fault in [Fault::ApplyThen(Ambiguous), Fault::ApplyThenHang].into_iter().chain(refusals) {
        let api = Api::new();
        fail_writes(&api, fault);
        let held = api.post(&lease("a")).await.is(201);
        let renewed = with(&held, &json!({"renewTime": "2026-02-02T10:16:00.000000Z"}));
        let held = api.put(&renewed).await.is(200);
        assert_eq!(held["spec"]["renewTime"], "2026-02-02T10:16:00.000000Z");
        let patch = json!({"metadata": {"labels": {"app": "web"}}});
        assert_eq!(api.merge("", &patch).await.is(200)["metadata"]["labels"]["app"], "web", "{fault:?}");
        api.send("DELETE", WEB, "", "").await.is(200);
        api.store.recover();
        api.get().await.is(404);
    }
}

#[tokio::test(start_paused = true)]
async fn no_refusal_leaves_before_a_read_shows_that_nothing_is_committed() {
    for kind in [Conflict, Rejected, Fatal, Unreadable] {
        let api = Api::new();
        let held = api.post(&lease("a")).await.is(201);
        api.store.fail(move |call, _, _| match call {
            Call::Put => Some(Fault::ApplyThen(kind)),
            _ => Some(Fault::Refuse(Rejected)),
        });
        let renewed = with(&held, &json!({"renewTime": "2026-02-02T10:16:00.000000Z"}));
        let answer = api.put(&renewed).await;
        assert_eq!(answer.headers.get("retry-after"), None);
        assert!(answer.is(500)["message"].as_str().unwrap().contains("nobody knows whether"), "{kind:?}");
        api.store.recover();
        assert_eq!(api.another().get().await.is(200)["spec"], renewed["spec"], "it is committed");
    }
}

/// A store behind a proxy that answers 412 to a committed write, after the next write.
#[derive(Debug)]
struct Overtaken {
    store: Faulty,
    by_candidate: bool,
}

#[async_trait]
impl ConditionalStore for Overtaken {
    async fn get(&self, key: &str) -> Result<Option<VersionedObject>, StoreError> {
        self.store.get(key).await
    }

    async fn put(&self, key: &str, body: Bytes, condition: &Precondition) -> Result<Version, StoreError> {
        let version = self.store.put(key, body.clone(), condition).await?;
        if self.by_candidate {
            let mut record: Value = serde_json::from_slice(&body).unwrap();
            record["writeId"] = "of a candidate of this library".into();
            self.store.put(key, record.to_string().into(), &Precondition::Matches(version)).await?;
        } else {
            let labels = json!({"metadata": {"labels": {"app": "web"}}});
            Server::on(self.store.clone()).merge("", &labels).await.is(200);
        }
        Err(StoreError::new(Conflict, "412"))
    }

    async fn delete(&self, key: &str, expected: Option<&Version>) -> Result<(), StoreError> {
        self.store.delete(key, expected).await
    }

    async fn list_page(
        &self,
        prefix: &str,
        token: Option<&PageToken>,
        limit: Option<u16>,
    ) -> Result<ListedPage, StoreError> {
        self.store.list_page(prefix, token, limit).await
    }

    fn describe(&self, key: &str) -> String {
        self.store.describe(key)
    }

    fn min_write_interval(&self) -> Option<Duration> {
        self.store.min_write_interval()
    }
}

#[tokio::test]
async fn a_write_committed_before_the_last_one_is_no_conflict() {
    for by_candidate in [false, true] {
        let api = Api::new();
        let held = api.post(&lease("a")).await.is(201);
        let server = Server::on(Overtaken { store: api.store.clone(), by_candidate });
        let renewed = with(&held, &json!({"renewTime": "2026-02-02T10:16:00.000000Z"}));
        let answer = server.put(&renewed).await.is(200);
        assert_eq!(answer["spec"], renewed["spec"], "by a candidate: {by_candidate}");
        let version = |lease: &Value| lease["metadata"]["resourceVersion"].clone();
        assert_ne!(version(&answer), version(&held));
        assert_ne!(version(&answer), version(&api.another().get().await.is(200)));
        api.put(&answer).await.is(409);
    }
}

#[tokio::test]
async fn a_write_sent_to_two_servers_is_answered_twice_and_done_once() {
    let api = Api::new();
    let other = api.another();
    let held = api.post(&lease("a")).await.is(201);
    assert_eq!(other.post(&lease("a")).await.is(201), held);
    other.post(&lease("b")).await.is(409);
    let renewed = with(&held, &json!({"renewTime": "2026-02-02T10:16:00.000000Z"}));
    let first = api.put(&renewed).await.is(200);
    assert_eq!(other.put(&renewed).await.is(200), first);
    other.put(&with(&held, &json!({"renewTime": "2026-02-02T10:16:01.000000Z"}))).await.is(409);
    api.put(&with(&first, &json!({"renewTime": "2026-02-02T10:17:00.000000Z"}))).await.is(200);
    other.put(&renewed).await.is(409);
    // Nobody's name and time tell that it is the same request.
    let unheld = json!({"metadata": {"name": "unheld"}});
    api.post(&unheld).await.is(201);
    api.post(&unheld).await.is(409);
}

#[tokio::test(start_paused = true)]
async fn a_write_of_unknown_outcome_is_no_conflict() {
    let api = Api::new();
    let held = api.post(&lease("a")).await.is(201);
    let renewed = with(&held, &json!({"renewTime": "2026-02-02T10:16:00.000000Z"}));
    for (fault, least) in [(Fault::Refuse(Ambiguous), 0), (Fault::Hang, 3)] {
        fail_writes(&api, fault);
        let began = Instant::now();
        let answer = api.put(&renewed).await;
        let waited = Duration::from_secs(least)..=Duration::from_secs(5);
        assert!(waited.contains(&began.elapsed()), "{:?}", began.elapsed());
        assert_eq!(answer.headers.get("retry-after"), None);
        assert_eq!(answer.is(500)["kind"], "Status");
        api.store.recover();
        api.get().await.is(200);
    }
    api.put(&renewed).await.is(200);
}

#[tokio::test(start_paused = true)]
async fn a_late_write_of_an_earlier_request_is_seen_before_the_next_write() {
    let api = Api::new();
    let held = api.post(&lease("a")).await.is(201);
    // The answer and the read behind it are lost, and the write is committed.
    api.store.fail(|call, _, _| match call {
        Call::Put => Some(Fault::ApplyThen(Ambiguous)),
        _ => Some(Fault::Refuse(Ambiguous)),
    });
    let renewed = with(&held, &json!({"renewTime": "2026-02-02T10:16:00.000000Z"}));
    api.put(&renewed).await.is(500);
    api.store.recover();
    api.put(&with(&held, &json!({"renewTime": "2026-02-02T10:17:00.000000Z"}))).await.is(409);
    assert_eq!(api.get().await.body["spec"], renewed["spec"]);
}

#[tokio::test(start_paused = true)]
async fn a_client_has_an_answer_before_it_stops_waiting() {
    let api = Api::new();
    let held = api.post(&with(&lease("a"), &json!({"leaseDurationSeconds": 6}))).await.is(201);
    api.store.fail(|_, _, _| Some(Fault::Hang));
    let renewed = with(&held, &json!({"renewTime": "2026-02-02T10:16:00.000000Z"}));
    let long = with(&renewed, &json!({"leaseDurationSeconds": 60}));
    let released = with(&renewed, &json!({"holderIdentity": "", "leaseDurationSeconds": 1}));
    for (method, target, query, lease, most) in [
        ("PUT", WEB, "timeout=2s", &long, 2_000),
        ("PUT", WEB, "timeout=1500ms", &long, 1_500),
        ("PUT", WEB, "", &long, 10_000),
        ("PUT", WEB, "timeout=18446744073709551615s", &long, 10_000),
        ("PUT", WEB, "", &renewed, 2_000),
        ("PUT", WEB, "", &released, 2_000),
        ("GET", WEB, "", &held, 2_000),
        ("GET", LEASES, "timeout=2s", &held, 2_000),
    ] {
        let began = Instant::now();
        api.send(method, &format!("{target}?{query}"), "", lease.to_string()).await.is(500);
        let waited = Duration::from_millis(most * 8 / 10)..=Duration::from_millis(most);
        assert!(waited.contains(&began.elapsed()), "{method} {target} {query} {lease}: {:?}", began.elapsed());
    }
}

#[tokio::test]
async fn only_what_the_store_has_surely_refused_may_be_sent_again() {
    let api = Api::new();
    fail_writes(&api, Fault::Refuse(Rejected));
    let answer = api.post(&lease("a")).await;
    assert_eq!(answer.headers["retry-after"], "1");
    assert_eq!(answer.is(503)["reason"], "ServiceUnavailable");
    fail_writes(&api, Fault::Refuse(Fatal));
    let answer = api.post(&lease("a")).await;
    assert_eq!(answer.headers.get("retry-after"), None);
    answer.is(500);
}

#[tokio::test]
async fn a_store_that_cannot_be_read_is_no_missing_lease() {
    let api = Api::new();
    for kind in [Ambiguous, Rejected, Fatal] {
        api.store.begin_outage(kind);
        assert_eq!(api.get().await.is(500)["code"], 500, "{kind:?}");
        api.send("GET", crate::api::LEASES, "", "").await.is(500);
        api.send("GET", "/readyz", "", "").await.is(500);
        api.send("GET", "/livez", "", "").await.is(200);
    }
}

#[tokio::test(start_paused = true)]
async fn a_store_that_has_just_answered_a_probe_is_not_asked_again() {
    let api = Api::new();
    for (pause, requests) in [(0, 1), (5_000, 1), (1, 2), (4_999, 2), (60_000, 3)] {
        tokio::time::advance(Duration::from_millis(pause)).await;
        api.send("GET", "/readyz", "", "").await.is(200);
        assert_eq!(api.store.requests(), requests, "{pause} ms later");
    }
}

#[tokio::test]
async fn a_listing_leaves_out_what_is_no_lease_and_nothing_that_cannot_be_read() {
    let api = Api::new();
    api.post(&lease("a")).await.is(201);
    let body = api.store.inner.get(KEY).await.unwrap().unwrap().body;
    for key in ["leases/default/Upper", "leases/Upper/web", "leases/readyz", "leases/default/a/b"] {
        api.store.inner.put(key, body.clone(), &Precondition::Absent).await.unwrap();
    }
    let all = "/apis/coordination.k8s.io/v1/leases";
    assert_eq!(api.another().send("GET", all, "", "").await.is(200)["items"].as_array().unwrap().len(), 1);
    for (kind, status) in [(Unreadable, 200), (Ambiguous, 500), (Rejected, 500), (Fatal, 500)] {
        api.store.fail(move |call, _, _| (call == Call::Get).then_some(Fault::Refuse(kind)));
        let answer = api.another().send("GET", all, "", "").await;
        assert_eq!((answer.status, answer.body["items"].get(0)), (status, None), "{kind:?}");
    }
}

#[tokio::test]
async fn one_object_that_may_not_be_read_is_left_out_of_listings() {
    let api = Api::new();
    for name in ["a", "b", "c"] {
        let mut lease = lease("a");
        lease["metadata"]["name"] = name.into();
        api.post(&lease).await.is(201);
    }
    let all = "/apis/coordination.k8s.io/v1/leases";
    for (refused, status, left) in [(&["/b"][..], 200, 2), (&["/a", "/b"], 500, 0)] {
        api.store.fail(move |call, key, _| {
            let is_refused = call == Call::Get && refused.iter().any(|name| key.ends_with(name));
            is_refused.then_some(Fault::Refuse(Fatal))
        });
        let answer = api.another().send("GET", all, "", "").await.is(status);
        assert_eq!(answer["items"].as_array().map_or(0, Vec::len), left, "{refused:?}");
    }
}
