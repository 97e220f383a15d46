mod answers;
mod attempts;
mod connections;
mod control;
mod election;
mod requests;
mod server;

use bytes::Bytes;
use google_cloud_auth::credentials::anonymous;
use google_cloud_storage::builder::storage::ClientBuilder;
use google_cloud_storage::client::Storage;
use leaderelection::{ConditionalStore as _, Precondition, StoreError, Version};
use leaderelection_backends::gcs::GcsStore;
use leaderelection_integration_tests::servers::fake_gcs::{BUCKET, FakeGcs};
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

/// What goes over JSON. The rest goes over gRPC.
const OBJECT_CALLS: [Call; 3] = [Get, Create, Update];
const CONTROL_CALLS: [Call; 2] = [Delete, List];
const CALLS: [Call; 5] = [Get, Create, Update, Delete, List];

impl Call {
    async fn on(self, store: &GcsStore) -> Result<(), StoreError> {
        let body = Bytes::from_static(b"{}");
        let generation = Version::new("7");
        match self {
            Get => store.get("key").await.map(drop),
            Create => store.put("key", body, &Precondition::Absent).await.map(drop),
            Update => store.put("key", body, &Precondition::Matches(generation)).await.map(drop),
            Delete => store.delete("key", &generation).await,
            List => store.list("key").await.map(drop),
        }
    }
}

/// What a user might have configured, but for the retries: the SDK's defaults.
fn config(endpoint: &str) -> ClientBuilder {
    Storage::builder().with_endpoint(endpoint).with_credentials(anonymous::Builder::new().build())
}

async fn store(config: ClientBuilder) -> GcsStore {
    GcsStore::new(config.build().await.expect("a client"), "bucket")
}

async fn scripted<S: Into<Step>>(script: impl IntoIterator<Item = S>) -> (ScriptedServer, GcsStore) {
    let server = ScriptedServer::start(script.into_iter().map(Into::into)).await;
    let store = store(config(&server.url())).await;
    (server, store)
}

async fn on_fake(server: &FakeGcs) -> GcsStore {
    let control = server.control();
    GcsStore::new(server.client().await, BUCKET).with_control(move || control().build())
}
