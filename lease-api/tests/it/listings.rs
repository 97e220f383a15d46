//! Listings: those that wait share one, and parts are cut from one.

use std::time::Duration;

use async_trait::async_trait;
use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::Request;
use bytes::Bytes;
use leaderelection::implement::{ConditionalStore, ListedPage, PageToken, Precondition, Version, VersionedObject};
use leaderelection::{LeaderElectionRecord, StoreError};
use leaderelection_lease_api::LeaseApi;
use leaderelection_test_support::faulty::{Call, Faulty};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};
use tower::ServiceExt as _;

use crate::api::{Api, LEASES, lease};
use crate::people::ALL;

/// The time in which the store lists.
const SLOW: Duration = Duration::from_millis(300);

/// A store that takes its time for a listing, and this time for other requests.
#[derive(Debug)]
struct Slow(Faulty, Duration);

#[async_trait]
impl ConditionalStore for Slow {
    async fn get(&self, key: &str) -> Result<Option<VersionedObject>, StoreError> {
        sleep(self.1).await;
        self.0.get(key).await
    }

    async fn put(&self, key: &str, body: Bytes, condition: &Precondition) -> Result<Version, StoreError> {
        sleep(self.1).await;
        self.0.put(key, body, condition).await
    }

    async fn delete(&self, key: &str, expected: Option<&Version>) -> Result<(), StoreError> {
        self.0.delete(key, expected).await
    }

    async fn list_page(
        &self,
        prefix: &str,
        token: Option<&PageToken>,
        limit: Option<u16>,
    ) -> Result<ListedPage, StoreError> {
        sleep(SLOW).await;
        self.0.list_page(prefix, token, limit).await
    }

    fn describe(&self, key: &str) -> String {
        self.0.describe(key)
    }

    fn min_write_interval(&self) -> Option<Duration> {
        self.0.min_write_interval()
    }
}

async fn ask(routes: &Router, target: &str) -> Value {
    let request = Request::builder().uri(target).body(Body::empty()).unwrap();
    let response = routes.clone().oneshot(request).await.unwrap();
    assert_eq!(response.status(), 200, "{target}");
    serde_json::from_slice(&to_bytes(response.into_body(), usize::MAX).await.unwrap()).unwrap()
}

async fn create(api: &Api, namespace: &str, name: &str) -> Value {
    let mut lease = lease("a");
    lease["metadata"]["name"] = name.into();
    api.send("POST", &LEASES.replace("default", namespace), "", lease.to_string()).await.is(201)
}

fn names(list: &Value) -> Vec<&str> {
    list["items"].as_array().unwrap().iter().map(|item| item["metadata"]["name"].as_str().unwrap()).collect()
}

#[tokio::test(start_paused = true)]
async fn listings_that_wait_share_the_next_one_and_see_what_came_before_them() {
    let api = Api::new();
    let routes = LeaseApi::new(Slow(api.store.clone(), Duration::ZERO), "leases/").routes();
    let (began, mut tasks) = (Instant::now(), tokio::task::JoinSet::new());
    let list = |tasks: &mut tokio::task::JoinSet<_>| {
        let routes = routes.clone();
        tasks.spawn(async move { ask(&routes, LEASES).await })
    };
    list(&mut tasks);
    sleep(SLOW / 2).await;
    create(&api, "default", "web").await;
    drop(api.store.take_calls());
    for _ in 0..50 {
        list(&mut tasks);
    }
    let first = tasks.join_next().await.unwrap().unwrap();
    assert_eq!(
        names(&first),
        ["web"],
        "the first one has begun before the Lease, and the store has answered behind it"
    );
    while let Some(listed) = tasks.join_next().await {
        assert_eq!(names(&listed.unwrap()), ["web"]);
    }
    assert_eq!((began.elapsed(), api.store.count(Call::List)), (2 * SLOW, 2));
    // Nobody takes a listing that has begun before.
    create(&api, "default", "web-2").await;
    assert_eq!(names(&ask(&routes, LEASES).await), ["web", "web-2"]);
    create(&api, "default", "web-3").await;
    let any = format!("{LEASES}?resourceVersion=0");
    assert_eq!(names(&ask(&routes, &any).await), ["web", "web-2"], "unless any version will do");
    sleep(LeaseApi::DEFAULT_WATCH_INTERVAL).await;
    assert_eq!(names(&ask(&routes, &any).await).len(), 3);
}

