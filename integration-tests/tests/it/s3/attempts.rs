//! One request on the wire for each call, and a bound on each, whatever the user's client does.

use std::time::Duration;

use aws_sdk_s3::Client;
use aws_sdk_s3::config::retry::RetryConfig;
use aws_sdk_s3::config::timeout::TimeoutConfig;
use leaderelection::{ConditionalStore as _, StoreErrorKind};
use leaderelection_integration_tests::servers::scripted::{Answer, ScriptedServer, Step};

use super::{CALLS, Get, config, store};

const SHORT: Duration = Duration::from_millis(100);

/// The SDK's default, and what users set: `None` is a client that says nothing and retries all the same.
fn retry_configs() -> [Option<RetryConfig>; 3] {
    let quick = |retries: RetryConfig| retries.with_max_attempts(5).with_initial_backoff(Duration::from_millis(1));
    [None, Some(quick(RetryConfig::standard())), Some(quick(RetryConfig::adaptive()))]
}

fn faults() -> Vec<Step> {
    let cut_short = Answer::new(500).body("<Error><Code>InternalError</Code></Error>");
    vec![
        Answer::new(500).into(),
        Answer::new(503).into(),
        Answer::new(503).body("<Error><Code>SlowDown</Code></Error>").into(),
        Answer::new(429).into(),
        Answer::new(409).body("<Error><Code>OperationAborted</Code></Error>").into(),
        Answer::new(400).body("<Error><Code>RequestTimeout</Code></Error>").into(),
        Step::Truncated { answer: cut_short, missing: 10 },
        Step::Close,
        Step::Reset,
    ]
}

#[tokio::test]
async fn a_store_makes_one_attempt_whatever_its_client_was_told() {
    for retries in retry_configs() {
        for fault in faults() {
            for call in CALLS {
                let server = ScriptedServer::start([fault.clone()]).await;
                let mut config = config(&server.url());
                config.set_retry_config(retries.clone());
                call.on(&store(config)).await.expect_err("a fault is an error");
                assert_eq!(server.requests().len(), 1, "{call:?}, {retries:?}, {fault:?}");
            }
        }
    }
}

#[tokio::test]
async fn the_clients_themselves_would_have_retried() {
    for retries in retry_configs() {
        let server = ScriptedServer::start(std::iter::repeat_n(Answer::new(500).into(), 5)).await;
        let mut config = config(&server.url());
        config.set_retry_config(retries);
        let client = Client::from_conf(config.build());
        client.get_object().bucket("bucket").key("key").send().await.expect_err("answered 500");
        assert!(server.requests().len() > 1);
    }
}

#[tokio::test]
async fn a_store_that_does_not_answer_is_given_up() {
    for retries in retry_configs() {
        for call in CALLS {
            let server = ScriptedServer::start([Step::Hang]).await;
            let mut config = config(&server.url());
            config.set_retry_config(retries.clone());
            let error = call.on(&store(config).with_request_timeout(SHORT)).await.expect_err("no answer");
            assert_eq!(error.kind(), StoreErrorKind::Ambiguous, "{call:?}");
            assert_eq!(error.to_string(), "s3://bucket/key: no answer within 100ms");
            // On a busy machine the request may not even have arrived when its time was up.
            assert!(server.requests().len() <= 1, "{call:?}, {retries:?}");
        }
    }
}

#[tokio::test]
async fn a_body_that_does_not_end_is_given_up() {
    let answer = Answer::new(200).header("etag", "\"etag\"").body(vec![b' '; 1000]);
    for answer in [answer.clone(), answer.chunked()] {
        let server = ScriptedServer::start([Step::Stalled { answer, missing: 500 }]).await;
        let store = store(config(&server.url())).with_request_timeout(SHORT);
        let error = Get.on(&store).await.expect_err("half an answer");
        assert_eq!(error.kind(), StoreErrorKind::Ambiguous);
        assert_eq!(error.to_string(), "s3://bucket/key: no answer within 100ms");
    }
}

#[tokio::test]
async fn the_timeouts_of_the_client_hold_besides() {
    let timeouts = TimeoutConfig::builder().operation_attempt_timeout(SHORT).build();
    for call in CALLS {
        let server = ScriptedServer::start([Step::Hang]).await;
        let error =
            call.on(&store(config(&server.url()).timeout_config(timeouts.clone()))).await.expect_err("no answer");
        assert_eq!(error.kind(), StoreErrorKind::Ambiguous, "{call:?}: {error}");
        assert!(server.requests().len() <= 1, "{call:?}");
    }
}

#[tokio::test]
async fn each_page_of_a_listing_is_one_request() {
    let server = ScriptedServer::start([page("a", Some("more")), page("b", None)]).await;
    let keys = store(config(&server.url())).list("").await.expect("two pages");
    assert_eq!(keys, ["a", "b"]);
    let requests = server.requests();
    assert_eq!(requests.len(), 2);
    assert!(requests[1].target.contains("continuation-token=more"), "{}", requests[1].target);
}

fn page(key: &str, next: Option<&str>) -> Step {
    let next = next.map(|token| format!("<NextContinuationToken>{token}</NextContinuationToken>")).unwrap_or_default();
    let body = format!("<ListBucketResult>{next}<Contents><Key>{key}</Key></Contents></ListBucketResult>");
    Answer::new(200).body(body).into()
}
