//! Clients with retries, listings of several pages, and the client's own timeouts.

use std::time::Duration;

use aws_sdk_s3::Client;
use aws_sdk_s3::config::Builder;
use aws_sdk_s3::config::retry::RetryConfig;
use aws_sdk_s3::config::timeout::TimeoutConfig;
use leaderelection::StoreErrorKind;
use leaderelection::implement::{ConditionalStoreExt as _, ListedObject, Version};
use leaderelection_backends::s3::S3Store;
use leaderelection_integration_tests::servers::scripted::{Answer, ScriptedServer, Step};

use super::{config, store};
use crate::calls::CALLS;
use crate::every_store::{CloudStore as _, SHORT};

/// The SDK's default, and configurations of users. The first configuration does not mention retries, but the
/// SDK makes them.
pub(super) fn retrying_configs(endpoint: &str) -> [Builder; 3] {
    let quick = |retries: RetryConfig| retries.with_max_attempts(5).with_initial_backoff(Duration::from_millis(1));
    let [standard, adaptive] = [RetryConfig::standard(), RetryConfig::adaptive()].map(quick);
    [config(endpoint), config(endpoint).retry_config(standard), config(endpoint).retry_config(adaptive)]
}

#[tokio::test]
async fn the_clients_themselves_would_have_retried() {
    let server = ScriptedServer::start(std::iter::repeat_n(Answer::new(500).into(), 15)).await;
    for config in retrying_configs(&server.url()) {
        let before = server.requests().len();
        let client = Client::from_conf(config.build());
        client.get_object().bucket("bucket").key("key").send().await.expect_err("answered 500");
        assert!(server.requests().len() > before + 1);
    }
}

#[tokio::test]
async fn the_timeouts_of_the_client_hold_besides() {
    let timeouts = TimeoutConfig::builder().operation_attempt_timeout(SHORT).build();
    for call in CALLS {
        let server = ScriptedServer::start([Step::Hang]).await;
        let store = store(config(&server.url()).timeout_config(timeouts.clone()));
        let error = call.on(&store).await.expect_err("no answer");
        assert_eq!(error.kind(), StoreErrorKind::Ambiguous, "{call:?}: {error}");
        assert!(server.requests().len() <= 1, "{call:?}");
    }
}

#[tokio::test]
async fn each_page_of_a_listing_is_one_request() {
    let (server, store) = S3Store::scripted([page("a", Some("more")), page("b", None)]).await;
    let listed = ["a", "b"].map(|key| ListedObject::new(key, Some(Version::new(format!("\"etag of {key}\"")))));
    assert_eq!(store.list("").await.expect("two pages"), listed);
    let requests = server.requests();
    assert_eq!(requests.len(), 2);
    assert!(requests[1].target.contains("continuation-token=more"), "{}", requests[1].target);
}

fn page(key: &str, next: Option<&str>) -> Step {
    let next = next.map(|token| format!("<NextContinuationToken>{token}</NextContinuationToken>")).unwrap_or_default();
    let body = format!(
        "<ListBucketResult>{next}<Contents><Key>{key}</Key><ETag>&quot;etag of {key}&quot;</ETag></Contents></ListBucketResult>"
    );
    Answer::new(200).body(body).into()
}
