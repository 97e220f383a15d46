//! `watch -o cloudevents` and `watch --post`, to a real server.

use std::collections::BTreeSet;
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::http::{HeaderMap, StatusCode, Uri};
use leaderelection_integration_tests::relay::Relay;
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::runtime::Runtime;
use tokio::time::timeout;

use crate::peers::own_address;
use crate::support::{PATIENCE, Place, Running, end, leaderelect, record};
use crate::without_certificates::bare;

/// A receiver of events that answers with these codes, and then with 204.
struct Hook {
    address: String,
    requests: Receiver<(HeaderMap, Uri, String)>,
    _runtime: Runtime,
}

impl Hook {
    fn start(codes: &'static [u16]) -> Self {
        let runtime = Runtime::new().unwrap();
        let listener = runtime.block_on(TcpListener::bind(own_address())).unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let (sender, requests) = channel();
        let codes = Arc::new(Mutex::new(codes.iter().copied()));
        let routes = Router::new().fallback(async move |headers: HeaderMap, uri: Uri, body: String| {
            sender.send((headers, uri, body)).unwrap();
            let code = codes.lock().unwrap().next().unwrap_or(204);
            (StatusCode::from_u16(code).unwrap(), [("location", "/elsewhere")])
        });
        runtime.spawn(async { axum::serve(listener, routes).await });
        Self { address, requests, _runtime: runtime }
    }

    fn url(&self) -> String {
        format!("http://user:opaque1@{}/opaque2?key=opaque3", self.address)
    }

    fn host(&self) -> String {
        self.address.split(':').next().unwrap().to_owned()
    }

    fn next(&self) -> (HeaderMap, Uri, Value) {
        let (headers, uri, body) = self.requests.recv_timeout(PATIENCE).unwrap();
        (headers, uri, serde_json::from_str(&body).unwrap())
    }
}

fn check(event: &Value, lock: &str, name: &str) -> String {
    assert_eq!(event["specversion"], "1.0", "{event}");
    assert_eq!(event["type"], format!("leaderelection.{name}"), "{event}");
    assert_eq!((&event["source"], &event["datacontenttype"]), (&lock.into(), &"application/json".into()), "{event}");
    assert!(event["time"].as_str().unwrap().ends_with('Z'), "{event}");
    assert_eq!(event["data"]["event"], name, "{event}");
    assert_eq!(event.as_object().unwrap().len(), 7, "an attribute that CloudEvents has not: {event}");
    event["id"].as_str().unwrap().to_owned()
}

#[test]
fn each_change_is_a_cloud_event_on_standard_output() {
    let place = Place::new();
    place.overwrite("a", &record("node-1", "1h", 7, "1"));
    let lock = place.lock("a");
    let mut watch = Running::start(&["watch", "-o", "cloudevents", "--interval", "20ms", &lock]);
    let mut next = |name| {
        let event: Value = serde_json::from_str(&watch.wait_for("")).unwrap();
        (check(&event, &lock, name), event)
    };
    let (first, event) = next("leading");
    assert_eq!((&event["data"]["holder"], &event["data"]["fencingToken"]), (&"node-1".into(), &7.into()));
    place.overwrite("a", &record("", "1s", 7, "2"));
    let (second, _) = next("free");
    assert_ne!(first, second);
}

