//! The interface of a store that can create an object if it is absent.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;

use leaderelection::StoreError;
use leaderelection::implement::MAX_BODY_BYTES;

/// The largest content that a [`CreateOnlyStore`] reads or creates, in bytes.
///
/// It is one byte more than the largest body of a [`ConditionalStore`](leaderelection::implement::ConditionalStore),
/// because a line feed follows each body.
pub const MAX_CONTENT_BYTES: usize = MAX_BODY_BYTES + 1;

/// A store that creates an object only if there is none, and never replaces one.
///
/// # Contract
///
/// - **One creator.** Of any number of creations of one key, at most one succeeds until the object is removed.
/// - **Strong reads.** After the answer to a creation, every read shows the object and every listing has its key, until
///   the object is removed. After the answer to a removal, no read and no listing shows the object.
/// - **Ordered listings.** The last key of a listing, in the order of bytes, is no smaller than the last key that
///   existed when the listing began, provided that the last key is never removed. A store keeps this if it answers
///   from one snapshot, or if it reads its keys in ascending order.
/// - **Complete objects.** No read shows a part of a content, with one exception: a read may show a beginning of it that does not
///   end in a line feed, the empty beginning included, while the object is being created or after its creator died.
/// - **One attempt.** A call sends at most one request for each effect it has. A listing may take several requests.
/// - **Honest errors.** [`StoreErrorKind`](leaderelection::StoreErrorKind) states the known effect of a failed call, as for a
///   [`ConditionalStore`](leaderelection::implement::ConditionalStore). When in doubt, a creation that failed is
///   [`Ambiguous`](leaderelection::StoreErrorKind::Ambiguous).
/// - **Dropping** a call's future abandons the answer, not the effect.
#[async_trait]
pub trait CreateOnlyStore: fmt::Debug + Send + Sync + 'static {
    /// Reads an object. Returns `None` if no object exists at `key`.
    ///
    /// # Errors
    ///
    /// [`Unreadable`](leaderelection::StoreErrorKind::Unreadable) for a content over [`MAX_CONTENT_BYTES`], which is not
    /// downloaded.
    async fn read(&self, key: &str) -> Result<Option<Content>, StoreError>;

    /// Creates an object if there is none at `key`.
    ///
    /// # Errors
    ///
    /// [`Conflict`](leaderelection::StoreErrorKind::Conflict) if there is one.
    async fn create(&self, key: &str, content: Bytes) -> Result<(), StoreError>;

    /// Returns the objects whose keys start with `prefix` and are greater than `after`, those of all folders below included.
    ///
    /// The order does not matter. Smaller keys may be among them: the caller leaves them out. `after` starts with
    /// `prefix`, and only saves the transfer of what the caller does not need.
    ///
    /// # Errors
    ///
    /// Any [`StoreErrorKind`](leaderelection::StoreErrorKind) except [`Conflict`](leaderelection::StoreErrorKind::Conflict).
    async fn list(&self, prefix: &str, after: Option<&str>) -> Result<Vec<Entry>, StoreError>;

    /// Removes an object. Succeeds if there is none.
    ///
    /// # Errors
    ///
    /// Any [`StoreErrorKind`](leaderelection::StoreErrorKind) except [`Conflict`](leaderelection::StoreErrorKind::Conflict).
    async fn remove(&self, key: &str) -> Result<(), StoreError>;

    /// The name of the object at `key` for people, such as `oss://bucket/key`. The name contains no secrets.
    fn describe(&self, key: &str) -> String;

    /// The shortest interval between two requests for one folder, if the store refuses faster ones.
    fn min_write_interval(&self) -> Option<Duration> {
        None
    }
}

#[async_trait]
impl<S: CreateOnlyStore + ?Sized> CreateOnlyStore for Arc<S> {
    async fn read(&self, key: &str) -> Result<Option<Content>, StoreError> {
        (**self).read(key).await
    }

    async fn create(&self, key: &str, content: Bytes) -> Result<(), StoreError> {
        (**self).create(key, content).await
    }

    async fn list(&self, prefix: &str, after: Option<&str>) -> Result<Vec<Entry>, StoreError> {
        (**self).list(prefix, after).await
    }

    async fn remove(&self, key: &str) -> Result<(), StoreError> {
        (**self).remove(key).await
    }

    fn describe(&self, key: &str) -> String {
        (**self).describe(key)
    }

    fn min_write_interval(&self) -> Option<Duration> {
        (**self).min_write_interval()
    }
}

/// The content of an object, with its age from the same response.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Content {
    /// All bytes of the object.
    pub bytes: Bytes,
    /// The age of the object by the store's own clock, as in
    /// [`VersionedObject::age`](leaderelection::implement::VersionedObject::age); `None` if the store does not tell
    /// it.
    pub age: Option<Duration>,
}

impl Content {
    /// Creates the content of an object whose age is not known.
    #[must_use]
    pub fn new(bytes: impl Into<Bytes>) -> Self {
        Self { bytes: bytes.into(), age: None }
    }

    /// Adds the age of the object, from the same response.
    #[must_use]
    pub fn with_age(mut self, age: Option<Duration>) -> Self {
        self.age = age;
        self
    }
}

/// An object in a listing of a [`CreateOnlyStore`].
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub struct Entry {
    /// The key of the object.
    pub key: String,
    /// The size of the content in bytes, if the listing tells it. It saves a read of each object.
    pub size: Option<u64>,
}

impl Entry {
    /// Combines a key and a size from the same response.
    #[must_use]
    pub fn new(key: impl Into<String>, size: Option<u64>) -> Self {
        Self { key: key.into(), size }
    }
}
