//! What each answer of S3 means: the table of the store's error module, through the real client.

use std::error::Error as _;
use std::time::Duration;

use leaderelection::StoreErrorKind::{self, Ambiguous, Conflict, Fatal, Rejected};
use leaderelection_integration_tests::servers::scripted::Answer;

use super::{CALLS, Call, Create, Delete, Get, List, Update, scripted};

const WRITES: [Call; 3] = [Create, Update, Delete];
const READS: [Call; 2] = [Get, List];

/// An error as S3 words it. An empty `code` is an answer without a body.
fn error(status: u16, code: &str) -> Answer {
    let answer = Answer::new(status).header("content-type", "application/xml");
    if code.is_empty() {
        return answer;
    }
    answer.body(format!("<Error><Code>{code}</Code><Message>said the server</Message></Error>"))
}

/// Each of `calls` is answered `answer`: the error is of this kind, and its text has this advice.
async fn assert_verdict(calls: &[Call], answer: Answer, kind: StoreErrorKind, advice: &str) {
    for call in calls {
        let (server, store) = scripted([answer.clone()]).await;
        let error = call.on(&store).await.expect_err("an error");
        let text = error.to_string();
        assert_eq!(error.kind(), kind, "{call:?} answered {answer:?}: {text}");
        assert!(text.starts_with("s3://bucket/key: ") && text.contains(advice), "{call:?} answered {answer:?}: {text}");
        assert_eq!(server.requests().len(), 1, "{call:?} answered {answer:?}");
    }
}

#[tokio::test]
async fn a_failed_condition_is_a_conflict() {
    assert_verdict(&WRITES, error(412, "PreconditionFailed"), Conflict, "changed or created meanwhile").await;
    assert_verdict(&WRITES, error(412, ""), Conflict, "changed or created meanwhile").await;
}

#[tokio::test]
async fn a_concurrent_conditional_write_is_a_conflict() {
    for code in ["ConditionalRequestConflict", "OperationAborted", ""] {
        assert_verdict(&WRITES, error(409, code), Conflict, "another writer").await;
        assert_verdict(&READS, error(409, code), Rejected, "another request").await;
    }
}

#[tokio::test]
async fn a_missing_object_is_nothing_to_read_and_a_conflict_to_change() {
    for code in ["NoSuchKey", ""] {
        let (_server, store) = scripted([error(404, code)]).await;
        Get.on(&store).await.expect("a missing object is no error");
        assert_verdict(&[Update, Delete], error(404, code), Conflict, "deleted meanwhile").await;
        assert_verdict(&[Create, List], error(404, code), Fatal, "check the bucket").await;
    }
}

#[tokio::test]
async fn a_missing_bucket_is_fatal() {
    assert_verdict(&CALLS, error(404, "NoSuchBucket"), Fatal, "no such bucket; create it").await;
}

#[tokio::test]
async fn denied_access_is_fatal_and_names_the_permissions() {
    for status in [401, 403] {
        for code in ["AccessDenied", ""] {
            assert_verdict(&[Get], error(status, code), Fatal, "s3:GetObject, and s3:ListBucket").await;
            assert_verdict(&[Create, Update], error(status, code), Fatal, "s3:PutObject").await;
            assert_verdict(&[Delete], error(status, code), Fatal, "s3:DeleteObject").await;
            assert_verdict(&[List], error(status, code), Fatal, "s3:ListBucket").await;
        }
    }
    assert_verdict(&CALLS, error(403, "InvalidAccessKeyId"), Fatal, "check the access key").await;
    assert_verdict(&CALLS, error(403, "SignatureDoesNotMatch"), Fatal, "check the access key").await;
    assert_verdict(&CALLS, error(403, "RequestTimeTooSkewed"), Fatal, "clock is wrong").await;
    assert_verdict(&CALLS, error(400, "ExpiredToken"), Fatal, "expired; renew").await;
}

#[tokio::test]
async fn a_refused_request_is_fatal() {
    assert_verdict(&CALLS, error(400, "InvalidRequest"), Fatal, "refused the request (400 InvalidRequest)").await;
    assert_verdict(&CALLS, error(400, ""), Fatal, "refused the request (400)").await;
    assert_verdict(&CALLS, error(405, "MethodNotAllowed"), Fatal, "refused the request").await;
    assert_verdict(&CALLS, error(501, "NotImplemented"), Fatal, "does not support conditional requests").await;
}

