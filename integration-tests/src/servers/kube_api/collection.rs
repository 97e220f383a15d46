//! The objects of one kind behind HTTP.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{Path, Query, Request, State};
use axum::http::{Method, StatusCode};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use futures_util::stream;
use serde_json::Value;
use tokio::sync::watch;

use super::changes::Selector;
use super::kinds::Kind;
use super::objects::{Listing, NAMESPACE, Objects};
use super::status::{self, Failure};
use crate::mutex::lock;

/// The notes of all requests, and the verbs that the server refuses.
#[derive(Debug, Default)]
pub(super) struct Audit {
    pub(super) requests: Mutex<Vec<String>>,
    pub(super) denied: Mutex<BTreeSet<&'static str>>,
    pub(super) permissions_used: Mutex<BTreeSet<String>>,
}

#[derive(Debug)]
pub(super) struct Collection {
    kind: &'static Kind,
    pub(super) objects: Mutex<Objects>,
    /// Told of every change.
    pub(super) changed: watch::Sender<()>,
    audit: Arc<Audit>,
}

impl Collection {
    pub(super) fn new(kind: &'static Kind, audit: Arc<Audit>) -> Arc<Self> {
        Arc::new(Self { kind, objects: Mutex::new(Objects::of(kind)), changed: watch::Sender::default(), audit })
    }

    /// An object of the namespace of the tests.
    pub(super) fn read(&self, name: &str) -> Option<Value> {
        lock(&self.objects).read(NAMESPACE, name).ok()
    }

    pub(super) fn change<T>(&self, change: impl FnOnce(&mut Objects) -> T) -> T {
        let result = change(&mut lock(&self.objects));
        self.changed.send_replace(());
        result
    }

    pub(super) fn routes(self: &Arc<Self>) -> Router {
        let path = self.kind.path();
        Router::new()
            .route(&path, get(list).post(create))
            .route(&format!("{path}/{{name}}"), get(read).put(update).delete(delete))
            .route_layer(middleware::from_fn_with_state(Arc::clone(self), authorize))
            .with_state(Arc::clone(self))
    }
}

/// Refuses a request if its verb is denied, or if it is in the name of another user: no other user has a role.
async fn authorize(
    State(collection): State<Arc<Collection>>,
    Query(listing): Query<Listing>,
    request: Request,
    next: Next,
) -> Response {
    let is_about_one = request.uri().path().rsplit('/').next() != Some(collection.kind.plural);
    let verb = match *request.method() {
        Method::GET if is_about_one => "get",
        Method::GET if listing.watch => "watch",
        Method::GET => "list",
        Method::POST => "create",
        Method::PUT => "update",
        Method::DELETE => "delete",
        _ => "patch",
    };
    if lock(&collection.audit.denied).contains(verb) || request.headers().contains_key("impersonate-user") {
        return status::forbidden(collection.kind, verb).into_response();
    }
    lock(&collection.audit.permissions_used).insert(format!("{verb} {}", collection.kind.plural));
    next.run(request).await
}

async fn list(
    State(collection): State<Arc<Collection>>,
    Path(namespace): Path<String>,
    Query(listing): Query<Listing>,
) -> Response {
    if !listing.watch {
        return answer(StatusCode::OK, Ok(lock(&collection.objects).list(&namespace, &listing)));
    }
    match listing.resource_version.as_deref().unwrap_or_default().parse() {
        Ok(revision) => changes(collection, listing.label_selector, revision).into_response(),
        Err(_) => Failure::bad_request("this server watches from a resourceVersion").into_response(),
    }
}

/// The answer to a watch: the changes after a revision, one per line, for as long as the client listens.
fn changes(collection: Arc<Collection>, selector: Selector, revision: usize) -> Body {
    let changed = collection.changed.subscribe();
    Body::from_stream(stream::unfold((collection, selector, revision, changed), |state| async move {
        let (collection, selector, mut revision, mut changed) = state;
        loop {
            changed.borrow_and_update();
            let event = lock(&collection.objects).change_after(revision).map(|change| change.event(&selector));
            match event {
                Some(event) => {
                    revision += 1;
                    if let Some(event) = event {
                        let line = Bytes::from(format!("{event}\n"));
                        return Some((Ok::<_, Infallible>(line), (collection, selector, revision, changed)));
                    }
                }
                None => changed.changed().await.ok()?,
            }
        }
    }))
}

async fn create(State(collection): State<Arc<Collection>>, Path(namespace): Path<String>, body: Bytes) -> Response {
    let create = |object| collection.change(|objects| objects.create(&namespace, object));
    answer(StatusCode::CREATED, status::json(&body).and_then(create))
}

async fn read(State(collection): State<Arc<Collection>>, Path((namespace, name)): Path<(String, String)>) -> Response {
    answer(StatusCode::OK, lock(&collection.objects).read(&namespace, &name))
}

async fn update(
    State(collection): State<Arc<Collection>>,
    Path((namespace, name)): Path<(String, String)>,
    body: Bytes,
) -> Response {
    let update = |object| collection.change(|objects| objects.update(&namespace, &name, object));
    match status::json(&body).and_then(update) {
        Ok((object, true)) => answer(StatusCode::CREATED, Ok(object)),
        Ok((object, false)) => answer(StatusCode::OK, Ok(object)),
        Err(failure) => failure.into_response(),
    }
}

async fn delete(
    State(collection): State<Arc<Collection>>,
    Path((namespace, name)): Path<(String, String)>,
    body: Bytes,
) -> Response {
    let options = if body.is_empty() { Ok(Value::Null) } else { status::json(&body) };
    let delete = |options| collection.change(|objects| objects.delete(&namespace, &name, &options));
    answer(StatusCode::OK, options.and_then(delete))
}

fn answer(status: StatusCode, result: Result<Value, Failure>) -> Response {
    match result {
        Ok(value) => (status, axum::Json(value)).into_response(),
        Err(failure) => failure.into_response(),
    }
}
