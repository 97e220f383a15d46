//! The meaning of S3's error codes, and other answers that only S3 gives: the table of the store's error
//! module, through the real client.

use std::error::Error as _;

use leaderelection::StoreErrorKind::{Ambiguous, Conflict, Fatal, Rejected};
use leaderelection_backends::s3::S3Store;
use leaderelection_integration_tests::servers::scripted::Answer;

use super::error;
use crate::calls::Call::{Create, Delete, Get, List, Update};
use crate::calls::{CALLS, READS, WRITES};
use crate::every_store::CloudStore as _;

#[tokio::test]
async fn each_code_has_its_meaning() {
    for (status, code, calls, kind, advice) in [
        (412, "PreconditionFailed", WRITES, Conflict, "changed or created meanwhile"),
        (409, "ConditionalRequestConflict", WRITES, Conflict, "another writer"),
        (409, "ConditionalRequestConflict", READS, Rejected, "another request"),
        (409, "OperationAborted", WRITES, Conflict, "another writer"),
        (409, "OperationAborted", READS, Rejected, "another request"),
        (404, "NoSuchBucket", CALLS, Fatal, "no such bucket; create it"),
        (404, "NoSuchKey", &[Update, Delete], Conflict, "deleted meanwhile"),
        (404, "NoSuchKey", &[Create, List], Fatal, "check the bucket"),
        (404, "NoSuchUpload", CALLS, Ambiguous, "the answer is not the store's"),
        (403, "RequestTimeTooSkewed", CALLS, Fatal, "clock is wrong"),
        (403, "InvalidAccessKeyId", CALLS, Fatal, "check the access key"),
        (403, "SignatureDoesNotMatch", CALLS, Fatal, "check the access key"),
        (429, "TooManyRequests", CALLS, Rejected, "throttled"),
        (503, "SlowDown", CALLS, Rejected, "throttled"),
        (400, "RequestTimeout", CALLS, Ambiguous, "timed out"),
        (400, "ExpiredToken", CALLS, Fatal, "expired; renew"),
        (403, "ExpiredToken", CALLS, Fatal, "expired; renew"),
        (403, "InvalidToken", CALLS, Fatal, "expired; renew"),
        (501, "NotImplemented", &[Get, Create, Update, List], Fatal, "does not support conditional requests"),
        (501, "NotImplemented", &[Delete], Fatal, "conditional deletions, which no election needs"),
        (400, "AuthorizationHeaderMalformed", CALLS, Fatal, "region"),
        (400, "InvalidRequest", CALLS, Fatal, "refused the request (400 InvalidRequest)"),
        (400, "", CALLS, Fatal, "refused the request (400)"),
        (405, "MethodNotAllowed", CALLS, Fatal, "refused the request"),
        (500, "InternalError", CALLS, Ambiguous, "the store failed"),
        (503, "ServiceUnavailable", CALLS, Ambiguous, "the store failed"),
    ] {
        S3Store::assert_verdict(calls, error(status, code), kind, advice).await;
    }
}

#[tokio::test]
async fn a_missing_object_is_nothing_to_read() {
    let (_server, store) = S3Store::scripted([error(404, "NoSuchKey")]).await;
    Get.on(&store).await.expect("a missing object is no error");
}

#[tokio::test]
async fn denied_access_names_the_permissions() {
    for (status, code) in [(401, "AccessDenied"), (401, ""), (403, "AccessDenied"), (403, "")] {
        for (calls, advice) in [
            (&[Get][..], "s3:GetObject, and s3:ListBucket"),
            (&[Create, Update], "s3:PutObject"),
            (&[Delete], "s3:DeleteObject"),
            (&[List], "s3:ListBucket"),
        ] {
            S3Store::assert_verdict(calls, error(status, code), Fatal, advice).await;
        }
    }
}

#[tokio::test]
async fn a_bucket_in_another_region_is_fatal() {
    for answer in [error(301, "PermanentRedirect"), error(307, "TemporaryRedirect")] {
        let answer = answer.header("location", "http://127.0.0.1:9/").header("x-amz-bucket-region", "eu-west-1");
        S3Store::assert_verdict(CALLS, answer, Fatal, "; the bucket's region is eu-west-1").await;
    }
    let unnamed = error(301, "PermanentRedirect").header("x-amz-bucket-region", "<b>");
    S3Store::assert_verdict(CALLS, unnamed, Fatal, "to the bucket's (301 PermanentRedirect)").await;
}

#[tokio::test]
async fn an_error_with_status_200_is_judged_by_its_code() {
    for (code, kind) in [
        ("PreconditionFailed", Conflict),
        ("ConditionalRequestConflict", Conflict),
        ("SlowDown", Rejected),
        ("AccessDenied", Fatal),
        ("NoSuchBucket", Fatal),
        ("NotImplemented", Fatal),
        ("InternalError", Ambiguous),
        ("NeverHeardOf", Ambiguous),
    ] {
        // An ETag does not turn the error into a success.
        let answer = error(200, code).header("etag", "\"etag\"");
        S3Store::assert_verdict(&[Create, Update], answer, kind, &format!("(200 {code})")).await;
    }
}

#[tokio::test]
async fn a_write_that_was_answered_without_an_etag_is_ambiguous() {
    S3Store::assert_verdict(&[Create, Update], Answer::new(200), Ambiguous, "the answer has no ETag").await;
}

#[tokio::test]
async fn a_read_without_an_etag_is_of_no_use() {
    S3Store::assert_verdict(&[Get], Answer::new(200).body("{}"), Fatal, "the answer has no ETag").await;
}

#[tokio::test]
async fn a_listing_that_is_not_xml_is_an_error() {
    S3Store::assert_verdict(&[List], Answer::new(200).body("<html>"), Ambiguous, "cannot be read").await;
}

#[tokio::test]
async fn the_source_says_what_the_server_said() {
    let (_server, store) = S3Store::scripted([error(403, "AccessDenied")]).await;
    let error = Create.on(&store).await.expect_err("denied");
    let source = error.source().expect("a source").to_string();
    assert!(source.contains("said the server"), "{source}");
}

#[tokio::test]
async fn what_a_server_repeats_of_a_request_stays_out_of_the_error() {
    // If a signature does not match, S3 repeats the canonical request, including the session token.
    let body = "<Error><Code>SignatureDoesNotMatch</Code><Message>no match</Message>\
        <CanonicalRequest>x-amz-security-token:session-secret</CanonicalRequest></Error>";
    for call in CALLS {
        let (_server, store) =
            S3Store::scripted([Answer::new(403).header("x-echo", "session-secret").body(body)]).await;
        let error = call.on(&store).await.expect_err("denied");
        assert!(!format!("{error:?} {error}").contains("session-secret"), "{error:?}");
    }
}
