//! What each answer of Azure means: the table of the store's error module, through the real client.

use std::time::Duration;

use leaderelection::StoreErrorKind::{self, Ambiguous, Conflict, Fatal, Rejected};
use leaderelection_integration_tests::servers::scripted::Answer;

use super::{CALLS, Call, Create, Delete, Get, List, Update, scripted};

const WRITES: [Call; 3] = [Create, Update, Delete];
const READS: [Call; 2] = [Get, List];

/// An error as Azure words it. An empty `code` is an answer without a body.
fn error(status: u16, code: &str) -> Answer {
    let answer = Answer::new(status).header("content-type", "application/xml");
    if code.is_empty() {
        return answer;
    }
    answer
        .header("x-ms-error-code", code)
        .body(format!("<?xml version=\"1.0\"?><Error><Code>{code}</Code><Message>said the server</Message></Error>"))
}

/// Each of `calls` is answered `answer`: the error is of this kind, and its text has this advice.
async fn assert_verdict(calls: &[Call], answer: Answer, kind: StoreErrorKind, advice: &str) {
    for call in calls {
        let (server, store) = scripted([answer.clone()]).await;
        let object = format!("{}/container/key: ", server.url());
        let error = call.on(&store).await.expect_err("an error");
        let text = error.to_string();
        assert_eq!(error.kind(), kind, "{call:?} answered {answer:?}: {text}");
        assert!(text.starts_with(&object) && text.contains(advice), "{call:?} answered {answer:?}: {text}");
        assert_eq!(server.requests().len(), 1, "{call:?} answered {answer:?}");
    }
}

#[tokio::test]
async fn a_failed_condition_is_a_conflict() {
    for code in ["ConditionNotMet", "TargetConditionNotMet", ""] {
        assert_verdict(&WRITES, error(412, code), Conflict, "changed, created or deleted meanwhile").await;
    }
    assert_verdict(&READS, error(412, ""), Fatal, "refused the request (412)").await;
    assert_verdict(&[Create], error(409, "BlobAlreadyExists"), Conflict, "created meanwhile").await;
}

#[tokio::test]
async fn a_concurrent_request_is_a_conflict_for_writers_only() {
    for code in ["PendingCopyOperation", ""] {
        assert_verdict(&WRITES, error(409, code), Conflict, "another writer").await;
        assert_verdict(&READS, error(409, code), Rejected, "another request").await;
    }
}

#[tokio::test]
async fn a_missing_blob_is_nothing_to_read_and_a_conflict_to_change() {
    let (_server, store) = scripted([error(404, "BlobNotFound")]).await;
    Get.on(&store).await.expect("a missing blob is no error");
    assert_verdict(&[Update, Delete], error(404, "BlobNotFound"), Conflict, "deleted meanwhile").await;
}

#[tokio::test]
async fn anything_else_that_is_missing_is_fatal() {
    assert_verdict(&CALLS, error(404, "ContainerNotFound"), Fatal, "no such container; create it").await;
    assert_verdict(&CALLS, error(404, "ResourceNotFound"), Fatal, "hidden from requests without credentials").await;
    assert_verdict(&CALLS, error(404, ""), Fatal, "check the account's and the container's name").await;
    assert_verdict(&CALLS, error(409, "ContainerBeingDeleted"), Fatal, "is being deleted").await;
}

#[tokio::test]
async fn a_blob_that_cannot_be_ours_is_fatal() {
    for status in [409, 412] {
        assert_verdict(&WRITES, error(status, "LeaseIdMissing"), Fatal, "break that lease").await;
    }
    assert_verdict(&WRITES, error(409, "BlobImmutableDueToPolicy"), Fatal, "immutable").await;
    assert_verdict(&WRITES, error(409, "InvalidBlobType"), Fatal, "page or append blob").await;
    assert_verdict(&[Delete], error(409, "SnapshotsPresent"), Fatal, "has snapshots").await;
    for code in ["BlobArchived", "BlobBeingRehydrated"] {
        assert_verdict(&CALLS, error(409, code), Fatal, "archive tier").await;
    }
}

