//! A server that the tests start, reached by the crates of others.

use std::sync::Arc;

use async_trait::async_trait;
use leaderelection::implement::ConditionalStore;
use leaderelection_integration_tests::adapted::{Adapted, By, Place};
use leaderelection_integration_tests::proxy::sign::{Signer, unsigned};
use leaderelection_integration_tests::servers::oss::Oss;

use super::azure::{Azure, azurite};
use super::s3::{S3, seaweedfs};
use super::{Environment, Service};

pub(crate) struct Through {
    address: String,
    signer: Signer,
    store: Adapted,
    /// A server that ends with this value.
    _server: Option<Oss>,
}

impl Through {
    /// SeaweedFS, by another crate than Amazon's.
    pub(crate) async fn s3(by: By, retries: bool) -> Self {
        let server = seaweedfs().await;
        let [(_, access_key), (_, secret_key)] = server.environment().map(|(name, value)| (name, value.to_owned()));
        let place = Place::S3 { endpoint: server.url(), bucket: "bucket".to_owned(), access_key, secret_key };
        Self::of(&S3::on(server), by, place, retries)
    }

    /// Azurite, by another crate than Microsoft's.
    pub(crate) async fn azure(by: By, retries: bool) -> Self {
        let server = azurite().await;
        let place = Place::Azure {
            endpoint: server.url(),
            account: server.account_key().0.to_owned(),
            container: "container".to_owned(),
            key_or_sas: server.sas("rwdlc"),
        };
        Self::of(&Azure::on(server), by, place, retries)
    }

    /// A server of its own that can only create.
    pub(crate) async fn oss(keep: u64, retries: bool) -> Self {
        let server = Oss::start().await;
        let (address, place) = (server.url(), Place::Oss { endpoint: server.url(), keep });
        let store = Adapted { by: By::Opendal, place, retries, key: String::new() };
        Self { address, signer: unsigned(), store, _server: Some(server) }
    }

    /// The same server as that of a service of ours, by another crate.
    fn of(service: &impl Service, by: By, place: Place, retries: bool) -> Self {
        let store = Adapted { by, place, retries, key: String::new() };
        Self { address: service.address(), signer: service.signer(), store, _server: None }
    }

    /// The place without a proxy.
    pub(crate) fn place(&self) -> &Place {
        &self.store.place
    }

    fn by(&self, proxy: &str, key: &str) -> Adapted {
        let mut store = Adapted { key: key.to_owned(), ..self.store.clone() };
        proxy.clone_into(store.place.endpoint());
        store
    }
}

#[async_trait]
impl Service for Through {
    fn is_real(&self) -> bool {
        false
    }

    fn address(&self) -> String {
        self.address.clone()
    }

    fn folder(&self) -> Option<&str> {
        None
    }

    fn signer(&self) -> Signer {
        Arc::clone(&self.signer)
    }

    async fn store(&self) -> Arc<dyn ConditionalStore> {
        self.store.open()
    }

    async fn store_by(&self, proxy: &str) -> Arc<dyn ConditionalStore> {
        self.by(proxy, "").open()
    }

    fn url_by(&self, proxy: &str, key: &str) -> (String, Environment) {
        (self.by(proxy, key).to_string(), Vec::new())
    }

    /// Deletions with a condition are refused without a request, or are writes.
    fn is_all_http(&self) -> bool {
        false
    }

    fn makes_one_attempt(&self) -> bool {
        !self.store.retries
    }

    fn can_only_create(&self) -> bool {
        matches!(self.store.place, Place::Oss { .. })
    }
}
