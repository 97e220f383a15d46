//! Any store of the `object_store` crate.

use std::fmt;
use std::future::ready;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::{FutureExt as _, TryStreamExt as _};
use leaderelection::implement::{
    ConditionalStore, ListedObject, ListedPage, Listing, MAX_BODY_BYTES, PageToken, Precondition, Version,
    VersionedObject,
};
use leaderelection::{ObjectLock, StoreError, StoreErrorKind};
use leaderelection_store_support::request::fresh::Fresh;
use leaderelection_store_support::request::{self, Body, Operation, bounded};
use object_store::{
    Attribute, Attributes, Error, GetOptions, ObjectStore, ObjectStoreExt as _, PutMode, PutOptions, PutPayload,
};

use crate::{error, key, version};

/// A lock that is one object in a store of the `object_store` crate.
pub type ObjectStoreLock = ObjectLock<ObjectStoreAdapter>;

/// A [`ConditionalStore`] in a store that the program already has: any [`ObjectStore`] whose writes can carry a
/// condition.
///
/// Creates are [`PutMode::Create`], and updates are [`PutMode::Update`] by the ETag and the version of the object.
/// Objects are written with `Cache-Control: no-store`, so that no proxy on the way answers for the store.
///
/// ```
/// use std::sync::Arc;
///
/// use leaderelection::{ObjectStoreBasedLock, unique_identity};
/// use leaderelection_object_store::{ObjectStoreAdapter, ObjectStoreLock};
/// use object_store::memory::InMemory;
///
/// let store = ObjectStoreAdapter::new(Arc::new(InMemory::new()));
/// let lock = ObjectStoreLock::new(store, "locks/scheduler", unique_identity());
/// assert_eq!(lock.describe(), "InMemory: locks/scheduler");
/// ```
///
/// # Which stores
///
/// | store | create | update | delete |
/// |---|---|---|---|
/// | `AmazonS3`, with its default `S3ConditionalPut::ETagMatch` | yes | yes | without a condition |
/// | `MicrosoftAzure`, `GoogleCloudStorage` | yes | yes | without a condition |
/// | `InMemory` | yes | yes | without a condition |
/// | `LocalFileSystem`, `HttpStore` | refused with [`StoreErrorKind::Fatal`] | | |
///
/// Instead of `LocalFileSystem`, use `FileStore` of this crate. Google accepts about one write per second to an object, so
/// choose a retry period of more than one second there. Probe a store with `leaderelection-conformance` before you rely on
/// it.
///
/// # Retries
///
/// By default, a client of `object_store` repeats a request up to ten times within three minutes, writes with a condition
/// included. If the store has carried out the first attempt and its answer was lost, the second attempt conflicts with
/// the first one. An election then reads the record and recognises its own write, so that no harm is done. But the
/// conflict costs a request and time, and the client is silent while it waits. Turn the retries off for the store of an
/// election; the elector repeats what has to be repeated:
///
/// ```ignore
/// use object_store::RetryConfig;
/// use object_store::aws::AmazonS3Builder;
///
/// let retry = RetryConfig { max_retries: 0, ..RetryConfig::default() };
/// let store = AmazonS3Builder::from_env().with_bucket_name("my-bucket").with_retry(retry).build()?;
/// ```
///
/// With retries or without, the client sends nothing more for a call that has reached the [request
/// timeout](Self::with_request_timeout).
///
/// # Connections
///
/// A store keeps connections, and those that a firewall has forgotten stay silent. One that is made anew after a call
/// without an answer has none of them. Give each the credentials of the first one, or else it loads them again, and let
/// [`KeptCredentials`](crate::KeptCredentials) load them in the background:
///
/// ```ignore
/// let builder = AmazonS3Builder::from_env().with_bucket_name("my-bucket").with_retry(retry);
/// let first = builder.clone().build()?;
/// let builder = builder.with_credentials(KeptCredentials::of(first.credentials().clone()));
/// let store = ObjectStoreAdapter::new(Arc::new(builder.clone().build()?)).with_renewal(move || Ok(Arc::new(builder.clone().build()?)));
/// ```
///
/// # Errors
///
/// `object_store` shows no status of an answer. Any failure without a kind of its own is therefore
/// [`Ambiguous`](StoreErrorKind::Ambiguous), even a connection that was refused or a store that throttles.
///
/// # Deletions
///
/// `object_store` has no deletion with a condition, so [`delete`](ConditionalStore::delete) deletes nothing and fails. No
/// elector of a single lock deletes. Members of a session do: here, the objects of ended sessions stay until
/// [`discard`](leaderelection::implement::ConditionalStoreExt::discard) or a person removes them.
///
/// # Keys and listings
///
/// A key that `object_store` would change is refused: an empty key, a key with an empty segment, such as `a//b`, `/a`
/// and `a/`, a segment `.` or `..`, and control characters. A listing shows no versions, because it lacks a part of
/// them. A listing asks for the whole folder of its prefix, so keep the keys of an election in a folder of their own.
///
/// # Ages
///
/// The store does not tell the [age](VersionedObject::age) of an object, because `object_store` does not show the
/// `Date` of an answer. So
/// [`trust_store_clock`](leaderelection::LeaderElectionConfigBuilder::trust_store_clock) has no effect here.
///
/// # Cancellation safety
///
/// Dropping a call's future abandons the answer: a request that was already sent may still be applied. A client with
/// retries sends no further attempt.
#[derive(Clone)]
pub struct ObjectStoreAdapter {
    store: Fresh<Store>,
    name: String,
    request_timeout: Duration,
}