#[test]
fn changes_are_posted_in_order_and_retried_after_a_refusal() {
    let place = Place::new();
    place.overwrite("a", &record("node-1", "1h", 7, "1"));
    let (lock, hook) = (place.lock("a"), Hook::start(&[503, 200, 204, 429]));
    let mut watch = Running::start(&["watch", "--interval", "20ms", "--post", &hook.url(), &lock]);
    let (headers, uri, event) = hook.next();
    let first = check(&event, &lock, "leading");
    assert_eq!(
        (&headers["content-type"], uri.to_string()),
        (&"application/cloudevents+json".parse().unwrap(), "/opaque2?key=opaque3".to_owned())
    );
    assert!(headers["authorization"].to_str().unwrap().starts_with("Basic "));
    // The changes go on meanwhile.
    for (token, holder) in [(7, ""), (8, "node-2"), (8, "")] {
        place.overwrite("a", &record(holder, "1h", token, &format!("{token}{holder}")));
        watch.wait_for_line(if holder.is_empty() { "nobody leads" } else { "node-2 leads" });
    }
    assert_eq!(check(&hook.next().2, &lock, "leading"), first, "the same event again");
    let ids: Vec<_> = ["free", "leading", "leading", "free"].map(|name| check(&hook.next().2, &lock, name)).into();
    assert_eq!(ids[1], ids[2], "429 is no answer for good");
    assert_eq!(ids.into_iter().chain([first]).collect::<BTreeSet<_>>().len(), 4);
}

#[test]
fn a_change_is_posted_without_certificates_of_authorities() {
    let place = Place::new();
    place.overwrite("a", &record("node-1", "1h", 7, "1"));
    let (lock, hook) = (place.lock("a"), Hook::start(&[]));
    let _watch = Running::of(bare(leaderelect(["watch", "--post", &hook.url(), &lock])));
    check(&hook.next().2, &lock, "leading");
}

/// A request that waits for an answer would wait for an hour.
#[test]
fn a_change_is_posted_after_a_firewall_forgot_the_connection() {
    let place = Place::new();
    place.overwrite("a", &record("node-1", "1h", 7, "1"));
    let (lock, hook, runtime) = (place.lock("a"), Hook::start(&[]), Runtime::new().unwrap());
    let relay = runtime.block_on(Relay::start(&format!("http://{}", hook.address)));
    let patient = ["watch", "--interval", "20ms", "--request-timeout", "1h", "--post", relay.url(), &lock];
    let _watch = Running::start(&patient);
    check(&hook.next().2, &lock, "leading");
    // The answer has come.
    runtime.block_on(async { timeout(PATIENCE, relay.closed(1)).await }).unwrap();
    relay.forget();
    place.overwrite("a", &record("", "1s", 7, "2"));
    check(&hook.next().2, &lock, "free");
}

#[test]
fn an_event_that_is_not_taken_is_reported_without_the_secrets_of_the_url() {
    let place = Place::new();
    place.overwrite("a", &record("node-1", "1h", 7, "1"));
    let (lock, hook) = (place.lock("a"), Hook::start(&[404, 302]));
    let mut command = leaderelect(["watch", "--interval", "20ms", &lock]);
    command.env("LEADERELECT_POST", hook.url());
    let mut watch = Running::of(command);
    let host = hook.host();
    let mut refused = |what: &str| watch.wait_for_note(&format!("{host} did not take {what}"));
    let mut notes = refused("leading: the answer was 404 Not Found; left it out");
    place.overwrite("a", &record("", "1h", 7, "2"));
    notes += &refused("free: the answer was 302 Found; left it out");
    place.overwrite("a", &record("node-2", "1h", 8, "3"));
    let asked: Vec<_> = ["leading", "free", "leading"].map(|name| (check(&hook.next().2, &lock, name), name)).into();
    assert_eq!(asked.len(), 3);
    assert!(hook.requests.try_recv().is_err(), "a redirect is not followed");
    drop(hook);
    // Five attempts.
    place.overwrite("a", &record("", "1h", 8, "4"));
    notes += &refused("free: ");
    assert!(notes.contains("onnect") && !notes.contains("opaque"), "{notes}");
}

#[test]
fn a_url_that_cannot_be_posted_to_is_wrong_usage_and_not_repeated() {
    let place = Place::new();
    for url in ["ftp://opaque@example.com/opaque", "opaque", "https://"] {
        let ended = end(&["watch", "--post", url, &place.lock("a")]);
        assert_eq!(ended.code, Some(64), "{ended:?}");
        assert!(ended.stderr.contains("--post: ") && !ended.stderr.contains("opaque"), "{ended:?}");
    }
}
