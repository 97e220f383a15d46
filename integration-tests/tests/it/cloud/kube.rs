//! The tests' own API server, or the cluster of the kubeconfig that `LEADERELECTION_TEST_KUBE` names.
//!
//! The tests write Leases into the namespace of the current context. A proxy uses the certificates of the kubeconfig for its
//! own connections, and passes the client's token on.

use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use kube::Config;
use kube::client::ConfigExt as _;
use kube::config::{KubeConfigOptions, Kubeconfig};
use leaderelection::implement::ConditionalStore;
use leaderelection_backends::kubernetes::LeaseStore;
use leaderelection_integration_tests::proxy::Connector;
use leaderelection_integration_tests::proxy::sign::{self, Signer};
use leaderelection_integration_tests::servers::kube_api::KubeApi;
use tempfile::TempDir;

use super::{Environment, Service};

pub(crate) const KUBECONFIG_VARIABLE: &str = "LEADERELECTION_TEST_KUBE";

pub(crate) struct Kube {
    kubeconfig: Kubeconfig,
    config: Config,
    /// The kubeconfigs of other processes.
    directory: TempDir,
    /// The server of one test, because it runs on the test's own runtime.
    own: Option<KubeApi>,
}

impl Kube {
    pub(crate) async fn new() -> Self {
        match std::env::var(KUBECONFIG_VARIABLE) {
            Ok(path) => {
                let kubeconfig = Kubeconfig::read_from(Path::new(&path));
                Self::with(kubeconfig.unwrap_or_else(|error| panic!("{KUBECONFIG_VARIABLE}: {error}")), None).await
            }
            Err(_) => Self::own(KubeApi::start().await).await,
        }
    }

    /// A server of the test.
    pub(crate) async fn own(server: KubeApi) -> Self {
        Self::with(serde_json::from_value(server.kubeconfig()).expect("a kubeconfig"), Some(server)).await
    }

    async fn with(kubeconfig: Kubeconfig, own: Option<KubeApi>) -> Self {
        let config = Config::from_custom_kubeconfig(kubeconfig.clone(), &KubeConfigOptions::default()).await;
        let config = config.unwrap_or_else(|error| panic!("{KUBECONFIG_VARIABLE}: {error}"));
        Self { kubeconfig, config, directory: tempfile::tempdir().expect("a directory"), own }
    }

    pub(crate) fn config(&self) -> Config {
        self.config.clone()
    }

    pub(crate) fn lease_store(&self) -> LeaseStore {
        LeaseStore::new(self.config(), &self.config.default_namespace).expect("a client")
    }
}

#[async_trait]
impl Service for Kube {
    fn is_real(&self) -> bool {
        self.own.is_none()
    }

    fn address(&self) -> String {
        self.config.cluster_url.to_string()
    }

    fn folder(&self) -> Option<&str> {
        None
    }

    /// The client sends its token to the proxy, and the proxy passes it on.
    fn signer(&self) -> Signer {
        sign::unsigned()
    }

    fn connector(&self) -> Connector {
        self.config.rustls_https_connector().expect("the certificates of the kubeconfig")
    }

    async fn store(&self) -> Arc<dyn ConditionalStore> {
        Arc::new(self.lease_store())
    }

    async fn store_by(&self, proxy: &str) -> Arc<dyn ConditionalStore> {
        let mut config = self.config();
        config.cluster_url = proxy.parse().expect("a URL");
        Arc::new(LeaseStore::new(config, &self.config.default_namespace).expect("a client"))
    }

    fn url_by(&self, proxy: &str, key: &str) -> (String, Environment) {
        let mut kubeconfig = self.kubeconfig.clone();
        for named in &mut kubeconfig.clusters {
            if let Some(cluster) = &mut named.cluster {
                cluster.server = Some(proxy.to_owned());
            }
        }
        let path = self.directory.path().join(proxy.replace(|c: char| !c.is_ascii_alphanumeric(), "-"));
        std::fs::write(&path, serde_json::to_vec(&kubeconfig).expect("JSON")).expect("a kubeconfig");
        let url = format!("lease://{}/{key}", self.config.default_namespace);
        (url, vec![("KUBECONFIG", path.display().to_string())])
    }

    fn separator(&self) -> &'static str {
        "-"
    }

    fn holds_only_records(&self) -> bool {
        true
    }
}