/// A store, as a type without lifetimes.
#[derive(Clone)]
struct Store(Arc<dyn ObjectStore>);

impl ObjectStoreAdapter {
    /// The longest time that a call may take unless [`with_request_timeout`](Self::with_request_timeout)
    /// sets another limit.
    pub const DEFAULT_REQUEST_TIMEOUT: Duration = request::DEFAULT_TIMEOUT;

    /// Uses `store` as it is, with its client, its credentials and its retries.
    #[must_use]
    pub fn new(store: Arc<dyn ObjectStore>) -> Self {
        let name = store.to_string();
        Self { store: Fresh::fixed(Store(store)), name, request_timeout: Self::DEFAULT_REQUEST_TIMEOUT }
    }

    /// Sets the function that makes the store anew after a call without an answer: see [Connections](Self#connections).
    #[must_use]
    pub fn with_renewal(
        mut self,
        make: impl Fn() -> object_store::Result<Arc<dyn ObjectStore>> + Send + Sync + 'static,
    ) -> Self {
        self.store = self.store.renewed_by(move || ready(make().map(Store).map_err(Into::into)).boxed());
        self
    }

    async fn ask<T>(
        &self,
        object: &str,
        call: impl AsyncFnOnce(Store) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        bounded(self.request_timeout, object, self.store.ask(object, call)).await
    }

    /// Sets the limit for every call, from its first byte to the last byte of the answer. The limit includes the
    /// retries of the store's client; for a listing, the limit applies to the wait for each object.
    ///
    /// An elector sets a shorter limit for its own requests: `request_timeout`.
    #[must_use]
    pub fn with_request_timeout(mut self, request_timeout: Duration) -> Self {
        self.request_timeout = request_timeout;
        self
    }
}

