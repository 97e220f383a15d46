//! The servers, and how to reach each by way of a proxy.

use std::sync::Arc;

use leaderelection::ConditionalStore;
use leaderelection_backends::azure::{AzureCredential, AzureStore};
use leaderelection_backends::gcs::GcsStore;
use leaderelection_backends::s3::S3Store;
use leaderelection_integration_tests::proxy::Proxy;
use leaderelection_integration_tests::servers::azurite::Azurite;
use leaderelection_integration_tests::servers::fake_gcs::{BUCKET, FakeGcs, Options};
use leaderelection_integration_tests::servers::seaweedfs::SeaweedFs;

use crate::azure::server::azurite;
use crate::s3::server::seaweedfs;

pub(crate) enum Cloud {
    S3(&'static SeaweedFs),
    Azure(&'static Azurite),
    Gcs(FakeGcs),
}

impl Cloud {
    pub(crate) async fn s3() -> Arc<Self> {
        Arc::new(Self::S3(seaweedfs().await))
    }

    pub(crate) async fn azure() -> Arc<Self> {
        Arc::new(Self::Azure(azurite().await))
    }

    /// A server for every test, because it lives on the test's own runtime.
    pub(crate) async fn gcs() -> Arc<Self> {
        Arc::new(Self::Gcs(FakeGcs::start(Options::default()).await))
    }

    /// Where the server itself listens.
    pub(crate) fn url(&self) -> String {
        match self {
            Self::S3(server) => server.url(),
            Self::Azure(server) => server.url(),
            Self::Gcs(server) => server.url(),
        }
    }

    /// A store on a client of its own, which takes `url` for the server's.
    pub(crate) async fn store(&self, url: &str) -> Arc<dyn ConditionalStore> {
        match self {
            Self::S3(server) => Arc::new(S3Store::new(server.client_by(url), "bucket")),
            Self::Azure(server) => {
                let container = server.container_url("container").replacen(&server.url(), url, 1);
                // The signature of a SAS covers no headers, so that a proxy may take off the conditions.
                let signed = format!("{container}?{}", server.sas("rwdlc"));
                Arc::new(AzureStore::new(&signed, AzureCredential::InUrl).expect("a store"))
            }
            Self::Gcs(server) => {
                let control = server.control_by(url.to_owned());
                let store = GcsStore::new(server.client_by(url).await, BUCKET);
                Arc::new(store.with_control(move || control().build()))
            }
        }
    }

    pub(crate) async fn proxy(&self) -> Proxy {
        match self {
            Self::S3(server) => Proxy::start_signing(&server.url(), server.signer()).await,
            Self::Azure(_) | Self::Gcs(_) => Proxy::start(&self.url()).await,
        }
    }

    /// The URL of a lock, for another process that takes `url` for the server's, and what that process
    /// needs in its environment.
    pub(crate) fn location(&self, url: &str, key: &str) -> (String, Vec<(&'static str, String)>) {
        match self {
            Self::S3(server) => {
                let endpoint = url.replace(':', "%3A").replace('/', "%2F");
                let keys = server.environment().map(|(name, value)| (name, value.to_owned()));
                (format!("s3://bucket/{key}?endpoint={endpoint}"), keys.into())
            }
            Self::Azure(server) => {
                let container = server.container_url("container").replacen(&server.url(), url, 1);
                (format!("{container}/{key}?{}", server.sas("rwdlc")), Vec::new())
            }
            Self::Gcs(_) => (format!("gs://{BUCKET}/{key}"), vec![("STORAGE_EMULATOR_HOST", url.to_owned())]),
        }
    }
}
