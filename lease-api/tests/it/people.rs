//! The requests of people and controllers: listings, tables, trials, and descriptions of the API.

use std::collections::BTreeSet;

use axum::body::Body;
use axum::http::Request;
use leaderelection_lease_api::LeaseApi;
use serde_json::{Value, json};

use crate::api::{Api, LEASES, WEB, lease, with};

pub(crate) const ALL: &str = "/apis/coordination.k8s.io/v1/leases";

#[tokio::test]
async fn a_trial_changes_nothing() {
    let api = Api::new();
    let target = format!("{LEASES}?dryRun=All");
    api.send("POST", &target, "", lease("a").to_string()).await.is(201);
    api.get().await.is(404);
    let held = api.post(&lease("a")).await.is(201);
    api.send("POST", &target, "", lease("b").to_string()).await.is(409);
    let target = format!("{WEB}?dryRun=All");
    let taken = with(&held, &json!({"holderIdentity": "b"})).to_string();
    assert_eq!(api.send("PUT", &target, "", taken).await.is(200)["spec"]["holderIdentity"], "b");
    api.send("DELETE", &target, "", "").await.is(200);
    let options = json!({"kind": "DeleteOptions", "apiVersion": "v1", "dryRun": ["All"]}).to_string();
    api.send("DELETE", WEB, "application/json", options).await.is(200);
    assert_eq!(api.get().await.is(200), held);
}

#[tokio::test]
async fn listings_have_the_leases_of_a_namespace_or_of_all() {
    let api = Api::new();
    api.post(&lease("a")).await.is(201);
    let elsewhere = LEASES.replace("default", "elsewhere");
    api.send("POST", &elsewhere, "", lease("b").to_string()).await.is(201);
    drop(api.store.take_calls());
    let names = |list: &Value| -> Vec<String> {
        let items = list["items"].as_array().unwrap().iter();
        items.map(|item| format!("{}/{}", item["metadata"]["namespace"], item["spec"]["holderIdentity"])).collect()
    };
    let list = api.send("GET", &format!("{LEASES}?limit=500"), "", "").await.is(200);
    assert_eq!(list["kind"], "LeaseList");
    assert_eq!(names(&list), ["\"default\"/\"a\""]);
    let list = api.send("GET", ALL, "", "").await.is(200);
    assert_eq!(names(&list), ["\"default\"/\"a\"", "\"elsewhere\"/\"b\""]);
    assert_eq!(api.store.take_calls().len(), 2, "what has not changed is not read again");
    let list = api.send("GET", &format!("{ALL}?fieldSelector=metadata.namespace%3Ddefault"), "", "").await.is(200);
    assert_eq!(names(&list), ["\"default\"/\"a\""]);
}

#[tokio::test]
async fn an_object_that_does_not_say_what_it_is_counts_as_a_lease() {
    let api = Api::new();
    for kind in [json!("Pod"), json!(7)] {
        let mut other = lease("a");
        other["kind"] = kind;
        api.post(&other).await.is(400);
    }
    let mut silent = lease("a");
    silent["kind"].take();
    silent.as_object_mut().unwrap().remove("apiVersion");
    let mut held = api.post(&silent).await.is(201);
    held["kind"].take();
    held["spec"]["renewTime"] = "2026-02-02T10:16:00.000000Z".into();
    assert_eq!(api.put(&held).await.is(200)["kind"], "Lease");
    api.send("POST", LEASES, "", "[]").await.is(400);
}

