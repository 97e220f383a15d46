//! The notes of all requests, and the verbs that the server refuses.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use axum::extract::{Request, State};
use axum::http::Method;
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};

use super::objects::NAMESPACE;
use super::status::{self, Failure};
use crate::mutex::lock;

#[derive(Debug, Default)]
pub(super) struct Audit {
    pub(super) requests: Mutex<Vec<String>>,
    pub(super) denied: Mutex<BTreeSet<&'static str>>,
    pub(super) permissions_used: Mutex<BTreeSet<String>>,
}

/// Refuses a request if its verb is denied, or if it is in the name of another user: no other user has a role. Nothing is
/// written into a namespace that does not exist.
pub(super) async fn authorize(State(audit): State<Arc<Audit>>, request: Request, next: Next) -> Response {
    let path: Vec<&str> = request.uri().path().split('/').collect();
    let Some(("namespaces", [namespace, plural, name @ ..])) =
        path.iter().position(|part| *part == "namespaces").map(|at| (path[at], &path[at + 1..]))
    else {
        return next.run(request).await;
    };
    let watches = request.uri().query().is_some_and(|query| query.contains("watch="));
    let verb = match *request.method() {
        Method::GET if !name.is_empty() => "get",
        Method::GET if watches => "watch",
        Method::GET => "list",
        Method::POST => "create",
        Method::PUT => "update",
        Method::DELETE => "delete",
        _ => "patch",
    };
    let permission = format!("{verb} {plural}");
    let is_denied = [verb, &*permission].into_iter().any(|denied| lock(&audit.denied).contains(denied));
    if is_denied || request.headers().contains_key("impersonate-user") {
        return status::forbidden(plural, verb).into_response();
    }
    if *namespace != NAMESPACE && verb == "create" {
        return Failure::not_found("namespaces", namespace).into_response();
    }
    lock(&audit.permissions_used).insert(permission);
    next.run(request).await
}
