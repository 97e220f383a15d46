//! A place in a store that belongs to one test, and how to reach it by way of a proxy.
//!
//! The store is that of a server which the tests start, or of the real service that the environment names.

pub(crate) mod azure;
pub(crate) mod gcs;
pub(crate) mod s3;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use leaderelection::{ConditionalStore, StoreErrorKind, Version};
use leaderelection_integration_tests::contender::Timings;
use leaderelection_integration_tests::proxy::Proxy;
use leaderelection_integration_tests::proxy::sign::Signer;
use leaderelection_integration_tests::servers::unique_name;

use azure::Azure;
use gcs::Gcs;
use s3::S3;

/// For a service that is far away, that many use, and that may take but one write per second.
const UNHURRIED: Timings =
    Timings { lease: Duration::from_secs(15), deadline: Duration::from_secs(10), retry: Duration::from_secs(2) };

/// The credentials of the environment, for another process: its variables.
pub(crate) type Environment = Vec<(&'static str, String)>;

/// One cloud's way to be reached. Addresses are such as `http://127.0.0.1:31234`.
#[async_trait]
pub(crate) trait Service: Send + Sync {
    /// Whether it is not a server that the tests have started.
    fn is_real(&self) -> bool;

    /// Where the service itself is.
    fn address(&self) -> String;

    /// The folder in which the tests may write.
    fn folder(&self) -> Option<&str>;

    /// Makes requests that go by way of a proxy good ones.
    fn signer(&self) -> Signer;

    /// The store, past all proxies.
    async fn store(&self) -> Arc<dyn ConditionalStore>;

    /// The store on a client of its own, by way of a proxy.
    async fn store_by(&self, proxy: &str) -> Arc<dyn ConditionalStore>;

    /// The URL of an object, for another process that goes by way of a proxy.
    fn url_by(&self, proxy: &str, key: &str) -> (String, Environment);

    /// Whether deletions and listings go by way of the proxy too.
    fn is_all_http(&self) -> bool {
        true
    }
}

pub(crate) struct Cloud {
    service: Box<dyn Service>,
    prefix: String,
}

impl Cloud {
    pub(crate) async fn s3() -> Arc<Self> {
        Self::of(S3::new().await)
    }

    pub(crate) async fn azure() -> Arc<Self> {
        Self::of(Azure::new().await)
    }

    pub(crate) async fn gcs() -> Arc<Self> {
        Self::of(Gcs::new().await)
    }

    fn of(service: impl Service + 'static) -> Arc<Self> {
        let prefix = beneath(service.folder(), &unique_name());
        Arc::new(Self { service: Box::new(service), prefix })
    }

    /// A key that nothing else has.
    pub(crate) fn key(&self) -> String {
        beneath(Some(&self.prefix), &unique_name())
    }

    /// These, unless the service is real.
    pub(crate) fn timings(&self, quick: Timings) -> Timings {
        if self.service.is_real() { UNHURRIED } else { quick }
    }

    pub(crate) fn is_all_http(&self) -> bool {
        self.service.is_all_http()
    }

    /// A network of its own for one client.
    pub(crate) async fn proxy(&self) -> Proxy {
        Proxy::start(&self.service.address(), self.service.signer()).await
    }

    /// Past all proxies.
    pub(crate) async fn store(&self) -> Arc<dyn ConditionalStore> {
        self.service.store().await
    }

    pub(crate) async fn store_by(&self, proxy: &Proxy) -> Arc<dyn ConditionalStore> {
        self.service.store_by(&proxy.url()).await
    }

    pub(crate) fn url_by(&self, proxy: &Proxy, key: &str) -> (String, Environment) {
        self.service.url_by(&proxy.url(), key)
    }

    /// Somebody else's bucket should look as it did before.
    pub(crate) async fn clear(&self) {
        if self.service.is_real() {
            clear(&*self.store().await, &self.prefix).await;
        }
    }
}

/// The key of an object in a folder.
pub(crate) fn beneath(folder: Option<&str>, name: &str) -> String {
    folder.map_or_else(|| name.to_owned(), |folder| format!("{}/{name}", folder.trim_end_matches('/')))
}

/// Deletes everything whose key begins so.
pub(crate) async fn clear(store: &dyn ConditionalStore, prefix: &str) {
    for key in store.list(prefix).await.expect("a listing") {
        // What a late request has written meanwhile is deleted next.
        while let Some(object) = store.get(&key).await.expect("read") {
            delete(store, &key, &object.version).await;
        }
    }
}

/// Deletes an object, unless it has been changed or deleted, from a store that may limit how often it is asked.
pub(crate) async fn delete(store: &dyn ConditionalStore, key: &str, version: &Version) {
    while let Err(error) = store.delete(key, version).await {
        match error.kind() {
            StoreErrorKind::Conflict => return,
            StoreErrorKind::Rejected => {
                tokio::time::sleep(error.retry_after().unwrap_or(Duration::from_secs(1))).await;
            }
            _ => panic!("not deleted: {error:?}"),
        }
    }
}
