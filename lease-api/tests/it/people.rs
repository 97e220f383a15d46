//! The requests of people and controllers: listings, watches, tables, trials, and descriptions of the API.

use std::collections::BTreeSet;
use std::time::Duration;

use axum::body::{Body, to_bytes};
use axum::http::Request;
use axum::response::Response;
use futures_util::{Stream, StreamExt as _};
use leaderelection_lease_api::{LeaseApi, Namespaces};
use leaderelection_test_support::faulty::{Call, Fault};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};
use tower::ServiceExt as _;

use crate::api::{Api, LEASES, WEB, lease, with};

const ALL: &str = "/apis/coordination.k8s.io/v1/leases";

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

/// Sends a request whose answer does not end.
async fn watch(api: &LeaseApi, query: &str) -> impl Stream<Item = Value> + use<> {
    let target = format!("{LEASES}?watch=true&{query}");
    let request = Request::builder().uri(target).body(Body::empty()).unwrap();
    let response: Response = api.routes().oneshot(request).await.unwrap();
    assert_eq!(response.status(), 200);
    response.into_body().into_data_stream().map(|line| serde_json::from_slice(&line.unwrap()).unwrap())
}

#[tokio::test(start_paused = true)]
async fn a_watch_tells_what_any_server_has_changed() {
    let api = Api::new();
    let held = api.post(&lease("a")).await.is(201);
    let server = LeaseApi::new(api.store.clone(), "leases/");
    let mut events = Box::pin(watch(&server, "sendInitialEvents=true&allowWatchBookmarks=true").await);
    let mut next = async || events.next().await.unwrap();
    assert_eq!(next().await, json!({"type": "ADDED", "object": held}));
    let bookmark = next().await;
    assert_eq!(bookmark["type"], "BOOKMARK");
    assert_eq!(bookmark["object"]["metadata"]["annotations"]["k8s.io/initial-events-end"], "true");
    let renewed = api.put(&with(&held, &json!({"renewTime": "2026-02-02T10:16:00.000000Z"}))).await.is(200);
    assert_eq!(next().await, json!({"type": "MODIFIED", "object": renewed}));
    api.send("DELETE", WEB, "", "").await.is(200);
    assert_eq!(next().await["type"], "DELETED");
    api.post(&lease("b")).await.is(201);
    assert_eq!(next().await["type"], "ADDED");
}

#[tokio::test(start_paused = true)]
async fn a_client_that_asks_for_a_websocket_is_told_at_once_to_watch_without_one() {
    let api = Api::new();
    api.post(&lease("a")).await.is(201);
    let watch = async |protocol| {
        let asked = Request::builder().uri(format!("{LEASES}?watch=true&resourceVersion=0&timeoutSeconds=1"));
        let asked = asked.header("connection", "Upgrade").header("upgrade", protocol);
        api.ask(asked.body(Body::empty()).unwrap()).await.is(200)
    };
    let asked = Instant::now();
    assert_eq!((watch("WebSocket").await, asked.elapsed()), (json!(""), Duration::ZERO), "an answer that ends");
    assert_eq!(watch("h2c").await["type"], "ADDED", "an upgrade that a server need not grant");
}

