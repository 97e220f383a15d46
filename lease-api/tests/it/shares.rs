//! The share of each token: what it asks for does not keep another one waiting.

use axum::Router;
use axum::body::{Body, Bytes, to_bytes};
use axum::http::Request;
use futures_util::future::join_all;
use futures_util::{FutureExt as _, stream};
use leaderelection_lease_api::{Caller, LeaseApi, Role};
use leaderelection_test_support::faulty::{Call, Fault, Faulty};
use serde_json::{Value, json};
use tower::ServiceExt as _;

use crate::api::{Api, LEASES, lease};
use crate::callers::REVIEWS;

/// The number of listings, or of requests about large Leases, of one token at a time.
const SHARE: usize = 4;

/// Asks with a token for everything.
async fn ask(routes: &Router, token: &str, method: &str, target: &str, body: impl Into<Body>) -> (u16, Body) {
    let caller = Caller { name: token.to_owned(), everywhere: Some(Role::Write), ..Caller::default() };
    let request = Request::builder().method(method).uri(target).extension(caller).body(body.into()).unwrap();
    let answer = routes.clone().oneshot(request).await.unwrap();
    (answer.status().as_u16(), answer.into_body())
}

async fn read(body: Body) -> Value {
    serde_json::from_slice(&to_bytes(body, usize::MAX).await.unwrap()).unwrap()
}

/// The Leases of a namespace.
fn of(number: usize) -> String {
    LEASES.replace("default", &format!("n-{number}"))
}

#[tokio::test(start_paused = true)]
async fn a_token_for_everything_has_one_share_in_all_namespaces() {
    let store = Faulty::default();
    let routes = LeaseApi::new(store.clone(), "leases/").routes();
    store.fail(|call, _, _| (call == Call::List).then_some(Fault::Hang));
    let targets: Vec<_> = (0..2 * SHARE).map(of).collect();
    let mut lists = Box::pin(join_all(targets.iter().map(|target| ask(&routes, "a", "GET", target, ""))));
    assert!(lists.as_mut().now_or_never().is_none());
    assert_eq!(store.count(Call::List), SHARE, "the others wait before they cost anything");
    let mut other = Box::pin(ask(&routes, "b", "GET", LEASES, ""));
    assert!(other.as_mut().now_or_never().is_none());
    assert_eq!(store.count(Call::List), SHARE + 1, "another token has its own");
    drop((lists, other));

    store.recover();
    let mut watches = Vec::new();
    for number in 0..=500 {
        let (status, events) = ask(&routes, "a", "GET", &format!("{}?watch=1", of(number)), "").await;
        assert_eq!(status, if number < 500 { 200 } else { 429 }, "{number}");
        watches.push(events);
    }
    assert_eq!(ask(&routes, "b", "GET", &format!("{LEASES}?watch=1"), "").await.0, 200);
}

#[tokio::test(start_paused = true)]
async fn each_body_that_can_be_large_takes_a_part_of_the_share() {
    for (method, target) in [("POST", REVIEWS), ("DELETE", LEASES), ("POST", LEASES)] {
        let routes = LeaseApi::new(Faulty::default(), "leases/").routes();
        let slow = async |patience: &str| {
            let never = stream::pending::<Result<Bytes, std::io::Error>>();
            ask(&routes, "a", method, &format!("{target}?timeout={patience}"), Body::from_stream(never)).await.0
        };
        let four = join_all((0..SHARE).map(|_| slow("5s")));
        let (four, fifth, other) = tokio::join!(four, slow("1s"), ask(&routes, "b", "DELETE", LEASES, ""));
        assert_eq!((four, fifth), (vec![400; SHARE], 429), "{method} {target}");
        assert_eq!(other.0, 200);
    }
}

#[tokio::test(start_paused = true)]
async fn a_deletion_of_all_has_its_part_of_the_share_until_its_end() {
    let api = Api::new();
    api.post(&lease("a")).await.is(201);
    let routes = LeaseApi::new(api.store.clone(), "leases/").routes();
    assert_eq!(ask(&routes, "a", "GET", LEASES, "").await.0, 200);
    drop(api.store.take_calls());
    api.store.fail(|call, _, _| (call == Call::Get).then_some(Fault::Hang));
    let mut deletions = Box::pin(join_all((0..=SHARE).map(|_| ask(&routes, "a", "DELETE", LEASES, ""))));
    assert!(deletions.as_mut().now_or_never().is_none());
    assert_eq!((api.store.count(Call::List), api.store.count(Call::Get)), (SHARE, SHARE));
}

#[tokio::test]
async fn a_trial_of_a_deletion_of_all_reads_no_lease() {
    let api = Api::new();
    for number in 0..20 {
        let mut lease = lease("a");
        lease["metadata"]["name"] = format!("web-{number}").into();
        api.post(&lease).await.is(201);
    }
    drop(api.store.take_calls());
    let target = format!("{LEASES}?dryRun=All");
    let in_body = json!({"dryRun": ["All"]}).to_string();
    for (target, options) in [(&*target, ""), (LEASES, &in_body)] {
        let told = api.send("DELETE", target, "", options.to_owned()).await.is(200);
        assert_eq!(told["items"].as_array().unwrap().len(), 20);
        assert_eq!(api.store.take_calls(), [(Call::List, "leases/default/".to_owned())]);
    }
    let other = json!({"preconditions": {"uid": "other"}}).to_string();
    api.send("DELETE", &target, "", other).await.is(409);
    let (status, kept) = ask(&LeaseApi::new(api.store.clone(), "leases/").routes(), "a", "GET", LEASES, "").await;
    assert_eq!((status, read(kept).await["items"].as_array().unwrap().len()), (200, 20));
}
