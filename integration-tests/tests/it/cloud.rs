//! A place in a store that belongs to one test, and the way to that store through a proxy.
//!
//! The tests either start a server for the store, or use the real service that the environment names.

pub(crate) mod adapted;
pub(crate) mod azure;
pub(crate) mod gcs;
pub(crate) mod kube;
pub(crate) mod s3;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use leaderelection::implement::{ConditionalStore, ConditionalStoreExt, ListedObject, Version};
use leaderelection::{StoreErrorKind, Timings};
use leaderelection_integration_tests::adapted::By;
use leaderelection_integration_tests::history::{self, History};
use leaderelection_integration_tests::proxy::sign::Signer;
use leaderelection_integration_tests::proxy::{self, Connector, Proxy};
use leaderelection_integration_tests::relay::Relay;
use leaderelection_integration_tests::servers::unique_name;

use adapted::Through;
use azure::Azure;
use gcs::Gcs;
use kube::Kube;
use s3::S3;
use tempfile::NamedTempFile;

/// The credentials of the environment, as variables for another process.
pub(crate) type Environment = Vec<(&'static str, String)>;

/// The ways to reach one cloud. Addresses are like `http://127.0.0.1:31234`.
#[async_trait]
pub(crate) trait Service: Send + Sync {
    /// Returns `true` if this is not a server that the tests have started.
    fn is_real(&self) -> bool;

    /// The address of the service itself.
    fn address(&self) -> String;

    /// The folder in which the tests may write.
    fn folder(&self) -> Option<&str>;

    /// A signer that makes a proxied request acceptable to the service.
    fn signer(&self) -> Signer;

    /// The proxy's way to the service.
    fn connector(&self) -> Connector {
        proxy::connector()
    }

    /// The store without a proxy.
    async fn store(&self) -> Arc<dyn ConditionalStore>;

    /// The store on a client of its own, through a proxy.
    async fn store_by(&self, proxy: &str) -> Arc<dyn ConditionalStore>;

    /// The URL of an object through a proxy, for another process.
    fn url_by(&self, proxy: &str, key: &str) -> (String, Environment);

    /// Returns `true` if deletions and listings use the proxy too, with one request each.
    fn is_all_http(&self) -> bool {
        true
    }

    /// Returns `true` if the store sends no request twice.
    fn makes_one_attempt(&self) -> bool {
        true
    }

    /// Returns `true` if the locks are sequenced ones, each of whose calls is several requests.
    fn can_only_create(&self) -> bool {
        false
    }

    /// The text between a folder and a name in it.
    fn separator(&self) -> &'static str {
        "/"
    }

    /// Returns `true` if the store takes no other bodies than records.
    fn holds_only_records(&self) -> bool {
        false
    }
}

pub(crate) struct Cloud {
    service: Box<dyn Service>,
    prefix: String,
    /// The calls of clients, for the judge in another language.
    history: NamedTempFile,
    clients: AtomicU32,
}

impl Cloud {
    pub(crate) async fn s3() -> Arc<Self> {
        Self::of(S3::new().await)
    }

    /// A directory bucket of S3, with sessions as long as at Amazon.
    pub(crate) async fn express() -> Arc<Self> {
        Self::of(S3::express(Duration::from_secs(300)).await)
    }

    /// The same, with sessions that are so short that a client opens several.
    pub(crate) async fn express_with_short_sessions() -> Arc<Self> {
        Self::of(S3::express(Duration::from_secs(6)).await)
    }

    pub(crate) async fn azure() -> Arc<Self> {
        Self::of(Azure::new().await)
    }

    pub(crate) async fn gcs() -> Arc<Self> {
        Self::of(Gcs::new().await)
    }

    /// SeaweedFS by `object_store`, without its retries.
    pub(crate) async fn object_store_s3() -> Arc<Self> {
        Self::of(Through::s3(By::ObjectStore, false).await)
    }

    /// SeaweedFS by `object_store`, with the retries that it has by default.
    pub(crate) async fn object_store_s3_with_retries() -> Arc<Self> {
        Self::of(Through::s3(By::ObjectStore, true).await)
    }

    /// Azurite by `object_store`, without its retries.
    pub(crate) async fn object_store_azure() -> Arc<Self> {
        Self::of(Through::azure(By::ObjectStore, false).await)
    }

    /// Azurite by `object_store`, with the retries that it has by default.
    pub(crate) async fn object_store_azure_with_retries() -> Arc<Self> {
        Self::of(Through::azure(By::ObjectStore, true).await)
    }

    /// SeaweedFS by `opendal`, without a retry layer.
    pub(crate) async fn opendal_s3() -> Arc<Self> {
        Self::of(Through::s3(By::Opendal, false).await)
    }

    /// SeaweedFS by `opendal`, with its retry layer.
    pub(crate) async fn opendal_s3_with_retries() -> Arc<Self> {
        Self::of(Through::s3(By::Opendal, true).await)
    }