#[tokio::test(start_paused = true)]
async fn pages_of_a_listing_are_asked_for_at_the_same_time_once_a_listing_was_there() {
    let api = Api::new();
    let body = LeaderElectionRecord::new("a", SLOW).to_json();
    for number in 0..2_500 {
        let key = format!("leases/default/web-{number}");
        api.store.inner.put(&key, body.clone().into(), &Precondition::Absent).await.unwrap();
    }
    let routes = LeaseApi::new(Slow(api.store.clone(), Duration::ZERO), "leases/").routes();
    let list = async || {
        drop(api.store.take_calls());
        let began = Instant::now();
        let found = names(&ask(&routes, ALL).await).len();
        (found, began.elapsed(), api.store.count(Call::List))
    };
    assert_eq!(list().await, (2_500, 3 * SLOW, 3), "one after the other");
    assert_eq!(list().await, (2_500, SLOW, 3));
    create(&api, "default", "web-1-new").await;
    assert_eq!(list().await, (2_501, 2 * SLOW, 4), "a page has one more than it can");
    assert_eq!(list().await, (2_501, SLOW, 3));
}

#[tokio::test(start_paused = true)]
async fn a_listing_of_one_namespace_waits_for_none_of_another() {
    let api = Api::new();
    let routes = LeaseApi::new(Slow(api.store.clone(), Duration::ZERO), "leases/").routes();
    let (began, mut tasks) = (Instant::now(), tokio::task::JoinSet::new());
    for number in 0..20 {
        let (routes, target) = (routes.clone(), LEASES.replace("default", &format!("n-{number}")));
        tasks.spawn(async move { ask(&routes, &target).await });
    }
    tasks.join_all().await;
    assert_eq!(began.elapsed(), SLOW);
}

#[tokio::test]
async fn a_part_is_cut_from_the_listing_that_its_continue_names() {
    let api = Api::new();
    for name in ["a", "c", "e", "g"] {
        create(&api, "default", name).await;
    }
    let page = |next: &Value| format!("{ALL}?limit=2&continue={}", next.as_str().unwrap_or_default());
    let first = api.send("GET", &page(&Value::Null), "", "").await.is(200);
    assert_eq!(names(&first), ["a", "c"]);
    create(&api, "default", "d").await;
    api.send("DELETE", &format!("{LEASES}/g"), "", "").await.is(200);
    api.send("GET", ALL, "", "").await.is(200);
    drop(api.store.take_calls());
    let second = api.send("GET", &page(&first["metadata"]["continue"]), "", "").await.is(200);
    assert_eq!(names(&second), ["e", "g"], "as they were at the first part");
    assert_eq!(api.store.take_calls(), [], "it costs the store nothing");
    assert_eq!(second["metadata"], json!({"resourceVersion": first["metadata"]["resourceVersion"]}));
    let other = api.another().send("GET", &page(&first["metadata"]["continue"]), "", "").await.is(200);
    assert_eq!(names(&other), ["d", "e"], "another server goes on with what is there");
}

#[tokio::test]
async fn an_exact_version_is_that_listing_or_gone() {
    let api = Api::new();
    create(&api, "default", "a").await;
    let first = api.send("GET", LEASES, "", "").await.is(200);
    let created = create(&api, "default", "b").await;
    let exact = |version: &Value| {
        format!("{LEASES}?resourceVersionMatch=Exact&resourceVersion={}", version["resourceVersion"].as_str().unwrap())
    };
    let newest = api.send("GET", LEASES, "", "").await.is(200);
    for (listing, expected) in [(&newest, &["a", "b"][..]), (&first, &["a"])] {
        let found = api.send("GET", &exact(&listing["metadata"]), "", "").await.is(200);
        assert_eq!((names(&found), &found["metadata"]), (expected.to_vec(), &listing["metadata"]));
    }
    for version in [&newest["metadata"], &json!({"resourceVersion": "7"}), &created["metadata"]] {
        let answer = api.another().send("GET", &exact(version), "", "").await.is(410);
        assert_eq!(answer["reason"], "Expired", "{version}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_deletion_of_all_has_a_time_for_each_lease() {
    let api = Api::new();
    for number in 0..40 {
        create(&api, "default", &format!("web-{number}")).await;
    }
    // One after the other, they would take longer than a request may.
    let routes = LeaseApi::new(Slow(api.store.clone(), SLOW), "leases/").routes();
    drop(api.store.take_calls());
    let request = Request::builder().method("DELETE").uri(LEASES).body(Body::empty()).unwrap();
    assert_eq!(routes.clone().oneshot(request).await.unwrap().status(), 200);
    assert_eq!(api.store.count(Call::Put), 40);
    assert_eq!(ask(&routes, LEASES).await["items"], json!([]));
}
