//! The meaning of answers, through the real client, and its one attempt.

use std::time::Duration;

use leaderelection::StoreErrorKind::{self, Ambiguous, Conflict, Fatal, Rejected, Unreadable};
use leaderelection::implement::{ConditionalStore as _, ConditionalStoreExt, Precondition, Version};
use leaderelection::{LeaderElectionRecord, StoreError};
use leaderelection_backends::kubernetes::LeaseStore;
use leaderelection_integration_tests::servers::scripted::{Answer, ScriptedServer, Step};
use serde_json::json;
use tokio::net::TcpSocket;

use super::store;
use crate::calls::Call::{self, Create, Delete, Get, List, Update};

const ALL: &[Call] = &[Get, Create, Update, Delete, List];
const WRITES: &[Call] = &[Create, Update, Delete];

/// A Lease with the version that updates replace.
fn lease() -> Answer {
    let lease = json!({
        "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
        "metadata": {"name": "key", "uid": "u", "resourceVersion": "7"},
        "spec": {"holderIdentity": "pod-1", "leaseDurationSeconds": 15, "leaseTransitions": 3},
    });
    Answer::new(200).body(lease.to_string())
}

/// A failure in the words of an API server about a resource.
fn failure(status: u16, reason: &str, kind: &str) -> Answer {
    let said = json!({
        "kind": "Status", "apiVersion": "v1", "status": "Failure", "message": "the words of the server",
        "reason": reason, "details": {"name": "key", "kind": kind}, "code": status,
    });
    Answer::new(status).header("content-type", "application/json").body(said.to_string())
}

async fn call(call: Call, store: &LeaseStore) -> Result<(), StoreError> {
    let body = LeaderElectionRecord::new("ours", Duration::from_secs(15)).to_json().into();
    let version = Version::new("u/7");
    match call {
        Get => store.get("key").await.map(drop),
        Create => store.put("key", body, &Precondition::Absent).await.map(drop),
        Update => store.put("key", body, &Precondition::Matches(version)).await.map(drop),
        Delete => store.delete("key", Some(&version)).await,
        List => store.list("key").await.map(drop),
    }
}

/// Answers one call with `step`. The Lease that an update replaces is read before. Returns the number of requests of
/// the call.
async fn answered(which: Call, step: impl Into<Step>) -> (Result<(), StoreError>, usize) {
    let server = ScriptedServer::start([lease().into(), step.into()]).await;
    let store = store(&server.url()).with_request_timeout(Duration::from_secs(20));
    store.get("key").await.expect("a Lease");
    let result = call(which, &store).await;
    (result, server.requests().len() - 1)
}

async fn assert_verdict(calls: &[Call], answer: Answer, kind: StoreErrorKind, advice: &str) {
    for which in calls {
        let (result, requests) = answered(*which, answer.clone()).await;
        let error = result.expect_err("an error");
        assert_eq!((error.kind(), requests), (kind, 1), "{which:?}, {answer:?}: {error:?}");
        let text = error.to_string();
        assert!(text.starts_with("lease://default/key: ") && text.contains(advice), "{which:?}, {answer:?}: {text}");
    }
}

#[tokio::test]
async fn each_status_has_its_meaning() {
    for (status, reason, about, calls, kind, advice) in [
        (409, "Conflict", "leases", WRITES, Conflict, "meanwhile by another writer (409 Conflict)"),
        (409, "AlreadyExists", "leases", &[Create], Conflict, "meanwhile"),
        (409, "", "", &[Get, List], Rejected, "another request"),
        (404, "NotFound", "leases", &[Update, Delete], Conflict, "deleted meanwhile"),
        (404, "NotFound", "namespaces", ALL, Fatal, "no such namespace; create it"),
        (404, "", "", ALL, Ambiguous, "the answer is not the store's"),
        (422, "Invalid", "leases", WRITES, Fatal, "finds the Lease invalid"),
        (401, "Unauthorized", "", ALL, Fatal, "renew them"),
        (429, "TooManyRequests", "", ALL, Rejected, "throttled"),
        (400, "BadRequest", "", ALL, Fatal, "refused the request"),
        (302, "", "", ALL, Fatal, "elsewhere"),
        (408, "", "", ALL, Ambiguous, "timed out"),
        (500, "InternalError", "", ALL, Ambiguous, "failed"),
        (502, "", "", ALL, Ambiguous, "failed"),
        (503, "ServiceUnavailable", "", ALL, Ambiguous, "failed"),
        (504, "Timeout", "", ALL, Ambiguous, "failed"),
    ] {
        let answer = if reason.is_empty() { Answer::new(status) } else { failure(status, reason, about) };
        assert_verdict(calls, answer, kind, advice).await;
    }
}

