//! The meaning of answers that is the same for every cloud.

use std::time::Duration;

use leaderelection::StoreError;
use leaderelection::StoreErrorKind::{Ambiguous, Conflict, Fatal, Rejected};
use leaderelection::causes::with_causes;
use leaderelection_integration_tests::servers::scripted::{Answer, Step};

use super::CloudStore;
use crate::calls::Call::{Create, Delete};

pub(super) async fn an_answer_without_a_code_is_judged_by_its_status<S: CloudStore>() {
    for (status, calls, kind, advice) in [
        (400, S::CALLS, Fatal, "refused the request"),
        (401, S::CALLS, Fatal, "access denied"),
        (403, S::CALLS, Fatal, "access denied"),
        (408, S::CALLS, Ambiguous, "timed out"),
        (409, S::WRITES, Conflict, "another writer"),
        (409, S::READS, Rejected, "another request"),
        (411, S::CALLS, Fatal, "refused the request"),
        (404, S::CALLS, Ambiguous, "not found, but the answer is not the store's"),
        (412, S::WRITES, Conflict, "meanwhile"),
        (412, S::READS, Fatal, "refused the request"),
        (429, S::CALLS, Rejected, "throttled"),
        (500, S::CALLS, Ambiguous, S::FAILED),
        (502, S::CALLS, Ambiguous, S::FAILED),
        (503, S::CALLS, Ambiguous, S::FAILED),
        (504, S::CALLS, Ambiguous, S::FAILED),
    ] {
        let bare = Answer::new(status);
        // A proxy may give this answer instead of the server.
        let page = bare.clone().header("content-type", "text/html").body("<html><p>Oh no</html>");
        S::assert_verdict(calls, bare, kind, advice).await;
        S::assert_verdict(calls, page, kind, advice).await;
    }
}

/// The words that follow the advice of an error: what the server said.
fn afterwards(error: &StoreError) -> String {
    with_causes(error).strip_prefix(&error.to_string()).expect("first the advice").to_owned()
}

pub(super) async fn the_words_of_a_server_are_few_and_on_one_line<S: CloudStore>() {
    let page = format!("<html>\r\n\u{1b}[31m{}</html>", "Oh no\r\n".repeat(50_000));
    for status in [400, 404, 500, 502] {
        for call in S::CALLS {
            let (_server, store) = S::scripted([Answer::new(status).body(page.as_str())]).await;
            let error = call.on(&store).await.expect_err("a page");
            let words = afterwards(&error);
            assert!(words.chars().count() <= 210, "{call:?}, {status}: {words}");
            assert!(!with_causes(&error).contains(char::is_control), "{call:?}, {status}: {error:?}");
            assert!(error.to_string().ends_with(&format!("({status})")), "{call:?}, {status}: {error}");
        }
    }
}

pub(super) async fn a_server_that_says_nothing_is_not_quoted<S: CloudStore>() {
    for status in [400, 403, 404, 500, 502, 503] {
        for call in S::CALLS {
            let (_server, store) = S::scripted([Answer::new(status)]).await;
            let error = call.on(&store).await.expect_err("refused");
            let words = afterwards(&error);
            assert!(!words.contains("Error") && !words.contains('{'), "{call:?}, {status}: {words}");
            assert!(!error.to_string().contains(&format!("({status} {status})")), "{call:?}, {status}: {error}");
        }
    }
}

/// A network that asks for a log-in answers everything with its own page.
pub(super) async fn a_page_instead_of_an_answer_names_the_endpoint<S: CloudStore>() {
    let page = Answer::new(200).header("content-type", "text/html").body("<html><p>Please log in</html>");
    // A deletion has no answer that could be told from a page.
    for call in S::CALLS.iter().filter(|call| !matches!(call, Delete)) {
        let (_server, store) = S::scripted([page.clone()]).await;
        let text = call.on(&store).await.expect_err("a page").to_string();
        assert!(text.contains("check the endpoint, and the proxies on the way"), "{call:?}: {text}");
    }
}

pub(super) async fn an_error_without_an_end_is_read_no_further_than_it_is_used<S: CloudStore>() {
    // The buffers of the system on both sides of the connection, which fill before the client reads anything.
    const BUFFERED: u64 = 16 << 20;
    let page = "<html><p>Oh no</html>".repeat(5000);
    for status in [403, 404, 412, 500, 503] {
        for call in S::CALLS {
            let answer = Answer::new(status).body(page.as_str());
            let (server, store) = S::scripted([Step::Endless(answer)]).await;
            let store = if S::LIMITS_ERRORS { store } else { store.in_a_hurry() };
            let error = call.on(&store).await.expect_err("refused");
            let expected = if S::LIMITS_ERRORS { format!("({status})") } else { "no answer within 300ms".to_owned() };
            assert!(error.to_string().contains(&expected), "{call:?}, {status}: {error}");
            let taken = server.endless_bytes();
            assert!(taken < BUFFERED || !S::LIMITS_ERRORS, "{call:?}, {status}: {taken} bytes");
        }
    }
}

pub(super) async fn retry_after_is_passed_on<S: CloudStore>() {
    for (sent, expected) in
        [("7", Some(Duration::from_secs(7))), ("soon", None), ("-1", None), ("Wed, 21 Oct 2026 07:28:00 GMT", None)]
    {
        for refusal in S::refusals().into_iter().chain([Answer::new(429)]) {
            let (_server, store) = S::scripted([refusal.clone().header("retry-after", sent)]).await;
            let error = Create.on(&store).await.expect_err("refused");
            assert_eq!(error.retry_after(), expected, "{sent}, {refusal:?}");
        }
    }
}
