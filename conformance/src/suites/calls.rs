//! The calls of the suite for stores, each with its required answer.

use std::sync::Arc;

use bytes::Bytes;
use leaderelection::{
    ConditionalStore, ListedObject, Precondition, StoreError, StoreErrorKind, Version, VersionedObject,
};
use tokio::time::sleep;

use super::clause::{ABSENT, DELETE, HONEST_ERRORS, broken, demand};
use crate::patience::patiently;
use crate::race::Refusal;

#[derive(Debug)]
pub(super) struct Suite<S> {
    pub(super) store: Arc<S>,
    pub(super) prefix: String,
}

impl<S: ConditionalStore> Suite<S> {
    /// Deletes everything under the prefix.
    pub(super) async fn clear(&self) {
        for ListedObject { key, .. } in self.list_objects(&self.prefix).await {
            // An object may already be gone: a deletion with an ambiguous answer may have taken effect since.
            if let Some(object) = self.get(&key).await {
                self.delete_object(&key, &object.version).await;
            }
        }
    }

    pub(super) fn key(&self, name: &str) -> String {
        format!("{}/{name}", self.prefix)
    }

    pub(super) async fn get(&self, key: &str) -> Option<VersionedObject> {
        patiently(sleep, || self.store.get(key)).await.unwrap_or_else(|error| self.failed("get", key, error))
    }

    pub(super) async fn list_objects(&self, prefix: &str) -> Vec<ListedObject> {
        patiently(sleep, || self.store.list(prefix)).await.unwrap_or_else(|error| self.failed("list", prefix, error))
    }

    pub(super) async fn put(&self, key: &str, body: impl Into<Bytes>, precondition: &Precondition) -> Version {
        let body = body.into();
        patiently(sleep, || self.store.put(key, body.clone(), precondition))
            .await
            .unwrap_or_else(|error| self.failed("put", key, error))
    }

    pub(super) async fn delete_object(&self, key: &str, version: &Version) {
        patiently(sleep, || self.store.delete(key, version))
            .await
            .unwrap_or_else(|error| self.failed("delete", key, error));
    }

    /// Requires a put to fail as `kind`; `what` describes the put to the reader.
    pub(super) async fn put_refused(
        &self,
        key: &str,
        body: impl Into<Bytes>,
        precondition: &Precondition,
        (kind, what, clause): (StoreErrorKind, &str, &'static str),
    ) {
        let body = body.into();
        let answer = patiently(sleep, || self.store.put(key, body.clone(), precondition)).await;
        self.refused(key, answer.map(drop), (kind, what, clause));
    }

    pub(super) async fn delete_refused(&self, key: &str, version: &Version, what: &str) {
        let answer = patiently(sleep, || self.store.delete(key, version)).await;
        self.refused(key, answer, (StoreErrorKind::Conflict, what, DELETE));
    }

    fn refused(
        &self,
        key: &str,
        answer: Result<(), StoreError>,
        (kind, what, clause): (StoreErrorKind, &str, &'static str),
    ) {
        match answer {
            Ok(()) => broken(&self.store.describe(key), format!("{what} was accepted"), clause),
            Err(error) => {
                let what = format!("{what} was answered {:?} ({error}) and not {kind:?}", error.kind());
                demand(error.kind() == kind, &self.store.describe(key), what, clause);
            }
        }
    }

    /// Requires the object at `key` to be `body` at `version`; `after` describes the preceding call.
    pub(super) async fn expect(&self, key: &str, body: &[u8], version: &Version, after: &str, clause: &'static str) {
        let object = self.store.describe(key);
        let Some(found) = self.get(key).await else { broken(&object, format!("{after}, there is no object"), clause) };
        demand(found.body == body, &object, format!("{after}, it holds another body"), clause);
        let what = format!("{after}, its version is {} and not {version}", found.version);
        demand(found.version == *version, &object, what, clause);
    }

    pub(super) async fn expect_none(&self, key: &str, after: &str) {
        let found = self.get(key).await;
        demand(found.is_none(), &self.store.describe(key), format!("{after}, there is an object"), ABSENT);
    }

    fn failed(&self, call: &str, key: &str, error: StoreError) -> ! {
        let refusal = Refusal::from(error);
        broken(&self.store.describe(key), format!("`{call}` must succeed here: {refusal:?}"), HONEST_ERRORS)
    }
}
