//! The meaning of answers that is the same for every cloud.

use std::time::Duration;

use leaderelection::StoreErrorKind::{Ambiguous, Conflict, Fatal, Rejected};
use leaderelection_integration_tests::servers::scripted::Answer;

use super::CloudStore;
use crate::calls::Call::Create;

pub(super) async fn an_answer_without_a_code_is_judged_by_its_status<S: CloudStore>() {
    for (status, calls, kind, advice) in [
        (400, S::CALLS, Fatal, "refused the request"),
        (401, S::CALLS, Fatal, "access denied"),
        (403, S::CALLS, Fatal, "access denied"),
        (408, S::CALLS, Ambiguous, "timed out"),
        (409, S::WRITES, Conflict, "another writer"),
        (409, S::READS, Rejected, "another request"),
        (411, S::CALLS, Fatal, "refused the request"),
        (412, S::WRITES, Conflict, "meanwhile"),
        (412, S::READS, Fatal, "refused the request"),
        (429, S::CALLS, Rejected, "throttled"),
        (500, S::CALLS, Ambiguous, S::FAILED),
        (502, S::CALLS, Ambiguous, S::FAILED),
        (503, S::CALLS, Ambiguous, S::FAILED),
        (504, S::CALLS, Ambiguous, S::FAILED),
    ] {
        let bare = Answer::new(status);
        // A proxy may give this answer in place of the server.
        let page = bare.clone().header("content-type", "text/html").body("<html><p>Oh no</html>");
        S::assert_verdict(calls, bare, kind, advice).await;
        S::assert_verdict(calls, page, kind, advice).await;
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
