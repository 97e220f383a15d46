//! The routes and their answers.

use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};

use super::facts::Facts;
use super::page;
use super::snapshot::Snapshot;
use crate::http::{Token, site};
use crate::view::short;

type SharedFacts = State<Arc<Facts>>;

/// Creates the routes, with and without access control.
pub(super) fn routes(facts: Arc<Facts>, token: Option<Token>) -> Router {
    let guarded = Router::new().route("/", get(status)).route("/leader", get(leader)).route("/metrics", get(metrics));
    // Probes and load balancers can seldom present a token, and these answers contain little information.
    let open =
        Router::new().route("/healthz", get(healthz)).route("/readyz", get(readyz)).route("/leading", get(leading));
    site(guarded.with_state(Arc::clone(&facts)), open.with_state(facts), token)
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

#[cfg(test)]
mod tests;
