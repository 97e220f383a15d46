//! The objects of one kind behind HTTP, and what a test reads and writes without a connection.

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
use super::objects::{Kind, Listing, NAMESPACE, Objects};
use super::status::{self, Failure};
use crate::mutex::lock;

/// The objects of one kind in the namespace of the tests.
#[derive(Debug)]
pub struct Collection {
    objects: Mutex<Objects>,
    /// Told of every change.
    changed: watch::Sender<()>,
}

impl Collection {
    pub(super) fn new(kind: Kind) -> Arc<Self> {
        Arc::new(Self { objects: Mutex::new(Objects::new(kind)), changed: watch::Sender::default() })
    }

    /// Returns an object as the server has it.
    #[must_use]
    pub fn read(&self, name: &str) -> Option<Value> {
        lock(&self.objects).read(NAMESPACE, name).ok()
    }

    /// Returns all objects, by name.
    #[must_use]
    pub fn all(&self) -> Vec<Value> {
        lock(&self.objects).all()
    }

    /// Returns everything that an object has been, oldest first.
    #[must_use]
    pub fn history(&self, name: &str) -> Vec<Value> {
        lock(&self.objects).history(name)
    }

    /// Creates an object, or replaces it whatever is there.
    ///
    /// # Panics
    ///
    /// If the object is invalid.
    pub fn put(&self, name: &str, object: Value) {
        let put = |objects: &mut Objects| match objects.create(NAMESPACE, object.clone()) {
            Err(_) => objects.update(NAMESPACE, name, object),
            created => created,
        };
        self.change(put).expect("a valid object");
    }

    /// Waits until the objects have changed so that `wanted` has a value.
    ///
    /// # Panics
    ///
    /// Never: the sender of changes is here.
    pub async fn when<T>(&self, mut wanted: impl FnMut(&Self) -> Option<T>) -> T {
        let mut changed = self.changed.subscribe();
        loop {
            if let Some(found) = wanted(self) {
                return found;
            }
            changed.changed().await.expect("this holds the sender");
        }
    }

    fn change<T>(&self, change: impl FnOnce(&mut Objects) -> T) -> T {
        let result = change(&mut lock(&self.objects));
        self.changed.send_replace(());
        result
    }

    pub(super) fn routes(self: &Arc<Self>) -> Router {
        let path = format!("/api/v1/namespaces/{{namespace}}/{}", lock(&self.objects).plural());
        Router::new()
            .route(&path, get(list).post(create))
            .route(&format!("{path}/{{name}}"), get(read).put(update).patch(patch).delete(delete))
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

async fn patch(
    State(collection): State<Arc<Collection>>,
    Path((namespace, name)): Path<(String, String)>,
    body: Bytes,
) -> Response {
    let patch = |patch| collection.change(|objects| objects.patch(&namespace, &name, patch));
    answer(StatusCode::OK, status::json(&body).and_then(patch))
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
