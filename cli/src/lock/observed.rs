//! A store whose requests somebody observes.

use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use leaderelection::StoreError;
use leaderelection::clock::{Clock as _, LocalInstant, SystemClock};
use leaderelection::implement::{
    ConditionalStore, ListedPage, PageToken, Precondition, Version, VersionedObject, async_trait,
};

/// Somebody who is told of requests.
pub(crate) trait Observer: Debug + Send + Sync + 'static {
    fn see(&self, request: &Request<'_>, moment: Moment<'_>);
}

#[derive(Debug)]
pub(crate) struct Request<'a> {
    pub(crate) kind: &'static str,
    pub(crate) key: &'a str,
    /// The name of the object for people.
    pub(crate) object: String,
    pub(crate) sent_at: LocalInstant,
}

impl Request<'_> {
    pub(crate) fn took(&self) -> Duration {
        SystemClock.now().saturating_since(self.sent_at)
    }
}

/// A moment of a request.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Moment<'a> {
    Sent,
    Answered(Result<(), &'a StoreError>),
    /// The request was dropped without an answer, because its time is over.
    GivenUp,
}

#[derive(Debug)]
pub(crate) struct Observed<O> {
    store: Arc<dyn ConditionalStore>,
    observer: O,
}

struct Pending<'a, O: Observer> {
    observer: &'a O,
    request: Request<'a>,
    answered: bool,
}

impl<O: Observer> Drop for Pending<'_, O> {
    fn drop(&mut self) {
        if !self.answered {
            self.observer.see(&self.request, Moment::GivenUp);
        }
    }
}

impl<O: Observer> Observed<O> {
    pub(crate) fn new(store: Arc<dyn ConditionalStore>, observer: O) -> Self {
        Self { store, observer }
    }

    pub(crate) async fn observe<T>(
        &self,
        kind: &'static str,
        key: &str,
        call: impl Future<Output = Result<T, StoreError>>,
    ) -> Result<T, StoreError> {
        let request = Request { kind, key, object: self.store.describe(key), sent_at: SystemClock.now() };
        self.observer.see(&request, Moment::Sent);
        let mut pending = Pending { observer: &self.observer, request, answered: false };
        let answer = call.await;
        pending.answered = true;
        self.observer.see(&pending.request, Moment::Answered(answer.as_ref().map(drop)));
        answer
    }
}

#[async_trait]
impl<O: Observer> ConditionalStore for Observed<O> {
    async fn get(&self, key: &str) -> Result<Option<VersionedObject>, StoreError> {
        self.observe("get", key, self.store.get(key)).await
    }

    async fn put(&self, key: &str, body: Bytes, precondition: &Precondition) -> Result<Version, StoreError> {
        self.observe("put", key, self.store.put(key, body, precondition)).await
    }

    async fn delete(&self, key: &str, expected: Option<&Version>) -> Result<(), StoreError> {
        self.observe("delete", key, self.store.delete(key, expected)).await
    }

    async fn list_page(
        &self,
        prefix: &str,
        token: Option<&PageToken>,
        limit: Option<u16>,
    ) -> Result<ListedPage, StoreError> {
        self.observe("list", prefix, self.store.list_page(prefix, token, limit)).await
    }

    fn describe(&self, key: &str) -> String {
        self.store.describe(key)
    }

    fn min_write_interval(&self) -> Option<Duration> {
        self.store.min_write_interval()
    }
}
