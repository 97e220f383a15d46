//! Services that can create an object if it is absent, and can replace none on a condition.

use std::fmt;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use leaderelection::StoreError;
use leaderelection_sequenced::{Content, CreateOnlyStore, Entry, MAX_CONTENT_BYTES};
use leaderelection_store_support::request::{self, Operation};
use opendal::options::WriteOptions;
use opendal::{HttpTransporter, Operator};

use crate::service::Service;

/// A [`CreateOnlyStore`] over an [`Operator`] whose service can create an object if it is absent.
///
/// [`SequencedStore`](leaderelection_sequenced::SequencedStore) makes a store for elections of it.
///
/// ```no_run
/// use leaderelection_sequenced::SequencedStore;
/// use leaderelection::{ObjectLock, unique_identity};
/// use leaderelection_opendal::OpendalObjects;
/// use opendal::Operator;
///
/// # fn example(operator: Operator) -> Result<(), leaderelection::StoreError> {
/// let store = SequencedStore::new(OpendalObjects::new(operator)?);
/// let lock = ObjectLock::new(store, "locks/scheduler", unique_identity());
/// # Ok(())
/// # }
/// ```
///
/// # Buckets with versions
///
/// Alibaba OSS and Tencent COS ignore the condition of a creation in a bucket that has, or once had, versioning. Probe
/// the store with `leaderelection-conformance` before you rely on it: the probe calls such a bucket unfit.
///
/// # Local directories
///
/// The service `fs` is refused: its listing leaves out a file that is removed while the listing reads it, and may have passed the
/// place of the newer one. So the newest object can be missing. `FileStore` of this crate keeps its promises in a directory.
///
/// Retries, keys, errors and timeouts are those of [`OpendalAdapter`](crate::OpendalAdapter).
#[derive(Clone)]
pub struct OpendalObjects {
    service: Service,
}

impl OpendalObjects {
    /// The longest time that a call may take unless [`with_request_timeout`](Self::with_request_timeout)
    /// sets another limit.
    pub const DEFAULT_REQUEST_TIMEOUT: Duration = request::DEFAULT_TIMEOUT;

    /// Uses the operator as it is, with its layers and its credentials.
    ///
    /// # Errors
    ///
    /// [`StoreErrorKind::Fatal`](leaderelection::StoreErrorKind::Fatal) if the operator's service cannot create an
    /// object on the condition that there is none, or cannot read, list or delete, or is `fs`. Nothing is sent.
    pub fn new(operator: Operator) -> Result<Self, StoreError> {
        let is_directory = operator.info().scheme() == "fs";
        let (service, _) = Service::new(operator)?;
        if is_directory {
            return Err(
                service.unfit("can fail to list an object that is being replaced; use FileStore, or a file:// URL")
            );
        }
        Ok(Self { service })
    }

    /// Sets the function that makes the operator's HTTP transport anew after a call without an answer. Its connections are
    /// new: the kept ones may lead nowhere. Without this function, the operator keeps its transport. Credentials stay.
    #[must_use]
    pub fn with_renewal(mut self, make: impl Fn() -> opendal::Result<HttpTransporter> + Send + Sync + 'static) -> Self {
        self.service.renewed_by(make);
        self
    }

    /// Sets the limit for every call, as for
    /// [`OpendalAdapter`](crate::OpendalAdapter::with_request_timeout).
    #[must_use]
    pub fn with_request_timeout(mut self, request_timeout: Duration) -> Self {
        self.service.request_timeout = request_timeout;
        self
    }
}

#[async_trait]
impl CreateOnlyStore for OpendalObjects {
    async fn read(&self, key: &str) -> Result<Option<Content>, StoreError> {
        let found = self.service.read(key, MAX_CONTENT_BYTES).await?;
        Ok(found.map(|(bytes, _)| Content::new(bytes)))
    }

    async fn create(&self, key: &str, content: Bytes) -> Result<(), StoreError> {
        let condition = WriteOptions { if_not_exists: true, ..WriteOptions::default() };
        self.service.write(Operation::Create, key, content, condition).await.map(drop)
    }

    async fn list(&self, prefix: &str, after: Option<&str>) -> Result<Vec<Entry>, StoreError> {
        let keys = self.service.list(prefix, after).await?;
        Ok(keys.into_iter().map(|key| Entry::new(key, None)).collect())
    }

    async fn remove(&self, key: &str) -> Result<(), StoreError> {
        self.service.remove(key).await
    }

    fn describe(&self, key: &str) -> String {
        self.service.describe(key)
    }
}

// Written by hand, because an operator's service may print a secret.
impl fmt::Debug for OpendalObjects {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.service.show(&mut f.debug_struct("OpendalObjects"))
    }
}
