//! What is answered.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::{Request, State};
use axum::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, REFERRER_POLICY, WWW_AUTHENTICATE, X_CONTENT_TYPE_OPTIONS,
    X_FRAME_OPTIONS,
};
use axum::http::{HeaderName, HeaderValue, StatusCode};
use axum::middleware::{Next, from_fn, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use leaderelection::{HealthCheck, LeaderHandle};
use metrics_exporter_prometheus::PrometheusHandle;
use tokio_util::sync::CancellationToken;

use super::access::Token;
use super::page;
use super::snapshot::Snapshot;
use crate::view::short;

/// What the answers are made of.
#[derive(Debug)]
pub(super) struct Site {
    /// Shown without secrets.
    pub(super) lock: String,
    pub(super) handle: LeaderHandle,
    pub(super) health: HealthCheck,
    /// How old the store's last answer may be.
    pub(super) ready_within: Duration,
    /// Cancelled when we are about to end.
    pub(super) draining: CancellationToken,
    pub(super) metrics: PrometheusHandle,
    pub(super) token: Option<Token>,
}

type SharedSite = State<Arc<Site>>;

/// What is served, to whom.
pub(super) fn routes(site: Arc<Site>) -> Router {
    let guarded = Router::new()
        .route("/", get(status))
        .route("/page.css", get(|| async { ([(CONTENT_TYPE, "text/css; charset=utf-8")], page::STYLE) }))
        .route("/page.js", get(|| async { ([(CONTENT_TYPE, "text/javascript; charset=utf-8")], page::SCRIPT) }))
        .route("/leader", get(leader))
        .route("/metrics", get(metrics))
        .route_layer(from_fn_with_state(Arc::clone(&site), only_with_token));
    // What asks these can seldom show a token, and they tell little.
    let open =
        Router::new().route("/healthz", get(healthz)).route("/readyz", get(readyz)).route("/leading", get(leading));
    guarded.merge(open).layer(from_fn(with_headers)).with_state(site)
}

async fn status(State(site): SharedSite) -> Response {
    page::render(&site).into_response()
}

async fn leader(State(site): SharedSite) -> Json<Snapshot> {
    Json(Snapshot::take(&site.handle))
}

async fn metrics(State(site): SharedSite) -> impl IntoResponse {
    ([(CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], site.metrics.render())
}

async fn healthz(State(site): SharedSite) -> (StatusCode, String) {
    match site.health.check() {
        Ok(()) => (StatusCode::OK, "ok\n".to_owned()),
        Err(unhealthy) => (StatusCode::INTERNAL_SERVER_ERROR, format!("{unhealthy}\n")),
    }
}

async fn readyz(State(site): SharedSite) -> (StatusCode, String) {
    if site.draining.is_cancelled() {
        return (StatusCode::SERVICE_UNAVAILABLE, "not ready: shutting down\n".to_owned());
    }
    let snapshot = Snapshot::take(&site.handle);
    if snapshot.is_fresh(site.ready_within) {
        return (StatusCode::OK, "ok\n".to_owned());
    }
    let problem = match snapshot.age {
        Some(age) => format!("not ready: the store last answered {} ago\n", short(age)),
        None => "not ready: the store has not answered yet, or has no lock yet\n".to_owned(),
    };
    (StatusCode::SERVICE_UNAVAILABLE, problem)
}

async fn leading(State(site): SharedSite) -> (StatusCode, &'static str) {
    match (site.draining.is_cancelled(), site.handle.is_leader()) {
        (true, _) => (StatusCode::SERVICE_UNAVAILABLE, "shutting down\n"),
        (false, true) => (StatusCode::OK, "leading\n"),
        (false, false) => (StatusCode::SERVICE_UNAVAILABLE, "not leading\n"),
    }
}

async fn only_with_token(State(site): SharedSite, request: Request, next: Next) -> Response {
    match &site.token {
        Some(token) if !token.is_shown_by(request.headers()) => {
            let challenge = [(WWW_AUTHENTICATE, r#"Basic realm="leaderelect", Bearer realm="leaderelect""#)];
            (StatusCode::UNAUTHORIZED, challenge, "show the token of --token-file\n").into_response()
        }
        _ => next.run(request).await,
    }
}

/// Nothing from elsewhere, into nothing elsewhere, and never from a cache.
const HEADERS: [(HeaderName, &str); 5] = [
    (CONTENT_SECURITY_POLICY, page::POLICY),
    (X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (X_FRAME_OPTIONS, "DENY"),
    (REFERRER_POLICY, "no-referrer"),
    (CACHE_CONTROL, "no-store"),
];

async fn with_headers(request: Request, next: Next) -> Response {
    let mut response = next.run(request).await;
    response.headers_mut().extend(HEADERS.map(|(name, value)| (name, HeaderValue::from_static(value))));
    response
}

#[cfg(test)]
mod tests;
