//! One request on the wire for each call, and a bound on each, whatever the user's client does.

use std::time::Duration;

use azure_core::http::{ClientOptions, ExponentialRetryOptions, FixedRetryOptions, RetryOptions};
use azure_core::time;
use azure_storage_blob::{BlobContainerClient, BlobContainerClientOptions};
use leaderelection::{ConditionalStore as _, StoreErrorKind};
use leaderelection_integration_tests::servers::scripted::{Answer, ScriptedServer, Step};

use super::{CALLS, Get, scripted, store};

const SHORT: Duration = Duration::from_millis(100);

/// The SDK's default, and what users set.
fn retry_options() -> [RetryOptions; 3] {
    let delay = time::Duration::milliseconds(1);
    [
        RetryOptions::default(),
        RetryOptions::exponential(ExponentialRetryOptions { initial_delay: delay, ..Default::default() }),
        RetryOptions::fixed(FixedRetryOptions { delay, ..Default::default() }),
    ]
}

fn options(retry: RetryOptions) -> ClientOptions {
    ClientOptions { retry, ..Default::default() }
}

fn faults() -> Vec<Step> {
    let busy = |status| Answer::new(status).header("x-ms-error-code", "ServerBusy").header("retry-after", "0");
    vec![
        Answer::new(500).into(),
        Answer::new(502).into(),
        Answer::new(503).into(),
        busy(503).into(),
        busy(429).into(),
        Answer::new(408).into(),
        Answer::new(401).header("www-authenticate", "Bearer authorization_uri=http://127.0.0.1:9").into(),
        Step::Truncated { answer: Answer::new(500).body("<Error/>"), missing: 4 },
        Step::Close,
        Step::Reset,
    ]
}

#[tokio::test]
async fn a_store_makes_one_attempt_whatever_its_client_was_told() {
    for retry in retry_options() {
        for fault in faults() {
            for call in CALLS {
                let server = ScriptedServer::start([fault.clone()]).await;
                let store = store(&server.url(), options(retry.clone()));
                call.on(&store).await.expect_err("a fault is an error");
                assert_eq!(server.requests().len(), 1, "{call:?}, {retry:?}, {fault:?}");
            }
        }
    }
}

#[tokio::test]
async fn the_client_itself_would_have_retried() {
    let [_, quick, _] = retry_options();
    let server = ScriptedServer::start(std::iter::repeat_n(Answer::new(500).into(), 2)).await;
    let url = format!("{}/container", server.url()).parse().expect("a URL");
    let options = BlobContainerClientOptions { client_options: options(quick), ..Default::default() };
    let client = BlobContainerClient::new(url, None, Some(options)).expect("a client");
    client.blob_client("key").get_properties(None).await.expect_err("answered 500, then 418");
    assert!(server.requests().len() > 1);
}

#[tokio::test]
async fn a_store_that_does_not_answer_is_given_up() {
    for call in CALLS {
        let (server, store) = scripted([Step::Hang]).await;
        let error = call.on(&store.with_request_timeout(SHORT)).await.expect_err("no answer");
        assert_eq!(error.kind(), StoreErrorKind::Ambiguous, "{call:?}");
        assert!(error.to_string().ends_with("/container/key: no answer within 100ms"), "{error}");
        // On a busy machine the request may not even have arrived when its time was up.
        assert!(server.requests().len() <= 1, "{call:?}");
    }
}

#[tokio::test]
async fn a_body_that_does_not_end_is_given_up() {
    let answer = Answer::new(200).header("etag", "\"etag\"").body(vec![b' '; 1000]);
    for answer in [answer.clone(), answer.chunked()] {
        let (_server, store) = scripted([Step::Stalled { answer, missing: 500 }]).await;
        let error = Get.on(&store.with_request_timeout(SHORT)).await.expect_err("half an answer");
        assert_eq!(error.kind(), StoreErrorKind::Ambiguous);
        assert!(error.to_string().ends_with("/container/key: no answer within 100ms"), "{error}");
    }
}

#[tokio::test]
async fn each_page_of_a_listing_is_one_request() {
    let (server, store) = scripted([page("b", "more"), page("a", "")]).await;
    assert_eq!(store.list("").await.expect("two pages"), ["a", "b"]);
    let requests = server.requests();
    assert_eq!(requests.len(), 2);
    assert!(requests[1].target.contains("marker=more"), "{}", requests[1].target);
}

fn page(name: &str, next: &str) -> Step {
    let blob = format!("<Blob><Name>{name}</Name><Properties/></Blob>");
    let body = format!("<EnumerationResults><Blobs>{blob}</Blobs><NextMarker>{next}</NextMarker></EnumerationResults>");
    Answer::new(200).header("content-type", "application/xml").body(body).into()
}