#[tokio::test(start_paused = true)]
async fn a_watch_goes_on_behind_a_listing_and_not_behind_that_of_another_server() {
    let api = Api::new();
    let held = api.post(&lease("a")).await.is(201);
    let server = LeaseApi::new(api.store.clone(), "leases/");
    let routes = server.routes();
    let list = async || {
        let request = Request::builder().uri(LEASES).body(Body::empty()).unwrap();
        let response = routes.clone().oneshot(request).await.unwrap();
        let body = axum::body::to_bytes(response.into_body(), usize::MAX).await.unwrap();
        serde_json::from_slice::<Value>(&body).unwrap()["metadata"]["resourceVersion"].as_str().unwrap().to_owned()
    };
    let version = list().await;
    let taken = api.put(&with(&held, &json!({"holderIdentity": "b"}))).await.is(200);
    list().await;
    let request = Request::builder().uri(format!("{LEASES}?watch=1&resourceVersion={version}"));
    let response = routes.clone().oneshot(request.body(Body::empty()).unwrap()).await.unwrap();
    let mut events = response.into_body().into_data_stream();
    let event: Value = serde_json::from_slice(&events.next().await.unwrap().unwrap()).unwrap();
    assert_eq!(event, json!({"type": "MODIFIED", "object": taken}));
    // The watch goes on from an event, as clients do that have seen no bookmark: it tells that event again, and misses none.
    let seen = taken["metadata"]["resourceVersion"].as_str().unwrap();
    let renewed = api.put(&with(&taken, &json!({"renewTime": "2026-02-02T10:17:00.000000Z"}))).await.is(200);
    let request = Request::builder().uri(format!("{LEASES}?watch=1&resourceVersion={seen}"));
    let response = routes.clone().oneshot(request.body(Body::empty()).unwrap()).await.unwrap();
    let mut events = response.into_body().into_data_stream();
    for object in [&taken, &renewed] {
        let event: Value = serde_json::from_slice(&events.next().await.unwrap().unwrap()).unwrap();
        assert_eq!(event, json!({"type": "MODIFIED", "object": object}));
    }
    // Of the first listing of a server, nobody knows what was deleted before.
    let first = held["metadata"]["resourceVersion"].as_str().unwrap();
    for version in [version.as_str(), "7", "l0-1", first] {
        let mut events = Box::pin(watch(&server, &format!("resourceVersion={version}")).await);
        let event = events.next().await.unwrap();
        assert_eq!((&event["type"], &event["object"]["code"]), (&json!("ERROR"), &json!(410)), "{version}");
        assert_eq!(events.next().await, None);
    }
    let (mut events, began) = (Box::pin(watch(&server, "resourceVersion=0&timeoutSeconds=60").await), Instant::now());
    assert_eq!(events.next().await.unwrap()["type"], "ADDED");
    assert_eq!(events.next().await, None);
    assert_eq!(began.elapsed().as_secs(), 60, "a watch ends when its client wants it to");
}

