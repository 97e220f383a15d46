//! The routes and their answers.

use std::sync::Arc;

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

use super::facts::Facts;
use super::page;
use super::snapshot::Snapshot;
use crate::view::short;

type SharedFacts = State<Arc<Facts>>;

/// Creates the routes, with and without access control.
pub(super) fn routes(facts: Arc<Facts>) -> Router {
    let guarded = Router::new()
        .route("/", get(status))
        .route("/page.css", get(|| async { ([(CONTENT_TYPE, "text/css; charset=utf-8")], page::STYLE) }))
        .route("/page.js", get(|| async { ([(CONTENT_TYPE, "text/javascript; charset=utf-8")], page::SCRIPT) }))
        .route("/leader", get(leader))
        .route("/metrics", get(metrics))
        .route_layer(from_fn_with_state(Arc::clone(&facts), only_with_token));
    // Probes and load balancers can seldom present a token, and these answers contain little information.
    let open =
        Router::new().route("/healthz", get(healthz)).route("/readyz", get(readyz)).route("/leading", get(leading));
    guarded.merge(open).layer(from_fn(with_headers)).with_state(facts)
}

async fn status(State(facts): SharedFacts) -> Response {
    page::render(&facts).into_response()
}

async fn leader(State(facts): SharedFacts) -> Json<Snapshot> {
    Json(Snapshot::take(&facts.handle))
}

async fn metrics(State(facts): SharedFacts) -> impl IntoResponse {
    ([(CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], facts.metrics.render())
}

async fn healthz(State(facts): SharedFacts) -> (StatusCode, String) {
    match facts.health.check() {
        Ok(()) => (StatusCode::OK, "ok\n".to_owned()),
        Err(unhealthy) => (StatusCode::INTERNAL_SERVER_ERROR, format!("{unhealthy}\n")),
    }
}

async fn readyz(State(facts): SharedFacts) -> (StatusCode, String) {
    if facts.draining.is_cancelled() {
        return (StatusCode::SERVICE_UNAVAILABLE, "not ready: shutting down\n".to_owned());
    }
    let snapshot = Snapshot::take(&facts.handle);
    if snapshot.is_fresh(facts.ready_within) {
        return (StatusCode::OK, "ok\n".to_owned());
    }
    let problem = match snapshot.age {
        Some(age) => format!("not ready: the store last answered {} ago\n", short(age)),
        None => "not ready: the store has not answered yet, or has no lock yet\n".to_owned(),
    };
    (StatusCode::SERVICE_UNAVAILABLE, problem)
}

async fn leading(State(facts): SharedFacts) -> (StatusCode, &'static str) {
    match (facts.draining.is_cancelled(), facts.handle.is_leader()) {
        (true, _) => (StatusCode::SERVICE_UNAVAILABLE, "shutting down\n"),
        (false, true) => (StatusCode::OK, "leading\n"),
        (false, false) => (StatusCode::SERVICE_UNAVAILABLE, "not leading\n"),
    }
}

async fn only_with_token(State(facts): SharedFacts, request: Request, next: Next) -> Response {
    match &facts.token {
        Some(token) if !token.is_shown_by(request.headers()) => {
            let challenge = [(WWW_AUTHENTICATE, r#"Basic realm="leaderelect", Bearer realm="leaderelect""#)];
            (StatusCode::UNAUTHORIZED, challenge, "show the token of --token-file\n").into_response()
        }
        _ => next.run(request).await,
    }
}

/// Headers that forbid foreign content, embedding in other pages, and caching.
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
