//! One request on the wire for each call, and a time limit for each, whatever the configuration of the user's
//! client.

use leaderelection::StoreErrorKind::Ambiguous;
use leaderelection_integration_tests::servers::scripted::{Answer, ScriptedServer, Step};

use super::CloudStore;
use crate::calls::Call::{self, Get};

/// More steps than the store may use.
const PLENTY: usize = 10;

fn faults<S: CloudStore>() -> Vec<Step> {
    let bare = [401, 408, 429, 500, 502, 503].map(Answer::new);
    let worded = S::refusals().into_iter().chain([Answer::new(503)]);
    let answers = bare.into_iter().chain(worded.map(|answer| answer.header("retry-after", "0")));
    let answer = Answer::new(500).body("<Error><Code>InternalError</Code></Error>");
    answers.map(Step::Answer).chain([Step::Truncated { answer, missing: 10 }, Step::Close, Step::Reset]).collect()
}

pub(super) async fn a_store_makes_one_attempt_whatever_its_client_was_told<S: CloudStore>() {
    for fault in faults::<S>() {
        for call in S::CALLS {
            let server = ScriptedServer::start(std::iter::repeat_n(fault.clone(), PLENTY)).await;
            for (index, store) in S::on_retrying_clients(&server.url()).await.iter().enumerate() {
                call.on(store).await.expect_err("a fault is an error");
                assert_eq!(server.requests().len(), index + 1, "{call:?}, {fault:?}");
            }
        }
    }
}

pub(super) async fn a_store_that_does_not_answer_is_given_up<S: CloudStore>() {
    for call in S::CALLS {
        let server = ScriptedServer::start(std::iter::repeat_n(Step::Hang, PLENTY)).await;
        for (index, store) in S::on_retrying_clients(&server.url()).await.into_iter().enumerate() {
            assert_given_up(*call, store).await;
            // On a busy machine, the request may not even have arrived before the timeout.
            assert!(server.requests().len() <= index + 1, "{call:?}");
        }
    }
}

pub(super) async fn a_body_that_does_not_end_is_given_up<S: CloudStore>() {
    let body = vec![b' '; 1000];
    for answer in [S::object(body.clone()), S::object(body.clone()).chunked(), S::object_of_unknown_length(body)] {
        let (_server, store) = S::scripted([Step::Stalled { answer, missing: 500 }]).await;
        assert_given_up(Get, store).await;
    }
}

pub(crate) async fn assert_given_up(call: Call, store: impl CloudStore) {
    let store = store.in_a_hurry();
    let error = call.on(&store).await.expect_err("no answer");
    assert_eq!(error.kind(), Ambiguous, "{call:?}");
    let expected = format!(
        "{}: no answer within 300ms (request_timeout of the store); check the network and the endpoint, or allow more time",
        store.describe("key")
    );
    assert_eq!(error.to_string(), expected, "{call:?}");
}