#[tokio::test]
async fn denied_access_is_fatal_and_names_the_permissions() {
    for status in [401, 403] {
        for code in ["AuthorizationPermissionMismatch", ""] {
            assert_verdict(&[Get], error(status, code), Fatal, "allow to read blobs").await;
            assert_verdict(&[Create, Update], error(status, code), Fatal, "allow to create and write blobs").await;
            assert_verdict(&[Delete], error(status, code), Fatal, "allow to delete blobs").await;
            assert_verdict(&[List], error(status, code), Fatal, "allow to list blobs").await;
        }
    }
    assert_verdict(&CALLS, error(403, "AuthenticationFailed"), Fatal, "or this machine's clock is wrong").await;
    assert_verdict(&CALLS, error(401, "InvalidAuthenticationInfo"), Fatal, "token is wrong or has expired").await;
    assert_verdict(&CALLS, error(403, "KeyBasedAuthenticationNotPermitted"), Fatal, "use Entra ID").await;
    assert_verdict(
        &CALLS,
        error(403, "AuthorizationFailure"),
        Fatal,
        "check the key or SAS, and the account's network rules",
    )
    .await;
    assert_verdict(&CALLS, error(409, "PublicAccessNotPermitted"), Fatal, "without credentials").await;
}

#[tokio::test]
async fn a_refused_request_is_fatal() {
    assert_verdict(&CALLS, error(400, "InvalidHeaderValue"), Fatal, "refused the request (400 InvalidHeaderValue)")
        .await;
    assert_verdict(&CALLS, error(400, ""), Fatal, "refused the request (400)").await;
    assert_verdict(&CALLS, error(405, "UnsupportedHttpVerb"), Fatal, "refused the request").await;
    assert_verdict(&CALLS, error(307, "").header("location", "http://127.0.0.1:9/"), Fatal, "elsewhere").await;
}

#[tokio::test]
async fn throttling_is_a_rejection() {
    assert_verdict(&CALLS, error(503, "ServerBusy"), Rejected, "throttled").await;
    assert_verdict(&CALLS, error(429, ""), Rejected, "throttled").await;
}

#[tokio::test]
async fn a_failure_of_the_service_is_ambiguous() {
    for (status, code) in [(500, "InternalError"), (500, ""), (502, ""), (503, ""), (504, "")] {
        assert_verdict(&CALLS, error(status, code), Ambiguous, "the service failed").await;
    }
    assert_verdict(&CALLS, error(500, "OperationTimedOut"), Ambiguous, "timed out").await;
    assert_verdict(&CALLS, error(408, ""), Ambiguous, "timed out").await;
}

#[tokio::test]
async fn a_page_of_a_proxy_is_judged_by_its_status() {
    let page = |status| Answer::new(status).header("content-type", "text/html").body("<html><p>Oh no</html>");
    assert_verdict(&WRITES, page(412), Conflict, "meanwhile").await;
    assert_verdict(&CALLS, page(403), Fatal, "access denied").await;
    assert_verdict(&CALLS, page(502), Ambiguous, "the service failed").await;
}

#[tokio::test]
async fn a_write_that_was_answered_without_an_etag_is_ambiguous() {
    assert_verdict(&[Create, Update], Answer::new(201), Ambiguous, "without an ETag").await;
}

#[tokio::test]
async fn a_read_without_an_etag_is_of_no_use() {
    assert_verdict(&[Get], Answer::new(200).body("{}"), Fatal, "without an ETag").await;
}

#[tokio::test]
async fn a_listing_that_is_not_xml_is_an_error() {
    assert_verdict(&[List], Answer::new(200).body("<html>"), Ambiguous, "").await;
}

#[tokio::test]
async fn retry_after_is_passed_on() {
    let seconds = |seconds| Some(Duration::from_secs(seconds));
    for (headers, expected) in [
        (&[("retry-after", "7")][..], seconds(7)),
        (&[("x-ms-retry-after-ms", "250"), ("retry-after", "7")], Some(Duration::from_millis(250))),
        (&[("retry-after", "soon")], None),
        (&[("retry-after", "-1")], None),
        (&[("retry-after", "Wed, 21 Oct 2026 07:28:00 GMT")], None),
    ] {
        let answer = headers.iter().fold(error(503, "ServerBusy"), |answer, (name, value)| answer.header(name, *value));
        let (_server, store) = scripted([answer]).await;
        let error = Create.on(&store).await.expect_err("throttled");
        assert_eq!(error.retry_after(), expected, "{headers:?}");
    }
}
