//! A store whose requests wait until they are let through, one at a time.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use leaderelection::implement::{ConditionalStore, ListedPage, PageToken, Precondition, Version, VersionedObject};
use leaderelection::{StoreError, StoreErrorKind};
use tokio::sync::{mpsc, oneshot};
use tokio::time::sleep;

use crate::patience::patiently;

/// A leader's way to the store.
#[derive(Debug)]
pub(super) struct Gated<S> {
    store: Arc<S>,
    requests: mpsc::UnboundedSender<Request>,
}

/// The requests of one leader, in their order; the channel closes when the leader has finished.
pub(super) type Requests = mpsc::UnboundedReceiver<Request>;

/// A waiting request.
#[derive(Debug)]
pub(super) struct Request {
    /// The write; `None` for a read.
    pub(super) write: Option<Write>,
    pub(super) passage: oneshot::Sender<Passage>,
}

#[derive(Clone, Debug)]
pub(super) struct Write {
    key: String,
    body: Bytes,
    precondition: Precondition,
}

/// The network's treatment of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Passage {
    Good,
    LosesTheAnswer,
    LosesTheRequest,
}

impl Write {
    /// Performs the write.
    pub(super) async fn on(&self, store: &impl ConditionalStore) -> Result<Version, StoreError> {
        patiently(sleep, || store.put(&self.key, self.body.clone(), &self.precondition)).await
    }
}

impl<S> Gated<S> {
    pub(super) fn new(store: &Arc<S>) -> (Self, Requests) {
        let (requests, waiting) = mpsc::unbounded_channel();
        (Self { store: Arc::clone(store), requests }, waiting)
    }

    async fn pass(&self, write: Option<Write>) -> Passage {
        let (passage, answer) = oneshot::channel();
        // Without a receiver, the check has failed, and no task waits for this leader.
        self.requests.send(Request { write, passage }).ok();
        answer.await.unwrap_or(Passage::LosesTheRequest)
    }
}

#[async_trait]
impl<S: ConditionalStore> ConditionalStore for Gated<S> {
    async fn get(&self, key: &str) -> Result<Option<VersionedObject>, StoreError> {
        self.pass(None).await;
        patiently(sleep, || self.store.get(key)).await
    }

    async fn put(&self, key: &str, body: Bytes, precondition: &Precondition) -> Result<Version, StoreError> {
        let write = Write { key: key.to_owned(), body, precondition: precondition.clone() };
        let lost = || StoreError::new(StoreErrorKind::Ambiguous, "the check has lost the answer");
        match self.pass(Some(write.clone())).await {
            Passage::Good => write.on(&self.store).await,
            Passage::LosesTheAnswer => {
                write.on(&self.store).await.ok();
                Err(lost())
            }
            Passage::LosesTheRequest => Err(lost()),
        }
    }

    async fn delete(&self, key: &str, expected: Option<&Version>) -> Result<(), StoreError> {
        self.store.delete(key, expected).await
    }

    async fn list_page(
        &self,
        prefix: &str,
        token: Option<&PageToken>,
        limit: Option<u16>,
    ) -> Result<ListedPage, StoreError> {
        self.store.list_page(prefix, token, limit).await
    }

    fn describe(&self, key: &str) -> String {
        self.store.describe(key)
    }

    fn min_write_interval(&self) -> Option<Duration> {
        self.store.min_write_interval()
    }
}
