//! The common behaviour of all cloud stores, on a scripted server.
//!
//! The behaviour of a single store, and the answers of its servers, are tested in the folder of that cloud.

mod answers;
pub(crate) mod attempts;
mod connections;
mod requests;

use std::time::Duration;

use leaderelection::StoreErrorKind;
use leaderelection::implement::ConditionalStore;
use leaderelection_integration_tests::servers::scripted::{Answer, ScriptedServer, Step};

use crate::calls::{CALLS, Call, READS, WRITES, assert_error};

/// A timeout that is too short for a server that does not answer.
pub(crate) const SHORT: Duration = Duration::from_millis(300);

/// The store of one cloud, and the answers of that cloud's servers.
pub(crate) trait CloudStore: ConditionalStore + Sized {
    /// The calls that use HTTP/1.1, so that a script can answer them.
    const CALLS: &'static [Call] = CALLS;
    const READS: &'static [Call] = READS;
    const WRITES: &'static [Call] = WRITES;

    /// The advice in the error if no server listens.
    const UNREACHABLE: &'static str;
    /// The advice in the error if the name of the host has no address.
    const UNKNOWN_HOST: &'static str = Self::UNREACHABLE;
    /// `false` for a client that reads the body of an error to its end, and gives no way to stop it.
    const LIMITS_ERRORS: bool = true;
    /// The text of the error for a status of 500.
    const FAILED: &'static str = "the service failed";
    /// Keys whose requests would not reach an object.
    const IMPOSSIBLE_KEYS: &'static [&'static str];

    /// The store with the configuration of a user, but with the SDK's default retries.
    async fn on(endpoint: &str) -> Self;

    /// Stores on clients with retries: with the SDK's default, and with explicit settings.
    async fn on_retrying_clients(endpoint: &str) -> Vec<Self>;

    /// The store with a [`SHORT`] request timeout.
    fn in_a_hurry(self) -> Self;

    /// The answer to a read of an existing object.
    fn object(body: Vec<u8>) -> Answer;

    /// The answer to a read of an existing object, without an announced length.
    fn object_of_unknown_length(body: Vec<u8>) -> Answer {
        Self::object(body).chunked()
    }

    /// The answer to a successful write.
    fn written() -> Answer;

    /// Refusals in this cloud's form that might cause a client to retry.
    fn refusals() -> Vec<Answer>;

    /// Creates the store on a server with this script.
    async fn scripted<S: Into<Step>>(script: impl IntoIterator<Item = S>) -> (ScriptedServer, Self) {
        let server = ScriptedServer::start(script.into_iter().map(Into::into)).await;
        let store = Self::on(&server.url()).await;
        (server, store)
    }

    /// Checks that each of `calls`, answered once with `step`, fails: the error is of this kind, and its text
    /// contains this advice.
    async fn assert_verdict(calls: &[Call], step: impl Into<Step>, kind: StoreErrorKind, advice: &str) {
        let step = step.into();
        for call in calls {
            let (server, store) = Self::scripted([step.clone()]).await;
            let error = call.on(&store).await.expect_err("an error");
            assert_error(&error, &store, kind, advice, format!("{call:?}, {step:?}"));
            assert_eq!(server.requests().len(), 1, "{call:?}, {step:?}");
        }
    }
}

/// Creates a module for every cloud, with every test.
macro_rules! on_every_store {
    ($($file:ident::$test:ident,)*) => {
        on_one_store! { s3, leaderelection_backends::s3::S3Store: $($file::$test)* }
        on_one_store! { azure, leaderelection_backends::azure::AzureStore: $($file::$test)* }
        on_one_store! { gcs, leaderelection_backends::gcs::GcsStore: $($file::$test)* }
    };
}

macro_rules! on_one_store {
    ($cloud:ident, $store:ty: $($file:ident::$test:ident)*) => {
        mod $cloud { $(
            #[tokio::test]
            async fn $test() {
                super::$file::$test::<$store>().await;
            }
        )* }
    };
}

on_every_store! {
    answers::an_answer_without_a_code_is_judged_by_its_status,
    answers::retry_after_is_passed_on,
    answers::the_words_of_a_server_are_few_and_on_one_line,
    answers::a_server_that_says_nothing_is_not_quoted,
    answers::a_page_instead_of_an_answer_names_the_endpoint,
    answers::an_error_without_an_end_is_read_no_further_than_it_is_used,
    attempts::a_store_makes_one_attempt_whatever_its_client_was_told,
    attempts::a_store_that_does_not_answer_is_given_up,
    attempts::a_body_that_does_not_end_is_given_up,
    connections::a_connection_that_breaks_is_ambiguous,
    connections::a_body_that_breaks_off_is_ambiguous,
    connections::a_refused_connection_is_a_rejection,
    connections::an_unknown_host_is_a_rejection,
    connections::a_host_that_no_thread_looks_up_fails_one_request,
    requests::a_request_names_this_library,
    requests::an_object_over_the_limit_is_not_downloaded,
    requests::an_object_is_read_up_to_the_limit,
    requests::a_key_that_would_hit_something_else_is_refused,
}
