//! An API server of Kubernetes that has only Leases, ConfigMaps, Events and Pods, in the test's own process.
//!
//! The Leases are those of the crate `leaderelection-lease-api` on a store in memory, and the others follow the source of
//! Kubernetes. Only the tests against a real cluster show whether a real API server behaves in the same way.

mod access;
mod changes;
mod collection;
mod leases;
mod objects;
mod status;

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::Arc;

use axum::Json;
use axum::extract::{Request, State};
use axum::middleware::{self, Next};
use axum::response::Response;
use axum::routing::get;
use leaderelection::MemoryStore;
use leaderelection::implement::ConditionalStore;
use leaderelection_lease_api::LeaseApi;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use crate::mutex::lock;
use access::Audit;
pub use collection::Collection;
use leases::Leases;
pub use objects::NAMESPACE;
use objects::{CONFIG_MAPS, EVENTS, PODS};

/// The server. It listens on a port of its own on the loopback interface until it is dropped.
#[derive(Debug)]
pub struct KubeApi {
    address: SocketAddr,
    leases: Leases,
    /// The ConfigMaps.
    pub config_maps: Arc<Collection>,
    /// The Events.
    pub events: Arc<Collection>,
    /// The Pods.
    pub pods: Arc<Collection>,
    audit: Arc<Audit>,
    serving: JoinHandle<()>,
}

impl KubeApi {
    /// Starts a server without objects.
    pub async fn start() -> Self {
        Self::start_on(MemoryStore::new(), "").await
    }

    /// Starts a server of the Leases in a store, whose keys begin with `prefix`.
    pub async fn start_on(store: impl ConditionalStore, prefix: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port on the loopback interface");
        let address = listener.local_addr().expect("a bound listener has an address");
        let audit = Arc::<Audit>::default();
        let leases = Leases::new(LeaseApi::new(store, prefix));
        let [config_maps, events, pods] = [CONFIG_MAPS, EVENTS, PODS].map(Collection::new);
        let router = [&config_maps, &events, &pods]
            .into_iter()
            .fold(leases.routes(), |router, collection| router.merge(collection.routes()))
            .route("/api/v1", get(async || Json(objects::discovery([CONFIG_MAPS, EVENTS, PODS]))))
            .layer(middleware::from_fn_with_state(Arc::clone(&audit), access::authorize))
            .layer(middleware::from_fn_with_state(Arc::clone(&audit), note));
        let serving = tokio::spawn(async move { axum::serve(listener, router).await.expect("it listens") });
        Self { address, leases, config_maps, events, pods, audit, serving }
    }

    /// The URL of the server, such as `http://127.0.0.1:31234`.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The kubeconfig of this server.
    #[must_use]
    pub fn kubeconfig(&self) -> Value {
        json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "tests",
            "clusters": [{"name": "tests", "cluster": {"server": self.url()}}],
            "users": [{"name": "tests", "user": {}}],
            "contexts": [{"name": "tests", "context": {"cluster": "tests", "user": "tests", "namespace": NAMESPACE}}],
        })
    }

    /// Returns the requests so far: methods and targets.
    #[must_use]
    pub fn requests(&self) -> Vec<String> {
        lock(&self.audit.requests).clone()
    }

    /// Denies a verb from now on, such as `update`, or a verb on one resource, such as `create events`.
    pub fn deny(&self, verb: &'static str) {
        lock(&self.audit.denied).insert(verb);
    }

    /// Returns what clients were allowed to do so far: verbs and resources, such as `list configmaps`.
    #[must_use]
    pub fn permissions_used(&self) -> BTreeSet<String> {
        lock(&self.audit.permissions_used).clone()
    }

    /// Returns a Lease as the server has it.
    #[must_use]
    pub fn lease(&self, name: &str) -> Option<Value> {
        self.leases.read(name)
    }

    /// Stores a Lease of somebody else, whatever is there.
    ///
    /// # Panics
    ///
    /// If the Lease is invalid.
    pub fn plant(&self, name: &str, lease: Value) {
        self.remove(name);
        self.leases.put(name, &lease);
    }

    /// Deletes a Lease, whatever is there.
    pub fn remove(&self, name: &str) {
        self.leases.delete(name);
    }
}

impl Drop for KubeApi {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

/// Notes a request.
async fn note(State(audit): State<Arc<Audit>>, request: Request, next: Next) -> Response {
    lock(&audit.requests).push(format!("{} {}", request.method(), request.uri()));
    next.run(request).await
}