    /// Azurite by `opendal`, without a retry layer.
    pub(crate) async fn opendal_azure() -> Arc<Self> {
        Self::of(Through::azure(By::Opendal, false).await)
    }

    /// A server that can only create by `opendal`, whose old objects stay.
    pub(crate) async fn opendal_oss() -> Arc<Self> {
        Self::of(Through::oss(1000, false).await)
    }

    /// The same server, where every write removes all earlier ones at once.
    pub(crate) async fn opendal_oss_swept() -> Arc<Self> {
        Self::of(Through::oss(1, false).await)
    }

    pub(crate) async fn kube() -> Arc<Self> {
        Self::of(Kube::new().await)
    }

    /// A place of its own in a service.
    pub(crate) fn of(service: impl Service + 'static) -> Arc<Self> {
        let prefix = beneath(service.folder(), &unique_name());
        let history = NamedTempFile::new().expect("a file");
        Arc::new(Self { service: Box::new(service), prefix, history, clients: AtomicU32::default() })
    }

    /// Returns a key that no other test uses.
    pub(crate) fn key(&self) -> String {
        format!("{}{}{}", self.prefix, self.service.separator(), unique_name())
    }

    /// Returns the given timings. For a real service, which is distant, shared, and may accept only one write per
    /// second, no time is shorter than the default one.
    pub(crate) fn timings(&self, quick: Timings) -> Timings {
        if !self.service.is_real() {
            return quick;
        }
        let longer = |time: fn(&Timings) -> Duration| time(&quick).max(time(&Timings::default()));
        let [lease, deadline] = [Timings::lease_duration, Timings::renew_deadline].map(longer);
        let timings = Timings::new(lease, deadline, longer(Timings::retry_period));
        let timings = timings.and_then(|timings| timings.with_request_timeout(longer(Timings::request_timeout)));
        timings.expect("timings that fit")
    }

    pub(crate) fn is_all_http(&self) -> bool {
        self.service.is_all_http()
    }

    pub(crate) fn makes_one_attempt(&self) -> bool {
        self.service.makes_one_attempt()
    }

    /// Returns `true` if a call sends at most one request.
    pub(crate) fn sends_one_request(&self) -> bool {
        self.service.makes_one_attempt() && !self.service.can_only_create()
    }

    /// The history of another client.
    pub(crate) fn history(&self) -> Arc<History> {
        History::of(self.clients.fetch_add(1, Ordering::Relaxed), self.history.path()).expect("a file")
    }

    /// Lets the judge check the history of this place, whose network lies.
    pub(crate) fn judge(&self) {
        self.judge_calls(self.history.path());
    }

    /// Lets the judge check a history of calls through a network that lies.
    pub(crate) fn judge_calls(&self, history: &Path) {
        // A creation that is delivered twice may let a read of a sequenced lock show the past, which is allowed.
        if !self.service.can_only_create() {
            history::judge(history, true);
        }
    }

    pub(crate) fn holds_only_records(&self) -> bool {
        self.service.holds_only_records()
    }

    /// A network of its own for one client.
    pub(crate) async fn proxy(&self) -> Proxy {
        Proxy::start_with(&self.service.address(), self.service.signer(), self.service.connector()).await
    }

    /// A way to a server of the tests that can forget its connections. The certificate of a real service has its name.
    pub(crate) async fn relay(&self) -> Option<Relay> {
        if self.service.is_real() { None } else { Some(Relay::start(&self.service.address()).await) }
    }

    /// The store without a proxy.
    pub(crate) async fn store(&self) -> Arc<dyn ConditionalStore> {
        self.service.store().await
    }

    pub(crate) async fn store_by(&self, proxy: &Proxy) -> Arc<dyn ConditionalStore> {
        self.service.store_by(&proxy.url()).await
    }

    pub(crate) async fn store_at(&self, url: &str) -> Arc<dyn ConditionalStore> {
        self.service.store_by(url).await
    }

    pub(crate) fn url_by(&self, proxy: &Proxy, key: &str) -> (String, Environment) {
        self.service.url_by(&proxy.url(), key)
    }

    /// Deletes the objects of the test, because a real bucket belongs to others.
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

/// Deletes every object whose key begins with `prefix`.
pub(crate) async fn clear(store: &dyn ConditionalStore, prefix: &str) {
    for key in ListedObject::keys(store.list(prefix).await.expect("a listing")) {
        // A late request may write the object again, and the loop then deletes it again.
        while let Some(object) = store.get(&key).await.expect("read") {
            delete(store, &key, &object.version).await;
        }
    }
}

/// Deletes an object unless it was changed or deleted. The store may limit the rate of requests.
pub(crate) async fn delete(store: &dyn ConditionalStore, key: &str, version: &Version) {
    while let Err(error) = store.delete(key, Some(version)).await {
        match error.kind() {
            StoreErrorKind::Conflict => return,
            StoreErrorKind::Rejected => {
                tokio::time::sleep(error.retry_after().unwrap_or(Duration::from_secs(1))).await;
            }
            _ => panic!("not deleted: {error:?}"),
        }
    }
}
