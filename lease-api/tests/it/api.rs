//! A client that sends what it is told.

use std::ops::Deref;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::{HeaderMap, Request};
use leaderelection::implement::ConditionalStore;
use leaderelection_lease_api::LeaseApi;
use leaderelection_test_support::faulty::Faulty;
use serde_json::{Value, json};
use tower::ServiceExt as _;

pub(crate) const LEASES: &str = "/apis/coordination.k8s.io/v1/namespaces/default/leases";
pub(crate) const WEB: &str = "/apis/coordination.k8s.io/v1/namespaces/default/leases/web";

/// The key of the Lease `web`.
pub(crate) const KEY: &str = "leases/default/web";

const JSON: &str = "application/json";
pub(crate) const MERGE: &str = "application/merge-patch+json";

/// A server.
#[derive(Clone)]
pub(crate) struct Server {
    routes: Router,
}

/// A server, and the store behind it.
pub(crate) struct Api {
    pub(crate) store: Faulty,
    server: Server,
}

impl Deref for Api {
    type Target = Server;

    fn deref(&self) -> &Server {
        &self.server
    }
}

#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Value,
}

impl Answer {
    pub(crate) fn token(&self) -> u64 {
        self.body["metadata"]["annotations"]["leaderelection/token"].as_str().expect("a token").parse().unwrap()
    }

    /// Asserts the status.
    pub(crate) fn is(self, status: u16) -> Value {
        assert_eq!(self.status, status, "{}", self.body);
        self.body
    }
}

impl Api {
    pub(crate) fn new() -> Self {
        Self::on(Faulty::default())
    }

    pub(crate) fn on(store: Faulty) -> Self {
        Self { server: Server::on(store.clone()), store }
    }

    /// Another server of the same store.
    pub(crate) fn another(&self) -> Self {
        Self::on(self.store.clone())
    }

    /// The record in the store.
    pub(crate) async fn record(&self) -> Value {
        let object = self.store.inner.get(KEY).await.unwrap().expect("an object");
        serde_json::from_slice(&object.body).unwrap()
    }
}

impl Server {
    pub(crate) fn on(store: impl ConditionalStore) -> Self {
        Self { routes: LeaseApi::new(store, "leases/").routes() }
    }

    pub(crate) async fn send(&self, method: &str, target: &str, content: &str, body: impl Into<Body>) -> Answer {
        let request = Request::builder().method(method).uri(target);
        let request = if content.is_empty() { request } else { request.header("content-type", content) };
        self.ask(request.body(body.into()).unwrap()).await
    }

    pub(crate) async fn ask(&self, request: Request<Body>) -> Answer {
        let response = self.routes.clone().oneshot(request).await.unwrap();
        let (parts, body) = response.into_parts();
        let body = to_bytes(body, usize::MAX).await.unwrap();
        let body = serde_json::from_slice(&body).unwrap_or_else(|_| String::from_utf8_lossy(&body).into());
        Answer { status: parts.status.as_u16(), headers: parts.headers, body }
    }

    pub(crate) async fn get(&self) -> Answer {
        self.send("GET", WEB, "", Body::empty()).await
    }

    pub(crate) async fn post(&self, lease: &Value) -> Answer {
        self.send("POST", LEASES, JSON, lease.to_string()).await
    }

    pub(crate) async fn put(&self, lease: &Value) -> Answer {
        self.send("PUT", WEB, JSON, lease.to_string()).await
    }

    pub(crate) async fn merge(&self, query: &str, patch: &Value) -> Answer {
        self.send("PATCH", &format!("{WEB}?{query}"), MERGE, patch.to_string()).await
    }
}

/// The Lease `web` with a holder.
pub(crate) fn lease(holder: &str) -> Value {
    json!({
        "apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "web"},
        "spec": {
            "holderIdentity": holder, "leaseDurationSeconds": 15, "leaseTransitions": 0,
            "acquireTime": "2026-02-02T10:15:30.000000Z", "renewTime": "2026-02-02T10:15:30.000000Z",
        },
    })
}

/// A copy of a Lease with other fields in its `spec`.
pub(crate) fn with(lease: &Value, spec: &Value) -> Value {
    let mut lease = lease.clone();
    for (name, value) in spec.as_object().unwrap() {
        lease["spec"][name] = value.clone();
    }
    lease
}
