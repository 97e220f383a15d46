//! The changes of the objects of one kind, and the watches that follow them.

use std::convert::Infallible;
use std::sync::Arc;

use axum::body::{Body, Bytes};
use futures_util::stream;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Collection, lock};

/// A change of one object.
#[derive(Debug)]
pub(super) struct Change {
    pub(super) before: Option<Value>,
    pub(super) after: Option<Value>,
}

/// Labels with the values that an object must have: `key=value,…`. Empty matches every object.
#[derive(Clone, Debug, Default, Deserialize)]
pub(super) struct Selector(String);

impl Selector {
    pub(super) fn matches(&self, object: &Value) -> bool {
        let has = |wanted: &str| {
            wanted.split_once('=').is_some_and(|(label, value)| object["metadata"]["labels"][label] == value)
        };
        self.0.is_empty() || self.0.split(',').all(has)
    }
}

impl Change {
    /// The event of a watch with this selector.
    fn event(&self, selector: &Selector) -> Option<Value> {
        let before = self.before.as_ref().filter(|object| selector.matches(object));
        let after = self.after.as_ref().filter(|object| selector.matches(object));
        let (what, object) = match (before, after) {
            (None, None) => return None,
            (None, Some(after)) => ("ADDED", after),
            (Some(_), Some(after)) => ("MODIFIED", after),
            (Some(before), None) => ("DELETED", self.after.as_ref().unwrap_or(before)),
        };
        Some(json!({"type": what, "object": object}))
    }
}

/// The answer to a watch: the changes after a revision, one per line, for as long as the client listens.
pub(super) fn watch(collection: Arc<Collection>, selector: Selector, revision: usize) -> Body {
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
