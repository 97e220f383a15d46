//! An API server of Kubernetes that has only Leases, in the test's own process.
//!
//! The server follows the source of Kubernetes in every point on which an election depends: the rules of `uid` and
//! `resourceVersion`, the creation of a deleted Lease by an update, the validation of the fields, and fields that are
//! dropped. Only the tests against a real cluster show whether a real API server behaves in the same way.

mod leases;
mod status;

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard};

use axum::Router;
use axum::body::Bytes;
use axum::extract::{Path, Query, Request, State};
use axum::http::{Method, StatusCode};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use leases::{Leases, Listing};
use status::Failure;

/// A namespace that exists.
pub const NAMESPACE: &str = "default";

/// The server. It listens on a port of its own on the loopback interface until it is dropped.
#[derive(Debug)]
pub struct KubeApi {
    address: SocketAddr,
    state: Arc<Cluster>,
    serving: JoinHandle<()>,
}

impl KubeApi {
    /// Starts a server without Leases.
    pub async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port on the loopback interface");
        let address = listener.local_addr().expect("a bound listener has an address");
        let state = Arc::<Cluster>::default();
        let leases = "/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases";
        let router = Router::new()
            .route(leases, get(list).post(create))
            .route(&format!("{leases}/{{name}}"), get(read).put(update).delete(delete))
            .fallback(|| async { status::not_served() })
            .layer(middleware::from_fn(authorize))
            .with_state(state.clone());
        let serving = tokio::spawn(async move { axum::serve(listener, router).await.expect("it listens") });
        Self { address, state, serving }
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

    /// Returns a Lease as the server has it.
    #[must_use]
    pub fn lease(&self, name: &str) -> Option<Value> {
        lock(&self.state).read(NAMESPACE, name).ok()
    }

    /// Stores a Lease of somebody else, whatever is there.
    ///
    /// # Panics
    ///
    /// If the Lease is invalid.
    pub fn plant(&self, name: &str, lease: Value) {
        let mut leases = lock(&self.state);
        let _ = leases.delete(NAMESPACE, name, &Value::Null);
        leases.update(NAMESPACE, name, lease).expect("a valid Lease");
    }
}

impl Drop for KubeApi {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

type Cluster = Mutex<Leases>;

/// Refuses a request in the name of another user, because no other user has a role.
async fn authorize(request: Request, next: Next) -> Response {
    let is_about_one = request.uri().path().rsplit('/').next() != Some("leases");
    let verb = match *request.method() {
        Method::GET if is_about_one => "get",
        Method::GET => "list",
        Method::POST => "create",
        Method::PUT => "update",
        Method::DELETE => "delete",
        _ => "patch",
    };
    if request.headers().contains_key("impersonate-user") {
        return status::forbidden(verb).into_response();
    }
    next.run(request).await
}

async fn list(
    State(cluster): State<Arc<Cluster>>,
    Path(namespace): Path<String>,
    Query(listing): Query<Listing>,
) -> Response {
    answer(StatusCode::OK, lock(&cluster).list(&namespace, &listing))
}

async fn create(State(cluster): State<Arc<Cluster>>, Path(namespace): Path<String>, body: Bytes) -> Response {
    let created = status::json(&body).and_then(|lease| lock(&cluster).create(&namespace, lease));
    answer(StatusCode::CREATED, created)
}

async fn read(State(cluster): State<Arc<Cluster>>, Path((namespace, name)): Path<(String, String)>) -> Response {
    answer(StatusCode::OK, lock(&cluster).read(&namespace, &name))
}

async fn update(
    State(cluster): State<Arc<Cluster>>,
    Path((namespace, name)): Path<(String, String)>,
    body: Bytes,
) -> Response {
    match status::json(&body).and_then(|lease| lock(&cluster).update(&namespace, &name, lease)) {
        Ok((lease, true)) => answer(StatusCode::CREATED, Ok(lease)),
        Ok((lease, false)) => answer(StatusCode::OK, Ok(lease)),
        Err(failure) => failure.into_response(),
    }
}

async fn delete(
    State(cluster): State<Arc<Cluster>>,
    Path((namespace, name)): Path<(String, String)>,
    body: Bytes,
) -> Response {
    let options = if body.is_empty() { Ok(Value::Null) } else { status::json(&body) };
    answer(StatusCode::OK, options.and_then(|options| lock(&cluster).delete(&namespace, &name, &options)))
}

fn answer(status: StatusCode, result: Result<Value, Failure>) -> Response {
    match result {
        Ok(value) => (status, axum::Json(value)).into_response(),
        Err(failure) => failure.into_response(),
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().expect("no test panics while it holds this")
}
