//! Any service of the `opendal` crate.

use std::fmt;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use leaderelection::implement::{
    ConditionalStore, ListedObject, ListedPage, MAX_BODY_BYTES, PageToken, Precondition, Version, VersionedObject,
};
use leaderelection::{ObjectLock, StoreError, StoreErrorKind};
use leaderelection_store_support::request::{self, Operation};
use opendal::options::WriteOptions;
use opendal::{Capability, HttpTransporter, Metadata, Operator};

use crate::service::Service;

/// A lock that is one object of an `opendal` service.
pub type OpendalLock = ObjectLock<OpendalAdapter>;

/// A [`ConditionalStore`] over an [`Operator`] whose service can create *and* replace an object on a condition.
///
/// The operator's own capabilities decide:
///
/// | capabilities | services, in `opendal` 0.59 | use |
/// |---|---|---|
/// | `write_with_if_not_exists`, `write_with_if_match` | S3, Azure Blob Storage, Volcengine TOS | this adapter, by the ETag |
/// | `write_with_if_not_exists`, `write_with_if_version_match` | Google Cloud Storage | this adapter, by the generation |
/// | `write_with_if_not_exists` alone | Alibaba OSS, Tencent COS | [`OpendalObjects`](crate::OpendalObjects), which refuses `fs` |
/// | neither | Huawei OBS, and many others | refused |
///
/// [`new`](Self::new) refuses an operator of the last two rows. A lock in the layout of [`OpendalObjects`](crate::OpendalObjects) is not seen by
/// this adapter, and the other way round, so nothing here changes from one to the other by itself.
///
/// ```no_run
/// use leaderelection::unique_identity;
/// use leaderelection_opendal::{OpendalAdapter, OpendalLock};
/// use opendal::Operator;
///
/// # fn example(operator: Operator) -> Result<(), leaderelection::StoreError> {
/// let store = OpendalAdapter::new(operator)?;
/// let lock = OpendalLock::new(store, "locks/scheduler", unique_identity());
/// # Ok(())
/// # }
/// ```
///
/// # Retries
///
/// Give the operator no `RetryLayer`. A write that such a layer repeats conflicts with its own first attempt. An
/// election then reads the record and recognises its own write, so that no harm is done, but the conflict costs a request
/// and time. The elector repeats what has to be repeated. A call that has reached the [request
/// timeout](Self::with_request_timeout) is dropped, and the layer then sends nothing more for it.
///
/// # Errors
///
/// A failed write is [`Ambiguous`](StoreErrorKind::Ambiguous) unless the service has refused it for good or its
/// condition did not hold: behind a `RetryLayer`, an earlier attempt may have been committed.
///
/// # Deletions
///
/// [`delete`](ConditionalStore::delete) deletes nothing and fails, because `opendal` answers the deletion of an
/// object that is not there as a success. No elector of a single lock deletes. Members of a session do: here, the
/// objects of ended sessions stay until [`discard`](leaderelection::implement::ConditionalStoreExt::discard) or a person removes them.
///
/// # Keys and listings
///
/// A key that `opendal` would change is refused: an empty key, a slash at either end, two slashes in a row, a segment `.`
/// or `..`, white space at either end. A listing shows no versions, and asks for the whole folder of its prefix.
///
/// # Ages
///
/// The store does not tell the [age](VersionedObject::age) of an object, because `opendal` does not show the `Date`
/// of an answer.
///
/// # Cancellation safety
///
/// Dropping a call's future abandons the answer: a request that was already sent may still be applied.
#[derive(Clone)]
pub struct OpendalAdapter {
    service: Service,
    compares: Compares,
}

/// The part of the metadata that the service compares.
#[derive(Clone, Copy, Debug)]
enum Compares {
    ETag,
    Version,
}

impl Compares {
    fn by(capability: &Capability) -> Option<Self> {
        match capability {
            Capability { write_with_if_match: true, .. } => Some(Self::ETag),
            Capability { write_with_if_version_match: true, .. } => Some(Self::Version),
            _ => None,
        }
    }

    /// Returns the version in a successful answer, or an error of `kind` if the answer has none.
    fn version(self, found: Option<&Metadata>, kind: StoreErrorKind, object: &str) -> Result<Version, StoreError> {
        let (name, version) = match self {
            Self::ETag => ("ETag", found.and_then(Metadata::etag)),
            Self::Version => ("version", found.and_then(Metadata::version)),
        };
        version.map(Version::new).ok_or_else(|| request::without_version(kind, object, name))
    }