#[tokio::test]
async fn a_listing_comes_in_parts_and_misses_nothing() {
    let api = Api::new();
    for name in ["a", "b", "c"] {
        for namespace in ["default", "elsewhere"] {
            let mut lease = lease(name);
            lease["metadata"]["name"] = name.into();
            api.send("POST", &LEASES.replace("default", namespace), "", lease.to_string()).await.is(201);
        }
    }
    let (mut names, mut next, mut left, mut versions) = (Vec::new(), String::new(), Vec::new(), BTreeSet::new());
    let mut parts = Vec::new();
    loop {
        let list = api.send("GET", &format!("{ALL}?limit=4&continue={next}"), "", "").await.is(200);
        names.extend(list["items"].as_array().unwrap().iter().map(|item| item["metadata"]["name"].to_string()));
        left.push(list["metadata"]["remainingItemCount"].clone());
        parts.push(list["items"].as_array().unwrap().len());
        versions.insert(list["metadata"]["resourceVersion"].to_string());
        let Some(token) = list["metadata"]["continue"].as_str() else { break };
        next = token.to_owned();
        // A watch from the first part's version tells of it.
        api.send("POST", LEASES, "", lease("later").to_string()).await.is(201);
    }
    assert_eq!(names.concat(), r#""a""b""c""a""b""c""#);
    assert_eq!((left, parts), (vec![json!(2), Value::Null], vec![4, 2]));
    assert_eq!(versions.len(), 1, "{versions:?}");
    api.send("GET", &format!("{ALL}?limit=4&continue=nonsense"), "", "").await.is(400);
    let list = api.send("GET", &format!("{ALL}?limit=1&fieldSelector=metadata.name%3Da"), "", "").await.is(200);
    assert!(list["metadata"]["continue"].is_string());
    assert_eq!(list["metadata"].get("remainingItemCount"), None, "nobody counts what a selector leaves out");
}

#[tokio::test]
async fn kubectl_gets_a_table() {
    let api = Api::new();
    api.post(&lease("a")).await.is(201);
    let accept = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json";
    for target in [WEB, LEASES] {
        let request = Request::builder().uri(target).header("accept", accept).body(Body::empty()).unwrap();
        let table = api.ask(request).await.is(200);
        assert_eq!(table["kind"], "Table");
        let cells = &table["rows"][0]["cells"];
        assert_eq!((&cells[0], &cells[1]), (&json!("web"), &json!("a")));
        assert!(cells[2].as_str().is_some_and(|age| age.ends_with('s')), "{cells}");
        assert_eq!(table["rows"][0]["object"]["metadata"]["name"], "web");
    }
    let watched = Request::builder().uri(format!("{LEASES}?watch=1&timeoutSeconds=0")).header("accept", accept);
    let event = api.ask(watched.body(Body::empty()).unwrap()).await.is(200);
    assert_eq!((&event["type"], &event["object"]["rows"][0]["cells"][0]), (&json!("ADDED"), &json!("web")));
}

#[tokio::test]
async fn what_a_client_looks_for_first_is_there_and_everything_else_is_a_status() {
    let api = Api::new();
    for (path, field, value) in [
        ("/api", "/kind", "APIVersions"),
        ("/api/v1", "/resources/0/name", "events"),
        ("/apis", "/groups/0/name", "coordination.k8s.io"),
        ("/apis/coordination.k8s.io", "/preferredVersion/version", "v1"),
        ("/apis/coordination.k8s.io/v1", "/resources/0/name", "leases"),
        ("/version", "/major", "1"),
        ("/livez", "", "ok"),
        ("/readyz", "", "ok"),
        (
            "/openapi/v3",
            "/paths/apis~1coordination.k8s.io~1v1/serverRelativeURL",
            "/openapi/v3/apis/coordination.k8s.io/v1",
        ),
        ("/openapi/v3/apis/coordination.k8s.io/v1", "/info/title", "Kubernetes"),
    ] {
        assert_eq!(api.send("GET", path, "", "").await.is(200).pointer(field), Some(&json!(value)), "{path}");
    }
    assert_eq!(LeaseApi::new(api.store.clone(), "leases/").describe(), "memory:leases/");
    let event = json!({"kind": "Event", "apiVersion": "v1", "reason": "LeaderElection"});
    assert_eq!(api.send("POST", "/api/v1/namespaces/default/events", "", event.to_string()).await.is(201), event);
    for (method, path, status) in [
        ("GET", "/", 404),
        ("GET", "/api/v1/namespaces/default/pods", 404),
        ("DELETE", ALL, 405),
        ("OPTIONS", WEB, 405),
        ("GET", &format!("{LEASES}/Upper"), 404),
        ("GET", &format!("{LEASES}/..%2f..%2fx"), 404),
        ("GET", &LEASES.replace("default", "a_b"), 400),
        ("POST", WEB, 405),
        ("POST", "/readyz", 404),
        ("POST", "/livez", 404),
        ("POST", "/version", 404),
        ("GET", "/api/v1/namespaces/default/events", 404),
    ] {
        let said = api.send(method, path, "", "").await.is(status);
        assert_eq!((&said["kind"], &said["code"]), (&json!("Status"), &json!(status)), "{method} {path}");
    }
}

#[tokio::test]
async fn bodies_have_a_limit_and_strict_clients_get_unknown_fields() {
    let api = Api::new();
    let mut large = lease("a");
    large["metadata"]["annotations"]["note"] = "x".repeat(40_000).into();
    assert_eq!(api.post(&large).await.is(422)["details"]["causes"][0]["field"], "metadata");
    large["metadata"]["annotations"]["note"] = "x".repeat(70_000).into();
    assert_eq!(api.post(&large).await.is(413)["reason"], "RequestEntityTooLarge");
    let fits = |note: usize| {
        let mut lease = lease("a");
        lease["metadata"]["annotations"] = json!({"note": "x".repeat(note - r#"{"annotations":{"note":""}}"#.len())});
        lease.to_string()
    };
    let tried = format!("{LEASES}?dryRun=All");
    api.send("POST", &tried, "", fits(32 * 1024)).await.is(201);
    api.send("POST", &tried, "", fits(32 * 1024 + 1)).await.is(422);
    api.send("POST", LEASES, "", "{").await.is(400);
    let broken = futures_util::stream::iter([Err::<bytes::Bytes, _>(std::io::Error::other("the client is gone"))]);
    assert_eq!(api.send("POST", LEASES, "", Body::from_stream(broken)).await.is(400)["reason"], "BadRequest");
    let odd = with(&lease("a"), &json!({"colour": "red"})).to_string();
    let strict = format!("{LEASES}?fieldValidation=Strict");
    assert!(
        api.send("POST", &strict, "", odd.clone()).await.is(400)["message"].as_str().unwrap().contains("spec.colour")
    );
    let created = api.send("POST", LEASES, "application/json; charset=utf-8", odd).await.is(201);
    assert_eq!(created["spec"].get("colour"), None);
}
