//! The one thing the library needs from the world: an object store with conditional writes.

use std::error::Error as StdError;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;

/// The largest body that a [`ConditionalStore`] reads or writes, in bytes (64 KiB).
///
/// A record is a few hundred bytes. The limit keeps a mistyped key from pulling a large file into
/// memory on every poll.
pub const MAX_BODY_BYTES: usize = 64 * 1024;

/// A store of small objects that writes only if a [`Precondition`] holds.
///
/// # Contract
///
/// - **Linearizable.** A read returns the newest completed write; of any number of writers that name
///   the same [`Precondition`] at most one succeeds. Leadership is exactly as exclusive as this is.
/// - **One response.** [`get`](Self::get) returns a body and a version from the same response.
/// - **One attempt.** A call sends at most one request for each effect it has. A client that silently
///   retries a write turns its own success into a conflict.
/// - **Honest errors.** [`StoreErrorKind`] says what is known about the effect. When in doubt, a write
///   that failed is [`Ambiguous`](StoreErrorKind::Ambiguous).
/// - **Dropping** a call's future abandons the answer, not the effect: a write may still be applied.
///
/// The suite in [`conformance`](crate::conformance) (feature `conformance`) checks the contract.
#[async_trait]
pub trait ConditionalStore: fmt::Debug + Send + Sync + 'static {
    /// Reads an object; `None` if there is none at `key`.
    ///
    /// # Errors
    ///
    /// [`StoreErrorKind::Unreadable`] for a body over [`MAX_BODY_BYTES`], which is not downloaded.
    async fn get(&self, key: &str) -> Result<Option<VersionedObject>, StoreError>;

    /// Writes an object if `precondition` holds, and returns the version of what was written.
    ///
    /// # Errors
    ///
    /// [`StoreErrorKind::Conflict`] if the precondition does not hold, a missing object under
    /// [`Precondition::Matches`] included. [`StoreErrorKind::Fatal`] for an empty body or one over
    /// [`MAX_BODY_BYTES`], before anything is sent (see [`StoreError::check_body`]).
    async fn put(&self, key: &str, body: Bytes, precondition: &Precondition) -> Result<Version, StoreError>;

    /// Deletes an object if it still has the version `expected`.
    ///
    /// # Errors
    ///
    /// [`StoreErrorKind::Conflict`] if it has another version or does not exist.
    async fn delete(&self, key: &str, expected: &Version) -> Result<(), StoreError>;

    /// The keys that start with `prefix`, sorted.
    ///
    /// # Errors
    ///
    /// Any [`StoreErrorKind`] but [`Conflict`](StoreErrorKind::Conflict).
    async fn list(&self, prefix: &str) -> Result<Vec<String>, StoreError>;

    /// What people call the object at `key`, such as `s3://bucket/key`. Holds no secrets.
    fn describe(&self, key: &str) -> String;

    /// Whether two writes always have different versions, even when their bodies are equal.
    ///
    /// `false` for stores whose version is a hash of the content. The library copes with those: the
    /// `writeId` in every record makes every body different.
    fn has_unique_versions(&self) -> bool {
        false
    }

    /// How far apart writes to one object must be, if the store refuses those that come faster.
    ///
    /// A shorter retry period is warned about when it is configured.
    fn min_write_interval(&self) -> Option<Duration> {
        None
    }
}

#[async_trait]
impl<S: ConditionalStore + ?Sized> ConditionalStore for Arc<S> {
    async fn get(&self, key: &str) -> Result<Option<VersionedObject>, StoreError> {
        (**self).get(key).await
    }

    async fn put(&self, key: &str, body: Bytes, precondition: &Precondition) -> Result<Version, StoreError> {
        (**self).put(key, body, precondition).await
    }

    async fn delete(&self, key: &str, expected: &Version) -> Result<(), StoreError> {
        (**self).delete(key, expected).await
    }

    async fn list(&self, prefix: &str) -> Result<Vec<String>, StoreError> {
        (**self).list(prefix).await
    }

    fn describe(&self, key: &str) -> String {
        (**self).describe(key)
    }

    fn has_unique_versions(&self) -> bool {
        (**self).has_unique_versions()
    }

    fn min_write_interval(&self) -> Option<Duration> {
        (**self).min_write_interval()
    }
}

/// What a store calls one state of one object: an ETag, a generation, a counter.
///
/// Opaque: versions are only ever compared for equality and handed back to the store they came from.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Version(Arc<str>);

impl Version {
    /// A version as the store spells it.
    #[must_use]
    pub fn new(version: impl Into<Arc<str>>) -> Self {
        Self(version.into())
    }

    /// The store's own spelling.
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

/// An object's body, and the version it had in the same response.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct VersionedObject {
    /// The content.
    pub body: Bytes,
    /// The version of exactly this content.
    pub version: Version,
}

impl VersionedObject {
    /// A body and its version, both from the same response.
    #[must_use]
    pub fn new(body: impl Into<Bytes>, version: Version) -> Self {
        Self { body: body.into(), version }
    }
}

/// What must be true of an object for a write to happen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Precondition {
    /// There is no such object.
    Absent,
    /// The object has this version.
    Matches(Version),
}

/// What is known after a store refused or failed to answer: the caller acts on nothing else.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum StoreErrorKind {
    /// The precondition did not hold; read the object to see why.
    Conflict,
    /// Refused before any effect, for now: throttled, connection refused, disk full. Try again later.
    Rejected,
    /// The outcome is unknown: the write may have happened, or may happen yet. Read before acting.
    Ambiguous,
    /// Refused for good until somebody changes something: access denied, no such bucket, bad request.
    Fatal,
    /// There is an object, but not one that can be a record: too large, or not readable as one.
    Unreadable,
}

/// Why a store did not do what it was asked.
///
/// The message names the object, says what happened and what to do next. It never holds a secret.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct StoreError {
    kind: StoreErrorKind,
    message: String,
    retry_after: Option<Duration>,
    #[source]
    source: Option<Box<dyn StdError + Send + Sync>>,
}

impl StoreError {
    /// An error of `kind` with a message in lower case and without a full stop.
    pub fn new(kind: StoreErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), retry_after: None, source: None }
    }

    /// Adds the underlying error, whose text the message must not repeat.
    #[must_use]
    pub fn with_source(mut self, source: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        self.source = Some(source.into());
        self
    }

    /// Adds how long the store asked to be left alone.
    #[must_use]
    pub fn with_retry_after(mut self, retry_after: Option<Duration>) -> Self {
        self.retry_after = retry_after;
        self
    }

    /// Refuses a body that no [`ConditionalStore`] takes: an empty one, or one over [`MAX_BODY_BYTES`].
    /// For authors of stores; `object` is what [`describe`](ConditionalStore::describe) says.
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

    /// What is known about the effect.
    #[must_use]
    pub fn kind(&self) -> StoreErrorKind {
        self.kind
    }

    /// How long the store asked to be left alone, from its `Retry-After`.
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        self.retry_after
    }
}
