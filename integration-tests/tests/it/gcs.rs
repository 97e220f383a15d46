//! The store for Google Cloud Storage: the answers of Google's servers, and the behaviour of this store alone.

mod answers;
mod attempts;
mod control;
mod election;
#[cfg(target_os = "linux")]
mod fake_gcs_server;
mod requests;
mod server;

use google_cloud_auth::credentials::anonymous;
use google_cloud_storage::builder::storage::ClientBuilder;
use google_cloud_storage::client::{Storage, StorageControl};
use leaderelection_backends::gcs::GcsStore;
use leaderelection_integration_tests::servers::scripted::Answer;

use crate::calls::Call::{self, Create, Delete, Get, List, Update};
use crate::every_store::{CloudStore, SHORT};

/// The calls over gRPC, which the scripted server does not speak.
const CONTROL_CALLS: &[Call] = &[Delete, List];

/// The configuration of a user, but with the SDK's default retries.
fn config(endpoint: &str) -> ClientBuilder {
    Storage::builder().with_endpoint(endpoint).with_credentials(anonymous::Builder::new().build())
}

async fn store(config: ClientBuilder) -> GcsStore {
    GcsStore::new(config.build().await.expect("a client"), "bucket")
}

fn object(generation: &str, body: impl Into<Vec<u8>>) -> Answer {
    let body = body.into();
    let length = body.len().to_string();
    let answer = Answer::new(200).header("x-goog-generation", generation);
    answer.header("x-goog-stored-content-length", length).body(body)
}

fn written(generation: &str) -> Answer {
    let body = format!(r#"{{"name":"key","bucket":"bucket","generation":"{generation}","metageneration":"1"}}"#);
    Answer::new(200).header("content-type", "application/json").body(body)
}

/// An error in Google's form. An empty `message` means an answer without a body.
fn error(status: u16, reason: &str, message: &str) -> Answer {
    let answer = Answer::new(status).header("content-type", "application/json");
    if message.is_empty() {
        return answer;
    }
    answer.body(format!(
        r#"{{"error":{{"code":{status},"message":"{message}","errors":[{{"domain":"global","reason":"{reason}","message":"{message}"}}]}}}}"#
    ))
}

impl CloudStore for GcsStore {
    const CALLS: &'static [Call] = &[Get, Create, Update];
    const READS: &'static [Call] = &[Get];
    const WRITES: &'static [Call] = &[Create, Update];

    const UNREACHABLE: &'static str = "cannot connect; check the network, and if it has never answered, the endpoint";
    const LIMITS_ERRORS: bool = false;
    const IMPOSSIBLE_KEYS: &'static [&'static str] = &["", ".", "..", "a\nb", "a\rb"];

    async fn on(endpoint: &str) -> Self {
        let url = endpoint.to_owned();
        store(config(endpoint)).await.with_control(move || {
            let credentials = anonymous::Builder::new().build();
            StorageControl::builder().with_endpoint(&url).with_credentials(credentials).build()
        })
    }

    async fn on_retrying_clients(endpoint: &str) -> Vec<Self> {
        vec![Self::on(endpoint).await, store(attempts::retrying(config(endpoint))).await]
    }

    fn in_a_hurry(self) -> Self {
        self.with_request_timeout(SHORT)
    }

    fn object(body: Vec<u8>) -> Answer {
        object("7", body)
    }

    fn object_of_unknown_length(body: Vec<u8>) -> Answer {
        Answer::new(200).header("x-goog-generation", "7").body(body)
    }

    fn written() -> Answer {
        written("7")
    }

    fn refusals() -> Vec<Answer> {
        vec![error(429, "rateLimitExceeded", "slow down"), Answer::new(308)]
    }
}