#[tokio::test]
async fn a_lease_that_does_not_exist_is_nothing_to_read() {
    let (result, _) = answered(Get, failure(404, "NotFound", "leases")).await;
    result.expect("a missing Lease is no error");
}

#[tokio::test]
async fn the_words_of_the_server_and_its_patience_are_passed_on() {
    let (result, _) = answered(Update, failure(429, "TooManyRequests", "").header("retry-after", "7")).await;
    let error = result.expect_err("throttled");
    assert_eq!(error.retry_after(), Some(Duration::from_secs(7)));
    assert!(leaderelection::causes::with_causes(&error).contains("the words of the server"), "{error:?}");
}

#[tokio::test]
async fn a_page_instead_of_an_answer_names_the_endpoint() {
    for (which, kind) in [(Get, Ambiguous), (Create, Ambiguous), (Update, Ambiguous), (List, Ambiguous)] {
        let (result, _) = answered(which, Answer::new(200).body("<html>Please log in</html>")).await;
        let error = result.expect_err("a page");
        assert_eq!(error.kind(), kind, "{which:?}: {error:?}");
        assert!(error.to_string().contains("check the endpoint, and the proxies on the way"), "{which:?}: {error}");
    }
    for which in [Create, Update] {
        let (result, _) = answered(which, Answer::new(200).body(r#"{"kind":"Lease","metadata":{}}"#)).await;
        let error = result.expect_err("no version");
        assert_eq!(error.kind(), Ambiguous, "it may have been written: {error:?}");
    }
}

#[tokio::test]
async fn a_connection_that_breaks_leaves_a_doubt() {
    for which in ALL {
        for step in [Step::Close, Step::Reset, Step::Truncated { answer: lease(), missing: 5 }] {
            let (result, _) = answered(*which, step.clone()).await;
            assert_eq!(result.expect_err("broken").kind(), Ambiguous, "{which:?}, {step:?}");
        }
    }
}

#[tokio::test]
async fn a_server_that_cannot_be_reached_has_done_nothing() {
    // A bound socket that does not listen keeps the port from all others.
    let socket = TcpSocket::new_v4().expect("a socket");
    socket.bind("127.0.0.1:0".parse().expect("an address")).expect("a port on the loopback interface");
    let url = format!("http://{}", socket.local_addr().expect("a bound socket has an address"));
    for which in [Get, Create, List] {
        let error = call(which, &store(&url)).await.expect_err("nobody listens");
        assert_eq!(error.kind(), Rejected, "{which:?}: {error:?}");
        assert!(
            error.to_string().contains("cannot connect; check the network, and if it has never answered, the address"),
            "{error}"
        );
    }
}

#[tokio::test]
async fn an_answer_that_does_not_come_is_given_up() {
    let server = ScriptedServer::start([Step::Hang]).await;
    let store = store(&server.url()).with_request_timeout(Duration::from_millis(100));
    let error = call(Get, &store).await.expect_err("silence");
    assert_eq!(error.kind(), Ambiguous);
    assert!(error.to_string().contains("request_timeout of the store"), "{error}");
}

#[tokio::test]
async fn a_lease_over_the_limit_is_not_ours() {
    let (result, _) = answered(Get, Answer::new(200).body(vec![b' '; 1024 * 1024 + 1])).await;
    assert_eq!(result.expect_err("too large").kind(), Unreadable);
}

#[tokio::test]
async fn what_others_write_beside_a_record_does_not_count_in_its_limit() {
    let lease = json!({
        "metadata": {"uid": "u", "resourceVersion": "1", "annotations": {"theirs": "\"".repeat(200 * 1024)}},
        "spec": {"holderIdentity": "node-1", "leaseDurationSeconds": 15, "leaseTransitions": 1},
    });
    for which in [Get, Create, Update] {
        let (result, _) = answered(which, Answer::new(200).body(lease.to_string())).await;
        assert!(result.is_ok(), "{which:?}: {result:?}");
    }
}
