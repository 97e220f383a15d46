//! A store that logs every request. An elector logs its own requests.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use leaderelection::causes::with_causes;
use leaderelection::clock::{Clock as _, LocalInstant, SystemClock};
use leaderelection::store::{ListedObject, ListedPage, PageToken};
use leaderelection::{
    ConditionalStore, Precondition, StoreError, StoreErrorKind, Version, VersionedObject, async_trait,
};

/// Logs the requests to a store, with their answers and times.
#[derive(Debug)]
pub(crate) struct Logged(Arc<dyn ConditionalStore>);

impl Logged {
    pub(crate) fn new(store: Arc<dyn ConditionalStore>) -> Self {
        Self(store)
    }

    async fn log<T>(
        &self,
        request: &'static str,
        key: &str,
        call: impl Future<Output = Result<T, StoreError>>,
    ) -> Result<T, StoreError> {
        let mut pending =
            Pending { request, object: self.0.describe(key), sent_at: SystemClock.now(), answered: false };
        tracing::debug!(request, object = pending.object, "asking the store");
        let answer = call.await;
        pending.answered(answer.as_ref().err());
        answer
    }
}

/// A request without an answer. It may be dropped before there is one, because its time is over.
struct Pending {
    request: &'static str,
    object: String,
    sent_at: LocalInstant,
    answered: bool,
}

impl Pending {
    fn answered(&mut self, error: Option<&StoreError>) {
        self.answered = true;
        let (request, object, took) = (self.request, &self.object, self.took());
        match error {
            None => tracing::debug!(request, object, ?took, "the store answered"),
            Some(error) if error.kind() == StoreErrorKind::Conflict => {
                tracing::debug!(request, object, ?took, error = with_causes(error), "the condition does not hold");
            }
            Some(error) => tracing::info!(request, object, ?took, error = with_causes(error), "a request failed"),
        }
    }

    fn took(&self) -> Duration {
        SystemClock.now().saturating_since(self.sent_at)
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        if !self.answered {
            tracing::info!(self.request, self.object, took = ?self.took(), "a request is given up without an answer");
        }
    }
}

#[async_trait]
impl ConditionalStore for Logged {
    async fn get(&self, key: &str) -> Result<Option<VersionedObject>, StoreError> {
        self.log("get", key, self.0.get(key)).await
    }

    async fn put(&self, key: &str, body: Bytes, precondition: &Precondition) -> Result<Version, StoreError> {
        self.log("put", key, self.0.put(key, body, precondition)).await
    }

    async fn delete(&self, key: &str, expected: &Version) -> Result<(), StoreError> {
        self.log("delete", key, self.0.delete(key, expected)).await
    }

    async fn discard(&self, key: &str) -> Result<(), StoreError> {
        self.log("discard", key, self.0.discard(key)).await
    }

    async fn list(&self, prefix: &str) -> Result<Vec<ListedObject>, StoreError> {
        self.log("list", prefix, self.0.list(prefix)).await
    }

    async fn list_page(
        &self,
        prefix: &str,
        token: Option<&PageToken>,
        at_most: Option<u16>,
    ) -> Result<ListedPage, StoreError> {
        self.log("list", prefix, self.0.list_page(prefix, token, at_most)).await
    }

    fn describe(&self, key: &str) -> String {
        self.0.describe(key)
    }

    fn has_unique_versions(&self) -> bool {
        self.0.has_unique_versions()
    }

    fn min_write_interval(&self) -> Option<Duration> {
        self.0.min_write_interval()
    }
}