    fn condition(self, expected: &Version) -> WriteOptions {
        let expected = Some(expected.as_str().to_owned());
        match self {
            Self::ETag => WriteOptions { if_match: expected, ..WriteOptions::default() },
            Self::Version => WriteOptions { if_version_match: expected, ..WriteOptions::default() },
        }
    }
}

impl OpendalAdapter {
    /// The longest time that a call may take unless [`with_request_timeout`](Self::with_request_timeout)
    /// sets another limit.
    pub const DEFAULT_REQUEST_TIMEOUT: Duration = request::DEFAULT_TIMEOUT;

    /// Uses the operator as it is, with its layers and its credentials.
    ///
    /// # Errors
    ///
    /// [`StoreErrorKind::Fatal`] if the operator's service cannot create or cannot replace on a condition. Nothing is
    /// sent.
    pub fn new(operator: Operator) -> Result<Self, StoreError> {
        let (service, capability) = Service::new(operator)?;
        match Compares::by(&capability) {
            Some(compares) => Ok(Self { service, compares }),
            None => Err(service.unfit(
                "can create an object conditionally, but not replace one; use \
                 leaderelection_sequenced::SequencedStore over OpendalObjects of leaderelection-backends",
            )),
        }
    }

    /// Sets the function that makes the operator's HTTP transport anew after a call without an answer. Its connections are
    /// new: the kept ones may lead nowhere. Without this function, the operator keeps its transport. Credentials stay.
    #[must_use]
    pub fn with_renewal(mut self, make: impl Fn() -> opendal::Result<HttpTransporter> + Send + Sync + 'static) -> Self {
        self.service.renewed_by(make);
        self
    }

    /// Sets the limit for every call, from its first byte to the last byte of the answer. The limit includes
    /// repetitions by a layer; for a listing, the limit applies to the wait for each object.
    ///
    /// An elector sets a shorter limit for its own requests: `request_timeout`.
    #[must_use]
    pub fn with_request_timeout(mut self, request_timeout: Duration) -> Self {
        self.service.request_timeout = request_timeout;
        self
    }
}

#[async_trait]
impl ConditionalStore for OpendalAdapter {
    async fn get(&self, key: &str) -> Result<Option<VersionedObject>, StoreError> {
        let Some((body, metadata)) = self.service.read(key, MAX_BODY_BYTES).await? else { return Ok(None) };
        let version = self.compares.version(metadata.as_ref(), StoreErrorKind::Fatal, &self.describe(key))?;
        Ok(Some(VersionedObject::new(body, version)))
    }

    async fn put(&self, key: &str, body: Bytes, precondition: &Precondition) -> Result<Version, StoreError> {
        StoreError::check_body(&body, || self.describe(key))?;
        let (operation, condition) = match precondition {
            Precondition::Absent => {
                (Operation::Create, WriteOptions { if_not_exists: true, ..WriteOptions::default() })
            }
            Precondition::Matches(expected) => (Operation::Update, self.compares.condition(expected)),
        };
        let written = self.service.write(operation, key, body, condition).await?;
        self.compares.version(Some(&written), StoreErrorKind::Ambiguous, &self.describe(key))
    }

    async fn delete(&self, key: &str, expected: Option<&Version>) -> Result<(), StoreError> {
        if expected.is_none() {
            return self.service.remove(key).await;
        }
        let message = format!(
            "{}: not deleted, because opendal does not tell whether a deletion with a condition has deleted anything, \
             and no election needs one; delete it by hand if nobody uses it",
            self.describe(key)
        );
        Err(StoreError::new(StoreErrorKind::Fatal, message))
    }

    async fn list_page(&self, prefix: &str, _: Option<&PageToken>, _: Option<u16>) -> Result<ListedPage, StoreError> {
        let keys = self.service.list(prefix, None).await?;
        Ok(ListedPage::new(keys.into_iter().map(|key| ListedObject::new(key, None)).collect(), None))
    }

    fn describe(&self, key: &str) -> String {
        self.service.describe(key)
    }

    fn min_write_interval(&self) -> Option<Duration> {
        self.service.min_write_interval()
    }
}

// Written by hand, because an operator's service may print a secret.
impl fmt::Debug for OpendalAdapter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.service.show(f.debug_struct("OpendalAdapter").field("compares", &self.compares))
    }
}
