//! The meaning of Azure's error codes, and other answers that only Azure gives: the table of the store's error
//! module, through the real client.

use std::time::Duration;

use leaderelection::StoreErrorKind::{Ambiguous, Conflict, Fatal, Rejected};
use leaderelection_backends::azure::AzureStore;
use leaderelection_integration_tests::servers::scripted::{Answer, Step};

use super::error;
use crate::calls::Call::{Create, Delete, Get, List, Update};
use crate::calls::{CALLS, READS, WRITES};
use crate::every_store::CloudStore as _;

#[tokio::test]
async fn each_code_has_its_meaning() {
    for (status, code, calls, kind, advice) in [
        (409, "LeaseIdMissing", WRITES, Fatal, "break that lease"),
        (412, "LeaseIdMissing", WRITES, Fatal, "break that lease"),
        (412, "ConditionNotMet", WRITES, Conflict, "changed, created or deleted meanwhile"),
        (412, "TargetConditionNotMet", WRITES, Conflict, "changed, created or deleted meanwhile"),
        (409, "BlobAlreadyExists", &[Create], Conflict, "created meanwhile"),
        (409, "ContainerBeingDeleted", CALLS, Fatal, "is being deleted"),
        (409, "PublicAccessNotPermitted", CALLS, Fatal, "without credentials"),
        (409, "BlobImmutableDueToPolicy", WRITES, Fatal, "immutable"),
        (409, "InvalidBlobType", WRITES, Fatal, "page or append blob"),
        (409, "BlobArchived", CALLS, Fatal, "archive tier"),
        (409, "BlobBeingRehydrated", CALLS, Fatal, "archive tier"),
        (409, "SnapshotsPresent", &[Delete], Fatal, "has snapshots"),
        (409, "PendingCopyOperation", WRITES, Conflict, "another writer"),
        (409, "PendingCopyOperation", READS, Rejected, "another request"),
        (404, "ContainerNotFound", CALLS, Fatal, "no such container; create it"),
        (404, "BlobNotFound", &[Update, Delete], Conflict, "deleted meanwhile"),
        (404, "ResourceNotFound", CALLS, Fatal, "hidden from requests without credentials"),
        (404, "BlobNotFound", &[Create, List], Fatal, "check the account's and the container's name"),
        (403, "AuthenticationFailed", CALLS, Fatal, "or this machine's clock is wrong"),
        (401, "InvalidAuthenticationInfo", CALLS, Fatal, "token is wrong or has expired"),
        (403, "KeyBasedAuthenticationNotPermitted", CALLS, Fatal, "use Entra ID"),
        (403, "AuthorizationFailure", CALLS, Fatal, "check the key or SAS, and the account's network rules"),
        (503, "ServerBusy", CALLS, Rejected, "throttled"),
        (500, "OperationTimedOut", CALLS, Ambiguous, "timed out"),
        (400, "InvalidHeaderValue", CALLS, Fatal, "refused the request (400 InvalidHeaderValue)"),
        (400, "", CALLS, Fatal, "refused the request (400)"),
        (412, "", READS, Fatal, "refused the request (412)"),
        (405, "UnsupportedHttpVerb", CALLS, Fatal, "refused the request"),
        (500, "InternalError", CALLS, Ambiguous, "the service failed"),
    ] {
        AzureStore::assert_verdict(calls, error(status, code), kind, advice).await;
    }
}

#[tokio::test]
async fn a_missing_blob_is_nothing_to_read() {
    let (_server, store) = AzureStore::scripted([error(404, "BlobNotFound")]).await;
    Get.on(&store).await.expect("a missing blob is no error");
}

#[tokio::test]
async fn denied_access_names_the_permissions() {
    const MISMATCH: &str = "AuthorizationPermissionMismatch";
    for (status, code) in [(401, MISMATCH), (401, ""), (403, MISMATCH), (403, "")] {
        for (calls, advice) in [
            (&[Get][..], "allow to read blobs"),
            (&[Create, Update], "allow to create and write blobs"),
            (&[Delete], "allow to delete blobs"),
            (&[List], "allow to list blobs"),
        ] {
            AzureStore::assert_verdict(calls, error(status, code), Fatal, advice).await;
        }
    }
}

#[tokio::test]
async fn a_container_elsewhere_is_fatal() {
    let answer = error(307, "").header("location", "http://127.0.0.1:9/");
    AzureStore::assert_verdict(CALLS, answer, Fatal, "elsewhere").await;
}

#[tokio::test]
async fn a_write_that_was_answered_without_an_etag_is_ambiguous() {
    AzureStore::assert_verdict(&[Create, Update], Answer::new(201), Ambiguous, "the answer has no ETag").await;
}

#[tokio::test]
async fn a_read_without_an_etag_is_of_no_use() {
    AzureStore::assert_verdict(&[Get], Answer::new(200).body("{}"), Fatal, "the answer has no ETag").await;
}

#[tokio::test]
async fn a_listing_that_is_not_xml_is_an_error() {
    AzureStore::assert_verdict(&[List], Answer::new(200).body("<html>"), Ambiguous, "").await;
}

#[tokio::test]
async fn a_listing_that_breaks_off_is_ambiguous() {
    let answer = Answer::new(200).body(vec![b' '; 1000]);
    for answer in [answer.clone(), answer.chunked()] {
        AzureStore::assert_verdict(&[List], Step::Truncated { answer, missing: 500 }, Ambiguous, "").await;
    }
}

#[tokio::test]
async fn a_retry_after_of_milliseconds_goes_first() {
    let answer = error(503, "ServerBusy").header("x-ms-retry-after-ms", "250").header("retry-after", "7");
    let (_server, store) = AzureStore::scripted([answer]).await;
    let error = Create.on(&store).await.expect_err("throttled");
    assert_eq!(error.retry_after(), Some(Duration::from_millis(250)));
}
