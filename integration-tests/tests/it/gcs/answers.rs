//! The meaning of Google's errors, and other answers that only Google gives: the table of the store's error
//! module, through the real client.

use std::error::Error as _;

use leaderelection::StoreErrorKind::{Ambiguous, Conflict, Fatal, Rejected};
use leaderelection_backends::gcs::GcsStore;
use leaderelection_integration_tests::servers::scripted::{Answer, Step};

use super::error;
use crate::calls::Call::{self, Create, Get, Update};
use crate::every_store::CloudStore;

const CALLS: &[Call] = GcsStore::CALLS;
const WRITES: &[Call] = GcsStore::WRITES;

const NO_OBJECT: &str = "No such object: bucket/key";
const NO_BUCKET: &str = "The specified bucket does not exist.";
const NOT_MET: &str = "At least one of the pre-conditions you specified did not hold.";
const TOO_FAST: &str = "The object bucket/key exceeded the rate limit for object mutation operations";

#[tokio::test]
async fn each_reason_has_its_meaning() {
    for (status, reason, message, calls, kind, advice) in [
        (412, "conditionNotMet", NOT_MET, WRITES, Conflict, "meanwhile (412)"),
        (409, "conflict", "conflict", WRITES, Conflict, "another writer"),
        (409, "conflict", "conflict", &[Get], Rejected, "another request"),
        (404, "notFound", NO_BUCKET, CALLS, Fatal, "no such bucket; create it"),
        (404, "notFound", NO_OBJECT, &[Update], Conflict, "deleted meanwhile"),
        (404, "notFound", NO_OBJECT, &[Create], Fatal, "check the bucket's name"),
        (429, "rateLimitExceeded", TOO_FAST, CALLS, Rejected, "one write per second"),
        (403, "rateLimitExceeded", "slow down", CALLS, Rejected, "throttled"),
        (403, "userRateLimitExceeded", "Rate Limit Exceeded", CALLS, Rejected, "throttled"),
        (403, "other", TOO_FAST, CALLS, Rejected, "throttled"),
        (400, "invalid", "nonsense", CALLS, Fatal, "refused the request (400)"),
        (411, "", "", CALLS, Fatal, "refused the request (411)"),
        (412, "", "", &[Get], Fatal, "refused the request (412)"),
        (500, "backendError", "Backend Error", CALLS, Ambiguous, "failed"),
        (502, "backendError", "Backend Error", CALLS, Ambiguous, "failed"),
        (503, "backendError", "Backend Error", CALLS, Ambiguous, "failed"),
        (504, "backendError", "Backend Error", CALLS, Ambiguous, "failed"),
    ] {
        GcsStore::assert_verdict(calls, error(status, reason, message), kind, advice).await;
    }
}

#[tokio::test]
async fn what_is_missing_is_told_apart_by_plain_text_too() {
    GcsStore::assert_verdict(CALLS, Answer::new(404).body(NO_BUCKET), Fatal, "no such bucket; create it").await;
    GcsStore::assert_verdict(&[Update], Answer::new(404).body(NO_OBJECT), Conflict, "deleted meanwhile").await;
    GcsStore::assert_verdict(&[Create], Answer::new(404).body(NO_OBJECT), Fatal, "check the bucket's name").await;
}

#[tokio::test]
async fn a_missing_object_is_nothing_to_read() {
    // Google's own testbench and fake-gcs-server have words of their own.
    let testbench =
        r#"{"code":404,"message":"{\"error\":{\"errors\":[{\"message\":\"bucket/key does not exist.\"}]}}"}"#;
    for answer in [
        Answer::new(404).body(NO_OBJECT),
        error(404, "notFound", NO_OBJECT),
        Answer::new(404).body(testbench),
        Answer::new(404).body("Not Found\n"),
    ] {
        let (_server, store) = GcsStore::scripted([answer]).await;
        Get.on(&store).await.expect("a missing object is no error");
    }
}

#[tokio::test]
async fn denied_access_names_the_permissions() {
    for status in [401, 403] {
        for message in ["anonymous does not have storage.objects.get access", ""] {
            for (calls, advice) in [
                (&[Get][..], "storage.objects.get, and storage.objects.list"),
                (WRITES, "to overwrite, storage.objects.delete"),
            ] {
                GcsStore::assert_verdict(calls, error(status, "forbidden", message), Fatal, advice).await;
            }
        }
    }
}

#[tokio::test]
async fn a_refusal_of_which_half_is_missing_is_not_known_to_be_one() {
    let answer = Answer::new(412).body("oh no");
    GcsStore::assert_verdict(WRITES, Step::Truncated { answer, missing: 2 }, Ambiguous, "").await;
}

#[tokio::test]
async fn a_write_that_was_answered_without_a_generation_is_ambiguous() {
    for body in [r#"{"name":"key"}"#, r#"{"name":"key","generation":"0"}"#, "<html>", ""] {
        GcsStore::assert_verdict(WRITES, Answer::new(200).body(body), Ambiguous, "").await;
    }
}

#[tokio::test]
async fn a_read_without_a_generation_is_of_no_use() {
    let (_server, store) = GcsStore::scripted([Answer::new(200).header("x-goog-generation", "0").body("{}")]).await;
    assert_eq!(Get.on(&store).await.expect_err("no version").kind(), Fatal);
    let (_server, store) = GcsStore::scripted([Answer::new(200).body("{}")]).await;
    Get.on(&store).await.expect_err("no version");
}

#[tokio::test]
async fn the_source_says_what_the_server_said() {
    let (_server, store) = GcsStore::scripted([error(403, "forbidden", "said the server")]).await;
    let error = Create.on(&store).await.expect_err("denied");
    let source = error.source().expect("a source").to_string();
    assert!(source.contains("said the server"), "{source}");
}
