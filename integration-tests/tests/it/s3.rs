//! The store for S3: the answers of S3's servers, and the behaviour of this store alone.

mod answers;
mod attempts;
mod bare_etags;
#[cfg(target_os = "linux")]
mod ceph;
mod connections;
mod directory;
mod racy;
mod requests;
mod server;

use aws_sdk_s3::Client;
use aws_sdk_s3::config::{BehaviorVersion, Builder, Config, Credentials, Region};
use leaderelection_backends::s3::S3Store;
use leaderelection_integration_tests::servers::scripted::Answer;

use crate::every_store::{CloudStore, SHORT};

/// The configuration of a user, but with the SDK's default retries.
fn config(endpoint: &str) -> Builder {
    Config::builder()
        .behavior_version(BehaviorVersion::latest())
        .region(Region::new("eu-central-1"))
        .endpoint_url(endpoint)
        .force_path_style(true)
        .credentials_provider(Credentials::new("test-key-id", "test-secret", None, None, "test"))
}

fn store(config: Builder) -> S3Store {
    S3Store::new(Client::from_conf(config.build()), "bucket")
}

fn object(etag: &str, body: impl Into<Vec<u8>>) -> Answer {
    Answer::new(200).header("etag", etag).body(body)
}

/// An error in S3's form. An empty `code` means an answer without a body.
fn error(status: u16, code: &str) -> Answer {
    let answer = Answer::new(status).header("content-type", "application/xml");
    if code.is_empty() {
        return answer;
    }
    answer.body(format!("<Error><Code>{code}</Code><Message>said the server</Message></Error>"))
}

impl CloudStore for S3Store {
    const UNREACHABLE: &'static str = "cannot connect to 127.0.0.1:";
    const UNKNOWN_HOST: &'static str = ".invalid; check the region (AWS_REGION";
    const FAILED: &'static str = "the store failed";
    const IMPOSSIBLE_KEYS: &'static [&'static str] = &[""];

    async fn on(endpoint: &str) -> Self {
        store(config(endpoint))
    }

    async fn on_retrying_clients(endpoint: &str) -> Vec<Self> {
        attempts::retrying_configs(endpoint).map(store).into()
    }

    fn in_a_hurry(self) -> Self {
        self.with_request_timeout(SHORT)
    }

    fn object(body: Vec<u8>) -> Answer {
        object("\"etag\"", body)
    }

    fn written() -> Answer {
        object("\"new\"", "")
    }

    fn refusals() -> Vec<Answer> {
        vec![error(503, "SlowDown"), error(409, "OperationAborted"), error(400, "RequestTimeout")]
    }
}
