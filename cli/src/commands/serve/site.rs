//! The routes and their answers.

use std::sync::Arc;

use axum::extract::rejection::{JsonRejection, QueryRejection};
use axum::extract::{Query, State};
use axum::http::StatusCode;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::response::sse::{KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, get, post};
use axum::{Json, Router};

use super::events;
use super::facts::Facts;
use super::page;
use super::program::{TermReport, Work};
use super::snapshot::{Published, Snapshot};
use super::wait::Wait;
use crate::lock::status::LockStatus;
use crate::lock::view::short;
use crate::output::escape::plain_json;
use crate::pages::http::{Token, framed, site};

type SharedFacts = State<Arc<Facts>>;

/// The description of all answers, for generators of clients.
const OPENAPI: &str = include_str!("openapi.json");

type Routes<const N: usize> = [(&'static str, MethodRouter<Arc<Facts>>); N];

/// Creates the routes, with and without access control.
pub(super) fn routes(facts: Arc<Facts>, token: Option<Token>) -> Router {
    let guarded = router(guarded()).with_state(Arc::clone(&facts));
    site(guarded, router(open()).with_state(facts), token)
}

/// Creates the routes of --probe-listen, which everybody may ask.
pub(super) fn probes(facts: Arc<Facts>) -> Router {
    framed(router(open()).route("/metrics", get(metrics)).with_state(facts))
}

fn router<const N: usize>(routes: Routes<N>) -> Router<Arc<Facts>> {
    routes.into_iter().fold(Router::new(), |router, (path, route)| router.route(path, route))
}

fn guarded() -> Routes<6> {
    [
        ("/", get(status)),
        ("/leader", get(leader)),
        ("/events", get(changes)),
        ("/term", post(term)),
        ("/metrics", get(metrics)),
        ("/openapi.json", get(async || ([(CONTENT_TYPE, "application/json")], OPENAPI))),
    ]
}

/// Probes and load balancers can seldom present a token, and these answers contain little information.
fn open() -> Routes<3> {
    [("/healthz", get(healthz)), ("/readyz", get(readyz)), ("/leading", get(leading))]
}

async fn status(State(facts): SharedFacts) -> Response {
    page::render(&facts).into_response()
}

async fn leader(State(facts): SharedFacts, query: Result<Query<Wait>, QueryRejection>) -> Response {
    match query {
        Ok(Query(wait)) => {
            facts.program.asks();
            let snapshot = wait.leader(&facts.handle, &facts.shutdown).await;
            json(&facts.told_of(snapshot))
        }
        Err(error) => (StatusCode::BAD_REQUEST, format!("{}\n", error.body_text())).into_response(),
    }
}

async fn changes(State(facts): SharedFacts) -> impl IntoResponse {
    facts.program.asks();
    Sse::new(events::stream(facts)).keep_alive(KeepAlive::default())
}

/// The program reports about its work. A page of another site cannot: only JSON is read.
async fn term(State(facts): SharedFacts, report: Result<Json<TermReport>, JsonRejection>) -> Response {
    let Json(report) = match report {
        Ok(report) => report,
        Err(error) => return (error.status(), format!("{}\n", error.body_text())).into_response(),
    };
    facts.program.asks();
    if !facts.program.accepts(&report, &facts.handle).await {
        return (StatusCode::CONFLICT, json(&facts.told())).into_response();
    }
    if report.work != Work::Running {
        // The release may fail, and then nobody leads before the end of the lease.
        let _late = tokio::time::timeout(facts.timings.lease_duration(), released(&facts)).await;
    }
    json(&facts.told())
}

/// Names of others may have characters that a terminal interprets.
fn json(told: &Published) -> Response {
    let text = serde_json::to_string(told).map(|text| plain_json(&text));
    text.map(|text| ([(CONTENT_TYPE, "application/json")], text))
        .map_err(|_| StatusCode::INTERNAL_SERVER_ERROR)
        .into_response()
}

/// Completes when this process does not hold the lease.
async fn released(facts: &Facts) {
    let mut handle = facts.handle.clone();
    while handle.holder().is_some_and(|holder| holder == handle.identity()) && handle.changed().await.is_ok() {}
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
    // The store has answered within a lease.
    if snapshot.is_fresh(facts.timings.lease_duration()) {
        let step = LockStatus::DuplicateIdentity.next_step().filter(|_| snapshot.of_duplicate);
        let duplicate = step.map(|step| format!("another process leads with the same identity; {step}\n"));
        return (StatusCode::OK, format!("ok\n{}", duplicate.unwrap_or_default()));
    }
    // Everybody may ask, so the store's own words are left to the page and the log.
    let since = snapshot.age.map(|age| format!("; it last answered {} ago", short(age))).unwrap_or_default();
    (StatusCode::SERVICE_UNAVAILABLE, format!("not ready: {}{since}; see the page and the log\n", snapshot.cause()))
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
