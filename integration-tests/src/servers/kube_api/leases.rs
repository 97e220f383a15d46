//! The Leases, and what a test reads and writes without a connection.

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::{Method, Request, StatusCode};
use leaderelection_lease_api::LeaseApi;
use serde_json::Value;
use tokio::runtime::Handle;
use tower::ServiceExt as _;

use super::objects::NAMESPACE;

#[derive(Debug)]
pub(super) struct Leases {
    api: LeaseApi,
    /// The runtime of the server, because a test may have none.
    runtime: Handle,
}

impl Leases {
    pub(super) fn new(api: LeaseApi) -> Self {
        Self { api, runtime: Handle::current() }
    }

    pub(super) fn routes(&self) -> Router {
        self.api.routes()
    }

    pub(super) fn read(&self, name: &str) -> Option<Value> {
        let (status, lease) = self.send(Method::GET, name, Body::empty());
        (status == StatusCode::OK).then_some(lease)
    }

    pub(super) fn put(&self, name: &str, lease: &Value) {
        let (status, answer) = self.send(Method::PUT, name, lease.to_string().into());
        assert_eq!(status, StatusCode::CREATED, "{answer}");
    }

    pub(super) fn delete(&self, name: &str) {
        self.send(Method::DELETE, name, Body::empty());
    }

    fn send(&self, method: Method, name: &str, body: Body) -> (StatusCode, Value) {
        let target = format!("/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases/{name}");
        let request = Request::builder().method(method).uri(target).body(body).expect("a request");
        let routes = self.routes();
        let _entered = self.runtime.enter();
        // Nothing waits for anything in memory.
        futures_util::FutureExt::now_or_never(async move {
            let (parts, body) = routes.oneshot(request).await.expect("an answer").into_parts();
            let body = to_bytes(body, usize::MAX).await.expect("the whole answer");
            (parts.status, serde_json::from_slice(&body).expect("JSON"))
        })
        .expect("an answer at once")
    }
}
