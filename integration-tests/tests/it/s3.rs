mod answers;
mod attempts;
mod connections;
mod requests;
pub(crate) mod server;

use aws_sdk_s3::Client;
use aws_sdk_s3::config::{BehaviorVersion, Builder, Config, Credentials, Region};
use bytes::Bytes;
use leaderelection::{ConditionalStore as _, Precondition, StoreError, Version};
use leaderelection_backends::s3::S3Store;
use leaderelection_integration_tests::servers::scripted::{ScriptedServer, Step};

/// Every kind of request that the store makes.
#[derive(Clone, Copy, Debug)]
enum Call {
    Get,
    Create,
    Update,
    Delete,
    List,
}

use Call::{Create, Delete, Get, List, Update};

const CALLS: [Call; 5] = [Get, Create, Update, Delete, List];

impl Call {
    async fn on(self, store: &S3Store) -> Result<(), StoreError> {
        let body = Bytes::from_static(b"{}");
        let etag = Version::new("\"etag\"");
        match self {
            Get => store.get("key").await.map(drop),
            Create => store.put("key", body, &Precondition::Absent).await.map(drop),
            Update => store.put("key", body, &Precondition::Matches(etag)).await.map(drop),
            Delete => store.delete("key", &etag).await,
            List => store.list("key").await.map(drop),
        }
    }
}

/// What a user might have configured, but for the retries: the SDK's defaults.
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

async fn scripted<S: Into<Step>>(script: impl IntoIterator<Item = S>) -> (ScriptedServer, S3Store) {
    let server = ScriptedServer::start(script.into_iter().map(Into::into)).await;
    let store = store(config(&server.url()));
    (server, store)
}
