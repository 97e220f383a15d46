//! The servers, and how to reach each by way of a proxy.

use std::sync::Arc;

use leaderelection::ConditionalStore;
use leaderelection_backends::s3::S3Store;
use leaderelection_integration_tests::proxy::Proxy;
use leaderelection_integration_tests::servers::seaweedfs::SeaweedFs;

use crate::s3::server::seaweedfs;

pub(super) enum Cloud {
    S3(&'static SeaweedFs),
}

impl Cloud {
    pub(super) async fn s3() -> Arc<Self> {
        Arc::new(Self::S3(seaweedfs().await))
    }

    /// Where the server itself listens.
    pub(super) fn url(&self) -> String {
        match self {
            Self::S3(server) => server.url(),
        }
    }

    /// A store on a client of its own, which takes `url` for the server's.
    pub(super) async fn store(&self, url: &str) -> Arc<dyn ConditionalStore> {
        match self {
            Self::S3(server) => Arc::new(S3Store::new(server.client_by(url), "bucket")),
        }
    }

    pub(super) async fn proxy(&self) -> Proxy {
        match self {
            Self::S3(server) => Proxy::start_signing(&server.url(), server.signer()).await,
        }
    }
}