#[async_trait]
impl ConditionalStore for ObjectStoreAdapter {
    async fn get(&self, key: &str) -> Result<Option<VersionedObject>, StoreError> {
        let object = self.describe(key);
        let path = key::path(key, &object)?;
        self.ask(&object, async |Store(store)| {
            let found = match store.get_opts(&path, GetOptions::default()).await {
                Ok(found) => found,
                Err(error) if error::is_absent(&error) => return Ok(None),
                Err(error) => return Err(error::explain(Operation::Get, &object, error)),
            };
            let version = version::of(found.meta.e_tag.as_deref(), found.meta.version.as_deref());
            let version =
                version.ok_or_else(|| request::without_version(StoreErrorKind::Fatal, &object, "ETag or version"))?;
            let mut body = Body::new(&object, MAX_BODY_BYTES, Some(found.meta.size))?;
            let broke_off = |error| request::broke_off(&object, error::words(&error));
            let mut chunks = found.into_stream().map_err(broke_off);
            while let Some(chunk) = chunks.try_next().await? {
                body.push(&chunk)?;
            }
            Ok(Some(VersionedObject::new(body.finish(), version)))
        })
        .await
    }

    async fn put(&self, key: &str, body: Bytes, precondition: &Precondition) -> Result<Version, StoreError> {
        StoreError::check_body(&body, || self.describe(key))?;
        let object = self.describe(key);
        let path = key::path(key, &object)?;
        let (operation, mode) = match precondition {
            Precondition::Absent => (Operation::Create, PutMode::Create),
            Precondition::Matches(expected) => (Operation::Update, PutMode::Update(version::expected(expected))),
        };
        let attributes = Attributes::from_iter([
            (Attribute::ContentType, "application/json"),
            (Attribute::CacheControl, "no-store"),
        ]);
        let options = PutOptions { mode, attributes, ..PutOptions::default() };
        self.ask(&object, async |Store(store)| {
            let written = store.put_opts(&path, PutPayload::from_bytes(body), options).await;
            let written = written.map_err(|error| error::explain(operation, &object, error))?;
            version::of(written.e_tag.as_deref(), written.version.as_deref())
                .ok_or_else(|| request::without_version(StoreErrorKind::Ambiguous, &object, "ETag or version"))
        })
        .await
    }

    async fn delete(&self, key: &str, expected: Option<&Version>) -> Result<(), StoreError> {
        let object = self.describe(key);
        if expected.is_some() {
            let message = format!(
                "{object}: not deleted, because object_store has no deletion with a condition, which no election needs; \
                 delete it by hand if nobody uses it"
            );
            return Err(StoreError::new(StoreErrorKind::Fatal, message));
        }
        let path = key::path(key, &object)?;
        self.ask(&object, async |Store(store)| match store.delete(&path).await {
            Ok(()) | Err(Error::NotFound { .. }) => Ok(()),
            Err(error) => Err(error::explain(Operation::Delete, &object, error)),
        })
        .await
    }

    async fn list_page(&self, prefix: &str, _: Option<&PageToken>, _: Option<u16>) -> Result<ListedPage, StoreError> {
        let object = self.describe(prefix);
        let folder = key::folder(prefix, &object)?;
        let listing = self.store.ask(&object, async |Store(store)| {
            let mut found = store.list(folder.as_ref());
            let mut listing = Listing::new(&*object);
            while let Some(meta) = bounded(self.request_timeout, &object, async {
                found.try_next().await.map_err(|error| error::explain(Operation::List, &object, error))
            })
            .await?
            {
                if meta.location.as_ref().starts_with(prefix) {
                    // No listing of `object_store` has the version, which is a part of ours, and Azure's has the ETag in
                    // another spelling than its other answers.
                    listing.add(ListedObject::new(meta.location, None))?;
                }
            }
            Ok(ListedPage::new(listing.sorted(), None))
        });
        listing.await
    }

    fn describe(&self, key: &str) -> String {
        format!("{}: {key}", self.name)
    }

    fn min_write_interval(&self) -> Option<Duration> {
        None
    }
}

// Written by hand, because a store's client may print a secret.
impl fmt::Debug for ObjectStoreAdapter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ObjectStoreAdapter")
            .field("store", &format_args!("{}", self.name))
            .field("request_timeout", &self.request_timeout)
            .finish()
    }
}
