mod answers;
mod attempts;
mod connections;
mod requests;
mod secrets;
pub(crate) mod server;

use azure_core::credentials::Secret;
use azure_core::http::ClientOptions;
use bytes::Bytes;
use leaderelection::{ConditionalStore as _, Precondition, StoreError, Version};
use leaderelection_backends::azure::{AzureCredential, AzureStore};
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
    async fn on(self, store: &AzureStore) -> Result<(), StoreError> {
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

/// A secret, in base64.
const KEY: &str = "dGhpcyBpcyBzZWNyZXQ=";

fn account_key() -> AzureCredential {
    AzureCredential::AccountKey { account: "account".to_owned(), key: Secret::new(KEY) }
}

fn store(endpoint: &str, options: ClientOptions) -> AzureStore {
    AzureStore::with_options(&format!("{endpoint}/container"), account_key(), options).expect("a store")
}

async fn scripted<S: Into<Step>>(script: impl IntoIterator<Item = S>) -> (ScriptedServer, AzureStore) {
    let server = ScriptedServer::start(script.into_iter().map(Into::into)).await;
    let store = store(&server.url(), ClientOptions::default());
    (server, store)
}
