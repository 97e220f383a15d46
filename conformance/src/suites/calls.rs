//! The calls of the suite for stores, each with its required answer.

use std::sync::Arc;

use bytes::Bytes;
use leaderelection::store::{ListedObject, ListedPage, PageToken};
use leaderelection::{ConditionalStore, Precondition, StoreError, StoreErrorKind, Version, VersionedObject};
use tokio::time::sleep;

use super::clause::{ABSENT, DELETE, HONEST_ERRORS, broken, demand};
use crate::patience::patiently;
use crate::race::Refusal;

#[derive(Debug)]
pub(super) struct Suite<S> {
    pub(super) store: Arc<S>,
    pub(super) prefix: String,
    /// The store can delete by a version. No election needs that.
    pub(super) deletes: bool,
}

impl<S: ConditionalStore> Suite<S> {
    /// Deletes everything under the prefix.
    pub(super) async fn clear(&self) {
        for ListedObject { key, .. } in self.list_objects(&self.prefix).await {
            self.discard(&key).await;
        }
    }

    /// Finds out whether the store can delete by a version. A store that cannot must say so, and delete nothing.
    pub(super) async fn try_to_delete(&mut self) {
        let key = &self.key("deletable");
        let version = self.put(key, "deletable", &Precondition::Absent).await;
        match patiently(sleep, || self.store.delete(key, &version)).await {
            Ok(()) => self.expect_none(key, "after its deletion").await,
            Err(error) if error.kind() == StoreErrorKind::Fatal => {
                self.deletes = false;
                self.expect(key, b"deletable", &version, "after a refused deletion", DELETE).await;
                self.discard(key).await;
                self.expect_none(key, "after it was discarded").await;
            }
            Err(error) => self.failed("delete", key, error),
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

    /// Lists a page of two objects, if the store can give so few.
    pub(super) async fn list_page(&self, prefix: &str, token: Option<&PageToken>) -> ListedPage {
        patiently(sleep, || self.store.list_page(prefix, token, Some(2)))
            .await
            .unwrap_or_else(|error| self.failed("list a page of", prefix, error))
    }

    pub(super) async fn put(&self, key: &str, body: impl Into<Bytes>, precondition: &Precondition) -> Version {
        let body = body.into();
        patiently(sleep, || self.store.put(key, body.clone(), precondition))
            .await
            .unwrap_or_else(|error| self.failed("put", key, error))
    }

    /// Deletes an object that has this version.
    pub(super) async fn delete_object(&self, key: &str, version: &Version) {
        if !self.deletes {
            return self.discard(key).await;
        }
        patiently(sleep, || self.store.delete(key, version))
            .await
            .unwrap_or_else(|error| self.failed("delete", key, error));
    }

    async fn discard(&self, key: &str) {
        patiently(sleep, || self.store.discard(key)).await.unwrap_or_else(|error| self.failed("discard", key, error));
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
        let kind = if self.deletes { StoreErrorKind::Conflict } else { StoreErrorKind::Fatal };
        self.refused(key, answer, (kind, what, DELETE));
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
