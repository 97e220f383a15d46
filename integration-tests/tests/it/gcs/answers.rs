//! What each answer of Google means: the table of the store's error module, through the real client.

use std::error::Error as _;
use std::time::Duration;

use leaderelection::StoreErrorKind::{self, Ambiguous, Conflict, Fatal, Rejected};
use leaderelection_integration_tests::servers::scripted::Answer;

use super::{Call, Create, Get, OBJECT_CALLS, Update, scripted};

const WRITES: [Call; 2] = [Create, Update];
const NO_OBJECT: &str = "No such object: bucket/key";
const NO_BUCKET: &str = "The specified bucket does not exist.";

/// An error as Google words it. An empty `message` is an answer without a body.
fn error(status: u16, reason: &str, message: &str) -> Answer {
    let answer = Answer::new(status).header("content-type", "application/json");
    if message.is_empty() {
        return answer;
    }
    answer.body(format!(
        r#"{{"error":{{"code":{status},"message":"{message}","errors":[{{"domain":"global","reason":"{reason}","message":"{message}"}}]}}}}"#
    ))
}

/// Each of `calls` is answered `answer`: the error is of this kind, and its text has this advice.
async fn assert_verdict(calls: &[Call], answer: Answer, kind: StoreErrorKind, advice: &str) {
    for call in calls {
        let (server, store) = scripted([answer.clone()]).await;
        let error = call.on(&store).await.expect_err("an error");
        let text = error.to_string();
        assert_eq!(error.kind(), kind, "{call:?} answered {answer:?}: {text}");
        assert!(text.starts_with("gs://bucket/key: ") && text.contains(advice), "{call:?} answered {answer:?}: {text}");
        assert_eq!(server.requests().len(), 1, "{call:?} answered {answer:?}");
    }
}

#[tokio::test]
async fn a_failed_condition_is_a_conflict() {
    let message = "At least one of the pre-conditions you specified did not hold.";
    assert_verdict(&WRITES, error(412, "conditionNotMet", message), Conflict, "meanwhile (412)").await;
    assert_verdict(&[Get], error(412, "", ""), Fatal, "refused the request (412)").await;
    assert_verdict(&WRITES, error(412, "", ""), Conflict, "meanwhile (412)").await;
}

#[tokio::test]
async fn a_concurrent_request_is_a_conflict_for_writers_only() {
    assert_verdict(&WRITES, error(409, "conflict", "conflict"), Conflict, "another writer").await;
    assert_verdict(&[Get], error(409, "conflict", "conflict"), Rejected, "another request").await;
}

#[tokio::test]
async fn a_missing_object_is_nothing_to_read_and_a_conflict_to_change() {
    for answer in [Answer::new(404).body(NO_OBJECT), error(404, "notFound", NO_OBJECT), error(404, "", "")] {
        let (_server, store) = scripted([answer.clone()]).await;
        Get.on(&store).await.expect("a missing object is no error");
        assert_verdict(&[Update], answer.clone(), Conflict, "deleted meanwhile").await;
        assert_verdict(&[Create], answer, Fatal, "check the bucket's name").await;
    }
}

#[tokio::test]
async fn a_missing_bucket_is_fatal() {
    for answer in [Answer::new(404).body(NO_BUCKET), error(404, "notFound", NO_BUCKET)] {
        assert_verdict(&OBJECT_CALLS, answer, Fatal, "no such bucket; create it").await;
    }
}

#[tokio::test]
async fn denied_access_is_fatal_and_names_the_permissions() {
    for status in [401, 403] {
        for message in ["anonymous does not have storage.objects.get access", ""] {
            let answer = error(status, "forbidden", message);
            assert_verdict(&[Get], answer.clone(), Fatal, "storage.objects.get, and storage.objects.list").await;
            assert_verdict(&WRITES, answer, Fatal, "to overwrite, storage.objects.delete").await;
        }
    }
}

#[tokio::test]
async fn throttling_is_a_rejection() {
    let message = "The object bucket/key exceeded the rate limit for object mutation operations";
    assert_verdict(&OBJECT_CALLS, error(429, "rateLimitExceeded", message), Rejected, "one write per second").await;
    assert_verdict(&OBJECT_CALLS, error(429, "", ""), Rejected, "throttled").await;
    for reason in ["rateLimitExceeded", "userRateLimitExceeded"] {
        assert_verdict(&OBJECT_CALLS, error(403, reason, "Rate Limit Exceeded"), Rejected, "throttled").await;
    }
    assert_verdict(&OBJECT_CALLS, error(403, "other", message), Rejected, "throttled").await;
}

#[tokio::test]
async fn a_failure_of_the_service_is_ambiguous() {
    for status in [500, 502, 503, 504] {
        assert_verdict(&OBJECT_CALLS, error(status, "backendError", "Backend Error"), Ambiguous, "failed").await;
        assert_verdict(&OBJECT_CALLS, error(status, "", ""), Ambiguous, "the service failed").await;
    }
    assert_verdict(&OBJECT_CALLS, error(408, "", ""), Ambiguous, "timed out").await;
}

#[tokio::test]
async fn a_refused_request_is_fatal() {
    assert_verdict(&OBJECT_CALLS, error(400, "invalid", "nonsense"), Fatal, "refused the request (400)").await;
    assert_verdict(&OBJECT_CALLS, error(411, "", ""), Fatal, "refused the request (411)").await;
}

#[tokio::test]
async fn a_page_of_a_proxy_is_judged_by_its_status() {
    let page = |status| Answer::new(status).header("content-type", "text/html").body("<html><p>Oh no</html>");
    assert_verdict(&WRITES, page(412), Conflict, "meanwhile").await;
    assert_verdict(&OBJECT_CALLS, page(403), Fatal, "access denied").await;
    assert_verdict(&OBJECT_CALLS, page(502), Ambiguous, "the service failed").await;
}

#[tokio::test]
async fn a_write_that_was_answered_without_a_generation_is_ambiguous() {
    for body in [r#"{"name":"key"}"#, r#"{"name":"key","generation":"0"}"#, "<html>", ""] {
        assert_verdict(&WRITES, Answer::new(200).body(body), Ambiguous, "").await;
    }
}

#[tokio::test]
async fn a_read_without_a_generation_is_of_no_use() {
    let (_server, store) = scripted([Answer::new(200).header("x-goog-generation", "0").body("{}")]).await;
    assert_eq!(Get.on(&store).await.expect_err("no version").kind(), Fatal);
    let (_server, store) = scripted([Answer::new(200).body("{}")]).await;
    Get.on(&store).await.expect_err("no version");
}

#[tokio::test]
async fn retry_after_is_passed_on() {
    for (sent, expected) in
        [("7", Some(Duration::from_secs(7))), ("soon", None), ("-1", None), ("Wed, 21 Oct 2026 07:28:00 GMT", None)]
    {
        for message in ["slow down", ""] {
            let (_server, store) =
                scripted([error(429, "rateLimitExceeded", message).header("retry-after", sent)]).await;
            let error = Create.on(&store).await.expect_err("throttled");
            assert_eq!(error.retry_after(), expected, "{sent}");
        }
    }
}

#[tokio::test]
async fn the_source_says_what_the_server_said() {
    let (_server, store) = scripted([error(403, "forbidden", "said the server")]).await;
    let error = Create.on(&store).await.expect_err("denied");
    let source = error.source().expect("a source").to_string();
    assert!(source.contains("said the server"), "{source}");
}
