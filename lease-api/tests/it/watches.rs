//! Watches: what they tell, where they go on, and what they cost.

use std::time::Duration;

use axum::body::{Body, to_bytes};
use axum::http::Request;
use axum::response::Response;
use bytes::Bytes;
use futures_util::{Stream, StreamExt as _};
use leaderelection::StoreErrorKind;
use leaderelection::implement::{ConditionalStore as _, Precondition};
use leaderelection_lease_api::LeaseApi;
use leaderelection_test_support::faulty::{Call, Fault};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};
use tower::ServiceExt as _;

use crate::api::{Api, KEY, LEASES, WEB, lease, with};
use crate::people::ALL;

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
    let mut events = Box::pin(
        watch(&server, "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true").await,
    );
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
async fn a_watch_without_initial_events_tells_what_comes_from_now_on() {
    let api = Api::new();
    let held = api.post(&lease("a")).await.is(201);
    let server = LeaseApi::new(api.store.clone(), "leases/");
    let query = "sendInitialEvents=false&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";
    let mut events = Box::pin(watch(&server, query).await);
    let renewed = api.put(&with(&held, &json!({"renewTime": "2026-02-02T10:16:00.000000Z"}))).await.is(200);
    assert_eq!(events.next().await.unwrap(), json!({"type": "MODIFIED", "object": renewed}));
}

/// A client would take DELETED for the end of the lease, and clean up after its holder.
#[tokio::test(start_paused = true)]
async fn a_lease_that_cannot_be_read_any_more_is_not_told_as_deleted() {
    let api = Api::new();
    let held = api.post(&lease("a")).await.is(201);
    let routes = LeaseApi::new(api.store.clone(), "leases/").routes();
    let ask = async |target: &str| {
        let request = Request::builder().uri(target).body(Body::empty()).unwrap();
        routes.clone().oneshot(request).await.unwrap().into_body()
    };
    let mut events = ask(&format!("{LEASES}?watch=true&resourceVersion=0")).await.into_data_stream();
    let mut next = async || serde_json::from_slice::<Value>(&events.next().await.unwrap().unwrap()).unwrap();
    assert_eq!(next().await["type"], "ADDED");
    let body = api.store.inner.get(KEY).await.unwrap().unwrap().body;
    let replace = async |body: Bytes| {
        let version = api.store.inner.get(KEY).await.unwrap().unwrap().version;
        api.store.inner.put(KEY, body, &Precondition::Matches(version)).await.unwrap();
    };
    let list = async || {
        let body = to_bytes(ask(LEASES).await, usize::MAX).await.unwrap();
        serde_json::from_slice::<Value>(&body).unwrap()["items"].clone()
    };
    replace(Bytes::from_static(b"this is no record")).await;
    assert_eq!(list().await, json!([held]), "no record");
    replace(body).await;
    api.store
        .fail(|call, key, _| (call == Call::Get && key == KEY).then_some(Fault::Refuse(StoreErrorKind::Unreadable)));
    assert_eq!(list().await, json!([held]), "unreadable");
    assert_eq!(api.another().send("GET", LEASES, "", "").await.is(200)["items"], json!([]), "never read");
    api.store.fail(|_, _, _| None);
    let server = api.another();
    let renewed = server.put(&with(&held, &json!({"renewTime": "2026-02-02T10:16:00.000000Z"}))).await.is(200);
    list().await;
    assert_eq!(next().await, json!({"type": "MODIFIED", "object": renewed}));
    server.send("DELETE", WEB, "", "").await.is(200);
    list().await;
    assert_eq!(next().await["type"], "DELETED");
}

#[tokio::test(start_paused = true)]
async fn a_client_that_asks_for_a_websocket_is_refused_at_once() {
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

/// As RetryWatcher and `Until` of client-go begin, and as they go on after a restart.
#[tokio::test(start_paused = true)]
async fn a_watch_goes_on_from_the_version_of_a_lease_that_no_listing_has_shown() {
    let api = Api::new();
    let held = api.post(&lease("a")).await.is(201);
    let mut other = lease("b");
    other["metadata"]["name"] = "other".into();
    let other = api.post(&other).await.is(201);
    let version = |lease: &Value| lease["metadata"]["resourceVersion"].as_str().unwrap().to_owned();
    let from = async |version: String, query: &str| {
        let query = format!("resourceVersion={version}&timeoutSeconds=5&{query}");
        watch(&LeaseApi::new(api.store.clone(), "leases/"), &query).await.collect::<Vec<_>>().await
    };
    let web = "fieldSelector=metadata.name%3Dweb";
    assert_eq!(from(version(&held), web).await, Vec::<Value>::new(), "nothing has changed");
    let modified = |lease: &Value| json!({"type": "MODIFIED", "object": lease});
    assert_eq!(from(version(&held), "").await, [modified(&other)], "which may have come since");
    let renewed = api.put(&with(&held, &json!({"renewTime": "2026-02-02T10:16:00.000000Z"}))).await.is(200);
    assert_eq!(from(version(&held), web).await, [modified(&renewed)]);
    assert_eq!(from(version(&other), "").await, [modified(&renewed)]);

    // The next event comes behind the first ones.
    let server = LeaseApi::new(api.store.clone(), "leases/");
    let mut events = Box::pin(watch(&server, &format!("resourceVersion={}&{web}", version(&held))).await);
    assert_eq!(events.next().await.unwrap(), modified(&renewed));
    api.send("DELETE", WEB, "", "").await.is(200);
    assert_eq!(events.next().await.unwrap()["type"], "DELETED");
    assert_eq!(from(version(&renewed), web).await[0]["type"], "DELETED");
    for (version, query) in [(version(&held), web), ("7".to_owned(), ""), (version(&renewed), "labelSelector=app")] {
        let events = from(version.clone(), query).await;
        assert_eq!((&events[0]["type"], &events[0]["object"]["code"]), (&json!("ERROR"), &json!(410)), "{version}");
    }
}

#[tokio::test(start_paused = true)]
async fn bookmarks_come_every_minute_and_a_new_watch_continues_from_one() {
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
async fn watches_of_one_place_share_listings_and_see_no_other_place() {
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
