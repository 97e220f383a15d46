//! The changes of the objects of one kind, as the watches tell them.

use serde::Deserialize;
use serde_json::{Value, json};

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
    pub(super) fn event(&self, selector: &Selector) -> Option<Value> {
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
