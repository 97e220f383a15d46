//! The only interface that the library needs from outside: an object store with conditional writes.

pub(crate) mod check;
mod ext;
mod from_env;
mod listing;

use std::error::Error as StdError;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;

use crate::util::causes::with_causes;

pub use check::{Candidacy, StoreCheck, StoreFitness, StoreUnfit};
pub use ext::ConditionalStoreExt;
pub use from_env::FromEnv;
pub use listing::{ListedObject, ListedPage, Listing, PageToken};

/// The largest body that a [`ConditionalStore`] reads or writes, in bytes (64 KiB).
///
/// A record is a few hundred bytes. Without the limit, a mistyped key could load a large file at every poll.
pub const MAX_BODY_BYTES: usize = 64 * 1024;

/// A store of small objects that writes only if a [`Precondition`] holds.
///
/// # Contract
///
/// - **Linearizable.** A read returns the newest completed write. Of any number of writers that name the same
///   [`Precondition`], at most one succeeds. Leadership is exactly as exclusive as the store's writes.
/// - **One response.** [`get`](Self::get) returns a body and a version from the same response.
/// - **One attempt.** A call sends at most one request for each effect it has. A client that silently
///   retries a write turns its own success into a conflict.
/// - **Honest errors.** [`StoreErrorKind`] states the known effect of a failed call. When in doubt, a write
///   that failed is [`Ambiguous`](StoreErrorKind::Ambiguous).
/// - **Dropping** a call's future abandons the answer, not the effect: a write may still be applied.
/// - **Versions.** Two bodies at one key never have the same version, even if the object was deleted in between. A hash
///   of the body can be the version, because the `writeId` in every record makes every body different. A counter that
///   never starts again can be one, too. As an exception, in a store that can delete by version, a deletion
///   without a version may restart the counter.
///
/// The suite `check_store` in the crate `leaderelection-conformance` checks the contract.
///
/// No method has a default, so that a wrapper of a store cannot forget to forward one. [`ConditionalStoreExt`] has the
/// methods that are made of these.
#[async_trait]
pub trait ConditionalStore: fmt::Debug + Send + Sync + 'static {
    /// Reads an object. Returns `None` if no object exists at `key`.
    ///
    /// # Errors
    ///
    /// [`StoreErrorKind::Unreadable`] for a body over [`MAX_BODY_BYTES`], which is not downloaded.
    async fn get(&self, key: &str) -> Result<Option<VersionedObject>, StoreError>;

    /// Writes an object if `precondition` holds, and returns the version of the written object.
    ///
    /// # Errors
    ///
    /// [`StoreErrorKind::Conflict`] if the precondition does not hold; this includes a missing object under
    /// [`Precondition::Matches`]. [`StoreErrorKind::Fatal`] for an empty body or a body over
    /// [`MAX_BODY_BYTES`], before anything is sent (see [`StoreError::check_body`]).
    async fn put(&self, key: &str, body: Bytes, precondition: &Precondition) -> Result<Version, StoreError>;

    /// Deletes an object if it still has the version `expected`. With `None`, deletes it whatever its version.
    ///
    /// With `None`, every trace of the object is removed, and a missing object is not an error: see
    /// [`discard`](ConditionalStoreExt::discard). So never pass the `None` of a read that found no object: that would
    /// delete an object that somebody has created since.
    ///
    /// # Errors
    ///
    /// With a version: [`StoreErrorKind::Conflict`] if the object has another version or does not exist, and
    /// [`StoreErrorKind::Fatal`] if the store cannot delete conditionally. In both cases, nothing is deleted.
    async fn delete(&self, key: &str, expected: Option<&Version>) -> Result<(), StoreError>;

    /// Returns a page of the objects whose keys start with `prefix`: the first page, or the one at `token`, which the
    /// previous page returned. The page has at most `limit` objects, if the store supports a limit. A store without
    /// pages returns all objects.
    ///
    /// Together, the pages have each object that exists throughout, from the first request to the last, exactly once. A
    /// listing is not a snapshot: its objects may never have existed together. Sessions list page by page, so that the
    /// request timeout applies to each page, and each page is used when it arrives.
    ///
    /// # Errors
    ///
    /// Any [`StoreErrorKind`] except [`Conflict`](StoreErrorKind::Conflict).
    async fn list_page(
        &self,
        prefix: &str,
        token: Option<&PageToken>,
        limit: Option<u16>,
    ) -> Result<ListedPage, StoreError>;

    /// The name of the object at `key` for people, such as `s3://bucket/key`. The name contains no secrets.
    fn describe(&self, key: &str) -> String;

    /// The shortest interval between two writes of one object that the store allows; `None` if it has no limit.
    ///
    /// A configuration with a shorter retry period causes a warning.
    fn min_write_interval(&self) -> Option<Duration>;
}

#[async_trait]
impl<S: ConditionalStore + ?Sized> ConditionalStore for Arc<S> {
    async fn get(&self, key: &str) -> Result<Option<VersionedObject>, StoreError> {
        (**self).get(key).await
    }

