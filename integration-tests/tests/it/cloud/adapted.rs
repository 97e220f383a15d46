//! A server that the tests start, reached by the crates of others.

use std::sync::Arc;

use async_trait::async_trait;
use leaderelection::ConditionalStore;
use leaderelection_integration_tests::adapted::{Adapted, By, Place};
use leaderelection_integration_tests::proxy::sign::Signer;

use super::azure::{Azure, azurite};
use super::s3::{S3, seaweedfs};
use super::{Environment, Service};

pub(crate) struct Through {
    /// The same server, reached by its cloud's own crate.
    service: Box<dyn Service>,
    store: Adapted,
}

impl Through {
    /// SeaweedFS, by another crate than Amazon's.
    pub(crate) async fn s3(by: By, retries: bool) -> Self {
        let server = seaweedfs().await;
        let [(_, access_key), (_, secret_key)] = server.environment().map(|(name, value)| (name, value.to_owned()));
        let place = Place::S3 { endpoint: server.url(), bucket: "bucket".to_owned(), access_key, secret_key };
        Self { service: Box::new(S3::on(server)), store: Adapted { by, place, retries, key: String::new() } }
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
        Self { service: Box::new(Azure::on(server)), store: Adapted { by, place, retries, key: String::new() } }
    }

    /// The place without a proxy.
    pub(crate) fn place(&self) -> &Place {
        &self.store.place
    }

    fn by(&self, proxy: &str, key: &str) -> Adapted {
        let mut store = Adapted { key: key.to_owned(), ..self.store.clone() };
        let (Place::S3 { endpoint, .. } | Place::Azure { endpoint, .. }) = &mut store.place;
        proxy.clone_into(endpoint);
        store
    }
}

#[async_trait]
impl Service for Through {
    fn is_real(&self) -> bool {
        false
    }

    fn address(&self) -> String {
        self.service.address()
    }

    fn folder(&self) -> Option<&str> {
        None
    }

    fn signer(&self) -> Signer {
        self.service.signer()
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

    /// Deletions with a condition are refused without a request.
    fn is_all_http(&self) -> bool {
        false
    }

    fn makes_one_attempt(&self) -> bool {
        !self.store.retries
    }
}
