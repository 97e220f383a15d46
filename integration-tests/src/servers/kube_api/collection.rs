//! The ConfigMaps behind HTTP.

use std::convert::Infallible;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use futures_util::stream;
use serde_json::Value;
use tokio::sync::watch;

use super::changes::Selector;
use super::objects::{Listing, NAMESPACE, Objects};
use super::status::{self, Failure};
use crate::mutex::lock;

const PATH: &str = "/api/v1/namespaces/{namespace}/configmaps";

#[derive(Debug, Default)]
pub(super) struct Collection {
    pub(super) objects: Mutex<Objects>,
    /// Told of every change.
    pub(super) changed: watch::Sender<()>,
}

impl Collection {
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
        Router::new()
            .route(PATH, get(list).post(create))
            .route(&format!("{PATH}/{{name}}"), get(read).put(update).delete(delete))
            .with_state(Arc::clone(self))
    }
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
    answer(StatusCode::OK, status::json(&body).and_then(update))
}

async fn delete(
    State(collection): State<Arc<Collection>>,
    Path((namespace, name)): Path<(String, String)>,
) -> Response {
    answer(StatusCode::OK, collection.change(|objects| objects.delete(&namespace, &name)))
}

fn answer(status: StatusCode, result: Result<Value, Failure>) -> Response {
    match result {
        Ok(value) => (status, axum::Json(value)).into_response(),
        Err(failure) => failure.into_response(),
    }
}