    async fn put(&self, key: &str, body: Bytes, precondition: &Precondition) -> Result<Version, StoreError> {
        (**self).put(key, body, precondition).await
    }

    async fn delete(&self, key: &str, expected: Option<&Version>) -> Result<(), StoreError> {
        (**self).delete(key, expected).await
    }

    async fn list_page(
        &self,
        prefix: &str,
        token: Option<&PageToken>,
        limit: Option<u16>,
    ) -> Result<ListedPage, StoreError> {
        (**self).list_page(prefix, token, limit).await
    }

    fn describe(&self, key: &str) -> String {
        (**self).describe(key)
    }

    fn min_write_interval(&self) -> Option<Duration> {
        (**self).min_write_interval()
    }
}

/// The store's name for one state of one object: an ETag, a generation, a counter.
///
/// A version is opaque. Versions are only compared for equality and passed back to the store that issued them.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Version(Arc<str>);

impl Version {
    /// Wraps a version in the store's own spelling.
    #[must_use]
    pub fn new(version: impl Into<Arc<str>>) -> Self {
        Self(version.into())
    }

    /// Returns the version in the store's own spelling.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The body of an object, with the version from the same response.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct VersionedObject {
    /// The content.
    pub body: Bytes,
    /// The version of exactly this body.
    pub version: Version,
    /// The age of this version by the store's own clock, at the moment of the answer; `None` if the store does not
    /// report it.
    ///
    /// In HTTP, the age is `Date` minus `Last-Modified`, in whole seconds. The age must count from the moment when the
    /// store received the write, or from a later one. If the age is too great, candidates that [trust the store's
    /// clock](crate::LeaderElectionConfigBuilder::trust_store_clock) take a lease too early.
    pub age: Option<Duration>,
}

impl VersionedObject {
    /// Combines a body and a version; both must come from the same response.
    #[must_use]
    pub fn new(body: impl Into<Bytes>, version: Version) -> Self {
        Self { body: body.into(), version, age: None }
    }

    /// Adds the age of the version, from the same response.
    #[must_use]
    pub fn with_age(mut self, age: Option<Duration>) -> Self {
        self.age = age;
        self
    }
}

/// The condition under which a store performs a write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Precondition {
    /// No object exists at the key.
    Absent,
    /// The object exists and has this version.
    Matches(Version),
}

/// What is known about the effect of a store call that failed. The caller decides by this kind alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum StoreErrorKind {
    /// The precondition did not hold. Read the object to find the reason.
    Conflict,
    /// The call had no effect, and may succeed later: throttled, connection refused, disk full. Try again later.
    Rejected,
    /// The outcome is unknown: the write may have happened, or may still happen. Read the object before acting.
    Ambiguous,
    /// The store refused permanently: access denied, no such bucket, bad request. A person has to change
    /// something.
    Fatal,
    /// An object exists but cannot be a record: it is too large, or is not readable as a record.
    Unreadable,
}

/// The error of a store call.
///
/// The message names the object, the problem, and the next step. The message never contains a secret.
///
/// `Debug` prints the message, its causes and the kind, because a `main` that returns the error prints `Debug`.
#[derive(thiserror::Error)]
#[error("{message}")]
pub struct StoreError {
    kind: StoreErrorKind,
    message: String,
    retry_after: Option<Duration>,
    #[source]
    source: Option<Box<dyn StdError + Send + Sync>>,
}

impl fmt::Debug for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({:?})", with_causes(self), self.kind)
    }
}

impl StoreError {
    /// Creates an error of `kind`. The message is in lower case and has no full stop.
    pub fn new(kind: StoreErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), retry_after: None, source: None }
    }

    /// Adds the underlying error. The message must not repeat the text of that error.
    #[must_use]
    pub fn with_source(mut self, source: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        self.source = Some(source.into());
        self
    }

    /// Adds the time for which the store asked clients to send nothing.
    #[must_use]
    pub fn with_retry_after(mut self, retry_after: Option<Duration>) -> Self {
        self.retry_after = retry_after;
        self
    }

    /// Refuses a body that no [`ConditionalStore`] accepts: an empty body, or a body over [`MAX_BODY_BYTES`].
    /// This check is for authors of stores; `object` returns the text of
    /// [`describe`](ConditionalStore::describe).
    ///
    /// # Errors
    ///
    /// [`StoreErrorKind::Fatal`] for such a body.
    pub fn check_body(body: &[u8], object: impl FnOnce() -> String) -> Result<(), Self> {
        if (1..=MAX_BODY_BYTES).contains(&body.len()) {
            return Ok(());
        }
        let message =
            format!("cannot write {} bytes to {}: write between 1 and {MAX_BODY_BYTES} bytes", body.len(), object());
        Err(Self::new(StoreErrorKind::Fatal, message))
    }

    /// What is known about the effect of the failed call.
    #[must_use]
    pub fn kind(&self) -> StoreErrorKind {
        self.kind
    }

    /// The time for which the store asked clients to send nothing, from its `Retry-After`.
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        self.retry_after
    }
}