#[tokio::test(start_paused = true)]
async fn bookmarks_come_every_minute_and_at_the_end_of_a_watch_and_the_next_one_goes_on_from_them() {
    let api = Api::new();
    let held = api.post(&lease("a")).await.is(201);
    let routes = LeaseApi::new(api.store.clone(), "leases/").routes();
    let watch = async |query: &str| {
        let request = Request::builder().uri(format!("{LEASES}?watch=1&{query}")).body(Body::empty()).unwrap();
        let body = to_bytes(routes.clone().oneshot(request).await.unwrap().into_body(), usize::MAX).await.unwrap();
        body.split(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice(line).ok()).collect::<Vec<Value>>()
    };
    let events = watch("allowWatchBookmarks=true&timeoutSeconds=150").await;
    let kinds: Vec<_> = events.iter().map(|event| event["type"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["ADDED", "BOOKMARK", "BOOKMARK", "BOOKMARK"]);
    let version = events[3]["object"]["metadata"]["resourceVersion"].as_str().unwrap();
    let renewed = api.put(&with(&held, &json!({"renewTime": "2026-02-02T10:16:00.000000Z"}))).await.is(200);
    let events = watch(&format!("resourceVersion={version}&timeoutSeconds=10")).await;
    assert_eq!(events, [json!({"type": "MODIFIED", "object": renewed})]);
}

#[tokio::test(start_paused = true)]
async fn a_slow_reader_of_many_leases_keeps_them_in_memory_for_a_minute_at_most() {
    let api = Api::new();
    for name in ["a", "b"] {
        let mut lease = lease("a");
        lease["metadata"] = json!({"name": name, "annotations": {"note": "x".repeat(30_000)}});
        api.post(&lease).await.is(201);
    }
    let server = LeaseApi::new(api.store.clone(), "leases/");
    let routes = server.routes();
    let ask = async |query: &str| {
        let request = Request::builder().uri(format!("{LEASES}?{query}")).body(Body::empty()).unwrap();
        routes.clone().oneshot(request).await.unwrap()
    };
    let mut slow = Vec::new();
    for _ in 0..2 {
        slow.extend([ask("").await, ask("watch=1").await]);
    }
    let began = Instant::now();
    // Listings of another tenant wait for nobody.
    let elsewhere = Request::builder().uri(LEASES.replace("default", "elsewhere")).body(Body::empty()).unwrap();
    assert_eq!(routes.clone().oneshot(elsewhere).await.unwrap().status(), 200);
    assert_eq!(began.elapsed(), Duration::ZERO);
    assert_eq!(ask("").await.status(), 429, "the share of this one is taken");
    sleep(Duration::from_secs(60)).await;
    assert_eq!(ask("").await.status(), 200);
    for (number, answer) in slow.into_iter().enumerate() {
        let read = to_bytes(answer.into_body(), usize::MAX).await;
        assert!(read.is_err(), "{number}: what is not complete is no answer");
    }
}

#[tokio::test(start_paused = true)]
async fn watches_of_one_place_share_their_listings_and_hear_of_no_other_place() {
    let api = Api::new();
    let routes = LeaseApi::new(api.store.clone(), "leases/").routes();
    let ask = async |target: &str| {
        routes.clone().oneshot(Request::builder().uri(target).body(Body::empty()).unwrap()).await.unwrap()
    };
    let (mut tasks, target) = (tokio::task::JoinSet::new(), format!("{LEASES}?watch=1&timeoutSeconds=21"));
    for _ in 0..3 {
        tasks.spawn(to_bytes(ask(&target).await.into_body(), usize::MAX));
    }
    sleep(Duration::from_secs(11)).await;
    drop(api.store.take_calls());
    api.send("POST", &LEASES.replace("default", "elsewhere"), "", lease("a").to_string()).await.is(201);
    assert_eq!(ask(ALL).await.status(), 200);
    let held = api.post(&lease("a")).await.is(201);
    while let Some(told) = tasks.join_next().await {
        let told: Value = serde_json::from_slice(&told.unwrap().unwrap()).unwrap();
        assert_eq!(told, json!({"type": "ADDED", "object": held}), "and nothing else");
    }
    let listings = api.store.count(Call::List);
    assert!((5..=7).contains(&listings), "{listings} in ten seconds, and one of them for all places");

    let watched = ask(&target.replace("=21", "=70")).await;
    let told = tokio::spawn(to_bytes(watched.into_body(), usize::MAX));
    sleep(Duration::from_secs(5)).await;
    api.store.fail(|call, _, _| (call == Call::List).then_some(Fault::Hang));
    drop(api.store.take_calls());
    told.await.unwrap().unwrap();
    let listings = api.store.count(Call::List);
    assert!((4..=7).contains(&listings), "{listings} of a store that says nothing for more than a minute");
}

#[tokio::test(start_paused = true)]
async fn a_crowd_of_watches_is_sent_away_and_an_elector_is_not() {
    let api = Api::new();
    let held = api.post(&lease("a")).await.is(201);
    let server = LeaseApi::new(api.store.clone(), "leases/");
    let routes = server.routes();
    let ask = async || {
        let request = Request::builder().uri(format!("{LEASES}?watch=1")).body(Body::empty()).unwrap();
        routes.clone().oneshot(request).await.unwrap()
    };
    let mut watches = Vec::new();
    let refused = loop {
        let answer = ask().await;
        if answer.status() != 200 {
            break answer;
        }
        watches.push(answer);
        assert!(watches.len() <= 1000);
    };
    assert_eq!((refused.status().as_u16(), &refused.headers()["retry-after"]), (429, &"1".parse().unwrap()));
    api.put(&with(&held, &json!({"renewTime": "2026-02-02T10:16:00.000000Z"}))).await.is(200);
    watches.pop();
    assert_eq!(ask().await.status(), 200, "a watch that has ended makes room");
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
async fn a_caller_reaches_its_own_namespaces_only() {
    let api = Api::new();
    for (target, method, status) in [(LEASES, "GET", 200), (ALL, "GET", 403), (WEB, "GET", 404)] {
        let own = Namespaces(BTreeSet::from(["default".to_owned()]));
        let request = Request::builder().method(method).uri(target).extension(own);
        api.ask(request.body(Body::empty()).unwrap()).await.is(status);
    }
    for (target, method) in
        [(LEASES, "POST"), (WEB, "PUT"), (WEB, "PATCH"), (WEB, "DELETE"), (WEB, "GET"), (LEASES, "GET")]
    {
        let other = Namespaces(BTreeSet::from(["other".to_owned()]));
        let request = Request::builder().method(method).uri(target).extension(other);
        let said = api.ask(request.body(Body::from(lease("a").to_string())).unwrap()).await.is(403);
        assert_eq!(said["reason"], "Forbidden", "{method} {target}");
    }
    assert_eq!(api.store.requests(), 2, "nothing else was asked of the store");
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
        ("DELETE", LEASES, 405),
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
async fn bodies_have_a_limit_and_strict_clients_hear_of_unknown_fields() {
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