#[tokio::test]
async fn a_bucket_in_another_region_is_fatal() {
    for answer in [error(301, "PermanentRedirect"), error(307, "TemporaryRedirect")] {
        let answer = answer.header("location", "http://127.0.0.1:9/").header("x-amz-bucket-region", "eu-west-1");
        assert_verdict(&CALLS, answer, Fatal, "region").await;
    }
    assert_verdict(&CALLS, error(400, "AuthorizationHeaderMalformed"), Fatal, "region").await;
}

#[tokio::test]
async fn throttling_is_a_rejection() {
    assert_verdict(&CALLS, error(503, "SlowDown"), Rejected, "throttled").await;
    assert_verdict(&CALLS, error(429, "TooManyRequests"), Rejected, "throttled").await;
    assert_verdict(&CALLS, error(429, ""), Rejected, "throttled").await;
}

#[tokio::test]
async fn a_failure_of_the_store_is_ambiguous() {
    for (status, code) in
        [(500, "InternalError"), (500, ""), (502, ""), (503, "ServiceUnavailable"), (503, ""), (504, "")]
    {
        assert_verdict(&CALLS, error(status, code), Ambiguous, "the store failed").await;
    }
    assert_verdict(&CALLS, error(408, ""), Ambiguous, "timed out").await;
    assert_verdict(&CALLS, error(400, "RequestTimeout"), Ambiguous, "timed out").await;
}

#[tokio::test]
async fn a_page_of_a_proxy_is_judged_by_its_status() {
    let page = |status| Answer::new(status).header("content-type", "text/html").body("<html><p>Oh no</html>");
    assert_verdict(&WRITES, page(412), Conflict, "changed or created meanwhile").await;
    assert_verdict(&CALLS, page(403), Fatal, "access denied").await;
    assert_verdict(&CALLS, page(502), Ambiguous, "the store failed").await;
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
        // An ETag does not make a success of it.
        let answer = error(200, code).header("etag", "\"etag\"");
        assert_verdict(&[Create, Update], answer, kind, &format!("(200 {code})")).await;
    }
}

#[tokio::test]
async fn a_write_that_was_answered_without_an_etag_is_ambiguous() {
    assert_verdict(&[Create, Update], Answer::new(200), Ambiguous, "without an ETag").await;
}

#[tokio::test]
async fn a_read_without_an_etag_is_of_no_use() {
    assert_verdict(&[Get], Answer::new(200).body("{}"), Fatal, "without an ETag").await;
}

#[tokio::test]
async fn a_listing_that_is_not_xml_is_an_error() {
    assert_verdict(&[List], Answer::new(200).body("<html>"), Ambiguous, "cannot be read").await;
}

#[tokio::test]
async fn retry_after_is_passed_on() {
    for (sent, expected) in
        [("7", Some(Duration::from_secs(7))), ("soon", None), ("-1", None), ("Wed, 21 Oct 2026 07:28:00 GMT", None)]
    {
        let (_server, store) = scripted([error(503, "SlowDown").header("retry-after", sent)]).await;
        let error = Create.on(&store).await.expect_err("throttled");
        assert_eq!(error.retry_after(), expected, "{sent}");
    }
}

#[tokio::test]
async fn the_source_says_what_the_server_said() {
    let (_server, store) = scripted([error(403, "AccessDenied")]).await;
    let error = Create.on(&store).await.expect_err("denied");
    let source = error.source().expect("a source").to_string();
    assert!(source.contains("said the server"), "{source}");
}

#[tokio::test]
async fn what_a_server_repeats_of_a_request_stays_out_of_the_error() {
    // S3 shows the canonical request when a signature does not match, session token included.
    let body = "<Error><Code>SignatureDoesNotMatch</Code><Message>no match</Message>\
        <CanonicalRequest>x-amz-security-token:session-secret</CanonicalRequest></Error>";
    for call in CALLS {
        let (_server, store) = scripted([Answer::new(403).header("x-echo", "session-secret").body(body)]).await;
        let error = call.on(&store).await.expect_err("denied");
        assert!(!format!("{error:?} {error}").contains("session-secret"), "{error:?}");
    }
}
