//! The kinds of requests that a store makes, and their errors.

use std::fmt::Display;

use bytes::Bytes;
use leaderelection::implement::{ConditionalStore, ConditionalStoreExt, Precondition, Version};
use leaderelection::{StoreError, StoreErrorKind};

#[derive(Clone, Copy, Debug)]
pub(crate) enum Call {
    Get,
    Create,
    Update,
    Delete,
    List,
}

use Call::{Create, Delete, Get, List, Update};

pub(crate) const CALLS: &[Call] = &[Get, Create, Update, Delete, List];
pub(crate) const READS: &[Call] = &[Get, List];
pub(crate) const WRITES: &[Call] = &[Create, Update, Delete];

impl Call {
    pub(crate) async fn on(self, store: &dyn ConditionalStore) -> Result<(), StoreError> {
        let body = Bytes::from_static(b"{}");
        // The version is a generation for Google, and an ETag for the other stores.
        let version = Version::new("7");
        match self {
            Get => store.get("key").await.map(drop),
            Create => store.put("key", body, &Precondition::Absent).await.map(drop),
            Update => store.put("key", body, &Precondition::Matches(version)).await.map(drop),
            Delete => store.delete("key", Some(&version)).await,
            List => store.list("key").await.map(drop),
        }
    }
}

/// Checks that each of `calls` fails: the error is of this kind, begins with the object's name, and contains
/// this advice.
pub(crate) async fn assert_fails(store: &dyn ConditionalStore, calls: &[Call], kind: StoreErrorKind, advice: &str) {
    for call in calls {
        let error = call.on(store).await.expect_err("an error");
        assert_error(&error, store, kind, advice, format!("{call:?}"));
    }
}

/// Checks that the error is of this kind, begins with the name of the object `key`, and contains this advice.
pub(crate) fn assert_error(
    error: &StoreError,
    store: &dyn ConditionalStore,
    kind: StoreErrorKind,
    advice: &str,
    cause: impl Display,
) {
    let (text, name) = (error.to_string(), store.describe("key"));
    assert_eq!(error.kind(), kind, "{cause}: {error:?}");
    assert!(text.starts_with(&format!("{name}: ")) && text.contains(advice), "{cause}: {text}");
}
