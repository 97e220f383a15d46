//! The routes and their answers.

use std::sync::Arc;

use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use axum::http::StatusCode;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};

use super::facts::Facts;
use super::page;
use super::snapshot::Snapshot;
use super::wait::Wait;
use crate::cause::Cause;
use crate::lock::view::short;
use crate::pages::http::{Token, framed, site};

type SharedFacts = State<Arc<Facts>>;

/// Creates the routes, with and without access control.
pub(super) fn routes(facts: Arc<Facts>, token: Option<Token>) -> Router {
    let guarded = Router::new().route("/", get(status)).route("/leader", get(leader)).route("/metrics", get(metrics));
    site(guarded.with_state(Arc::clone(&facts)), open().with_state(facts), token)
}

/// Creates the routes of --probe-listen, which everybody may ask.
pub(super) fn probes(facts: Arc<Facts>) -> Router {
    framed(open().route("/metrics", get(metrics)).with_state(facts))
}

/// Probes and load balancers can seldom present a token, and these answers contain little information.
fn open() -> Router<Arc<Facts>> {
    Router::new().route("/healthz", get(healthz)).route("/readyz", get(readyz)).route("/leading", get(leading))
}

async fn status(State(facts): SharedFacts) -> Response {
    page::render(&facts).into_response()
}

async fn leader(State(facts): SharedFacts, query: Result<Query<Wait>, QueryRejection>) -> Response {
    match query {
        Ok(Query(wait)) => Json(wait.leader(&facts.handle, &facts.shutdown).await).into_response(),
        Err(error) => (StatusCode::BAD_REQUEST, format!("{}\n", error.body_text())).into_response(),
    }
}

async fn metrics(State(facts): SharedFacts) -> impl IntoResponse {
    ([(CONTENT_TYPE, super::metrics::CONTENT)], facts.metrics.render())
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
        let clash = "another process leads under the identity of this one: give every process an identity of its own\n";
        return (StatusCode::OK, format!("ok\n{}", if snapshot.of_namesake { clash } else { "" }));
    }
    // Everybody may ask, so the store's own words are left to the page and the log.
    let cause = snapshot.trouble.as_ref().map(|error| Cause::of(error.kind));
    let problem = match (cause, snapshot.age) {
        (Some(cause), Some(age)) => {
            format!("{cause}, and was last of use {} ago; the page and the log say why", short(age))
        }
        (Some(cause), None) => format!("{cause}; the page and the log say why"),
        (None, Some(age)) => format!("the store last answered {} ago", short(age)),
        (None, None) => "the store has not answered yet, or has no lock yet".to_owned(),
    };
    (StatusCode::SERVICE_UNAVAILABLE, format!("not ready: {problem}\n"))
}

async fn leading(State(facts): SharedFacts) -> Response {
    let remaining = facts.handle.status().remaining;
    match (facts.draining.is_cancelled(), remaining.is_zero()) {
        (true, _) => (StatusCode::SERVICE_UNAVAILABLE, "shutting down\n").into_response(),
        (false, true) => (StatusCode::SERVICE_UNAVAILABLE, "not leading\n").into_response(),
        (false, false) => {
            // A signal may end leadership after the drain.
            let good_for = remaining.min(facts.drain);
            let max_age = format!("max-age={}", good_for.as_secs());
            let text = format!("leading\ngood for {:.3} seconds\n", good_for.as_secs_f64());
            ([(CACHE_CONTROL, max_age)], text).into_response()
        }
    }
}

#[cfg(test)]
mod tests;
