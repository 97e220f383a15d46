//! Clients with retries, and listings of several pages.

use azure_core::http::{ClientOptions, ExponentialRetryOptions, FixedRetryOptions, RetryOptions};
use azure_core::time;
use azure_storage_blob::{BlobContainerClient, BlobContainerClientOptions};
use leaderelection::implement::{ConditionalStoreExt as _, ListedObject, Version};
use leaderelection_backends::azure::AzureStore;
use leaderelection_integration_tests::servers::scripted::{Answer, ScriptedServer, Step};

use crate::every_store::CloudStore as _;

/// The SDK's default, and options of users.
pub(super) fn retrying_options() -> [ClientOptions; 3] {
    let delay = time::Duration::milliseconds(1);
    [
        RetryOptions::default(),
        RetryOptions::exponential(ExponentialRetryOptions { initial_delay: delay, ..Default::default() }),
        RetryOptions::fixed(FixedRetryOptions { delay, ..Default::default() }),
    ]
    .map(|retry| ClientOptions { retry, ..Default::default() })
}

#[tokio::test]
async fn the_client_itself_would_have_retried() {
    let [_, client_options, _] = retrying_options();
    let server = ScriptedServer::start(std::iter::repeat_n(Answer::new(500).into(), 2)).await;
    let url = format!("{}/container", server.url()).parse().expect("a URL");
    let options = BlobContainerClientOptions { client_options, ..Default::default() };
    let client = BlobContainerClient::new(url, None, Some(options)).expect("a client");
    client.blob_client("key").get_properties(None).await.expect_err("answered 500, then 418");
    assert!(server.requests().len() > 1);
}

#[tokio::test]
async fn each_page_of_a_listing_is_one_request() {
    let (server, store) = AzureStore::scripted([page("b", "more"), page("a", "")]).await;
    let listed = ["a", "b"].map(|key| ListedObject::new(key, Some(Version::new(format!("\"0x{key}\"")))));
    assert_eq!(store.list("").await.expect("two pages"), listed);
    let requests = server.requests();
    assert_eq!(requests.len(), 2);
    assert!(requests[1].target.contains("marker=more"), "{}", requests[1].target);
}

fn page(name: &str, next: &str) -> Step {
    let blob = format!("<Blob><Name>{name}</Name><Properties><Etag>0x{name}</Etag></Properties></Blob>");
    let body = format!("<EnumerationResults><Blobs>{blob}</Blobs><NextMarker>{next}</NextMarker></EnumerationResults>");
    Answer::new(200).header("content-type", "application/xml").body(body).into()
}
