//! Google Cloud Storage, on Google's own `google-cloud-storage` crate.

use std::fmt;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use google_cloud_gax::options::RequestOptionsBuilder;
use google_cloud_gax::retry_policy::NeverRetry;
use google_cloud_storage::Error;
use google_cloud_storage::client::{Storage, StorageControl};
use google_cloud_storage::read_resume_policy::NeverResume;
use leaderelection::implement::{
    ConditionalStore, ListedObject, ListedPage, MAX_BODY_BYTES, PageToken, Precondition, Version, VersionedObject,
};
use leaderelection::{ObjectLock, StoreError, StoreErrorKind};
use leaderelection_store_support::request::fresh::Fresh;
use leaderelection_store_support::request::{self, Body, Operation, USER_AGENT, bounded};

use crate::error;
use crate::found::Found;

/// A lock that is one object in a bucket of Google Cloud Storage.
///
/// ```no_run
/// use leaderelection::{DefaultLeaderElector, Elector, LeaderCallbacks, LeaderElectionConfig, Leadership, shutdown_signal};
/// use leaderelection_gcs::GcsLock;
///
/// async fn controller(leadership: Leadership) {
///     leadership.lost().await; // Work until then.
/// }
///
/// #[tokio::main]
/// async fn main() -> Result<(), Box<dyn std::error::Error>> {
///     let lock = GcsLock::from_env("my-bucket", "locks/scheduler").await?;
///     let callbacks = LeaderCallbacks::new().on_start_leading(controller);
///     let config = LeaderElectionConfig::builder(lock, callbacks).build()?;
///     DefaultLeaderElector::new(config).campaign(shutdown_signal()).await?; // Until SIGTERM or Ctrl-C.
///     Ok(())
/// }
/// ```
///
/// [`from_env`](ObjectLock::from_env) takes the name of the bucket. The credentials are Google's application default
/// credentials: `GOOGLE_APPLICATION_CREDENTIALS`, the login of `gcloud`, or the machine's service account. An emulator that
/// `STORAGE_EMULATOR_HOST` names needs none. A client of the program goes into [`GcsStore::new`].
pub type GcsLock = ObjectLock<GcsStore>;

/// A [`ConditionalStore`] in one bucket of Google Cloud Storage.
///
/// The version is the generation, which is new for every write and never used again. Writes and deletions carry
/// `ifGenerationMatch`. Objects are written with `Cache-Control: no-store`: without this header, Google's
/// caches may answer for an object that is publicly readable.
///
/// The store uses the client's endpoint and credentials, but not the client's retries. Every call sends one
/// request (one per thousand keys for a listing), because a repeated write conflicts with its own first
/// attempt.
///
/// ```no_run
/// use google_cloud_storage::client::Storage;
/// use leaderelection::{ObjectStoreBasedLock, unique_identity};
/// use leaderelection_gcs::{GcsLock, GcsStore};
///
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// let store = GcsStore::new(Storage::builder().build().await?, "my-bucket");
/// let lock = GcsLock::new(store, "locks/scheduler", unique_identity());
/// assert_eq!(lock.describe(), "gs://my-bucket/locks/scheduler");
/// # Ok(())
/// # }
/// ```
///
/// # One write per second
///
/// Google accepts about one write per second to an object and refuses more with 429, which is
/// [`StoreErrorKind::Rejected`]. An elector then tries again a little later, so a lease can still be acquired
/// and released within one second. But a retry period of less than a second would be refused all the time. See
/// [`min_write_interval`](ConditionalStore::min_write_interval).
///
/// # Permissions
///
/// An elector needs `storage.objects.get`, `storage.objects.create` and, for every overwrite, `storage.objects.delete`:
/// the role Storage Object User has all three. Without `storage.objects.list`, Google answers 403 instead of 404 for an
/// object that does not exist yet.
///
/// # Deletions and listings
///
/// Deletions and listings use Google's gRPC client, which the first of them creates. An elector needs neither,
/// and never creates that client. See [`with_control`](Self::with_control).
///
/// Where gRPC is missing, such as behind a proxy for HTTP/1.1 or on an emulator that speaks JSON only, the objects of
/// a probe stay and are reported. The crate's JSON client (`Storage`) reads and writes objects and has no deletion, and
/// it returns neither its credentials nor its HTTP client, so this store cannot send a deletion of its own.
///
/// # Ages
///
/// The store does not tell the [age](VersionedObject::age) of an object, because the crate's JSON client shows neither
/// the `Date` nor the `Last-Modified` of an answer. So
/// [`trust_store_clock`](leaderelection::LeaderElectionConfigBuilder::trust_store_clock) has no effect here.
///
/// # Errors of other servers
///
/// The crate's JSON client reads the body of an error to its end, however long the body is, and gives no way to stop it.
/// The [request timeout](Self::with_request_timeout) is the limit for such a body.
///
/// # Cancellation safety
///
/// Dropping a call's future abandons the answer: a request that was already sent may still be applied.
#[derive(Clone)]
pub struct GcsStore {
    client: Fresh<Storage>,
    control: Fresh<StorageControl>,
    bucket: String,
    request_timeout: Duration,
    /// The credentials of the clients, if the store may look for others.
    found: Option<Found>,
}

impl GcsStore {
    /// The longest time that a request may take unless [`with_request_timeout`](Self::with_request_timeout)
    /// sets another limit.
    pub const DEFAULT_REQUEST_TIMEOUT: Duration = request::DEFAULT_TIMEOUT;

    /// Creates a store in `bucket`, with the client's configuration but without its retries.
    #[must_use]
    pub fn new(client: Storage, bucket: impl Into<String>) -> Self {
        Self {
            client: Fresh::fixed(client),
            control: Fresh::made_by(|| Box::pin(async { Ok(StorageControl::builder().build().await?) })),
            bucket: bucket.into(),
            request_timeout: Self::DEFAULT_REQUEST_TIMEOUT,
            found: None,
        }
    }

    /// Looks for other credentials when the service refuses these.
    pub(crate) fn with_found(self, found: Option<Found>) -> Self {
        Self { found, ..self }
    }

    fn explain(&self, operation: Operation, object: &str, error: Error) -> StoreError {
        let is_found_anew = error::doubts_credentials(&error) && self.found.as_ref().is_some_and(Found::refused);
        error::explain(operation, object, error, is_found_anew)
    }

    /// Sets the function that creates the client for the first deletion or listing. The default client uses
    /// Google's endpoint and the default credentials.
    ///
    /// ```no_run
    /// # use google_cloud_storage::client::{Storage, StorageControl};
    /// # use leaderelection_gcs::GcsStore;
    /// # fn example(storage: Storage) {
    /// let store = GcsStore::new(storage, "my-bucket")
    ///     .with_control(|| StorageControl::builder().with_endpoint("https://private.googleapis.com").build());
    /// # }
    /// ```
    #[must_use]
    pub fn with_control<F, R, E>(mut self, make: F) -> Self
    where
        F: Fn() -> R + Send + Sync + 'static,
        R: Future<Output = Result<StorageControl, E>> + Send + 'static,
        E: std::error::Error + Send + Sync + 'static,
    {
        self.control = Fresh::made_by(move || {
            let making = make();
            Box::pin(async move { Ok(making.await?) })
        });
        self
    }

    /// Sets the function that makes another client after a call without an answer. Its connections are new: the kept ones may
    /// lead nowhere. Without this function, a store that [`new`](Self::new) has created keeps its client.
    ///
    /// Give all clients the same credentials, so that none has to load them again.
    ///
    /// ```no_run
    /// use google_cloud_auth::credentials;
    /// use google_cloud_storage::client::Storage;
    /// use leaderelection_gcs::GcsStore;
    ///
    /// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
    /// let credentials = credentials::Builder::default().build()?;
    /// let make = move || Storage::builder().with_credentials(credentials.clone()).build();
    /// let store = GcsStore::new(make().await?, "my-bucket").with_renewal(make);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn with_renewal<F, R, E>(mut self, make: F) -> Self
    where
        F: Fn() -> R + Send + Sync + 'static,
        R: Future<Output = Result<Storage, E>> + Send + 'static,
        E: std::error::Error + Send + Sync + 'static,
    {
        self.client = self.client.renewed_by(move || {
            let making = make();
            Box::pin(async move { Ok(making.await?) })
        });
        self
    }

    /// Sets the limit for every request, from its first byte to the last byte of the answer. The limit includes
    /// getting the token.
    ///
    /// An elector sets a shorter limit for its own requests: `request_timeout`.
    #[must_use]
    pub fn with_request_timeout(mut self, request_timeout: Duration) -> Self {
        self.request_timeout = request_timeout;
        self
    }

    /// The bucket.
    #[must_use]
    pub fn bucket(&self) -> &str {
        &self.bucket
    }

    fn parent(&self) -> String {
        format!("projects/_/buckets/{}", self.bucket)
    }

    fn check(&self, key: &str) -> Result<(), StoreError> {
        // A URL drops these keys and characters, so the request would go to the bucket.
        if matches!(key, "" | "." | "..") || key.contains(['\n', '\r']) {
            let message = format!("{}: not an object name; use one such as locks/scheduler", self.describe(key));
            return Err(StoreError::new(StoreErrorKind::Fatal, message));
        }
        Ok(())
    }

    async fn remove(&self, key: &str, generation: Option<i64>) -> Result<(), StoreError> {
        let object = self.describe(key);
        let asked = self.control.ask(&object, async |client| {
            let request = client.delete_object().set_bucket(self.parent()).set_object(key);
            match one_attempt(request.set_or_clear_if_generation_match(generation)).send().await {
                Err(error) if generation.is_none() && error::is_absent(&error) => Ok(()),
                answer => answer.map_err(|error| self.explain(Operation::Delete, &object, error)),
            }
        });
        bounded(self.request_timeout, &object, asked).await
    }

    fn generation(&self, key: &str, version: &Version) -> Result<i64, StoreError> {
        // As a precondition, 0 means that the object does not exist.
        version.as_str().parse().ok().filter(|generation| *generation > 0).ok_or_else(|| {
            let message =
                format!("{}: {version:?} is not a generation; pass versions of this store", self.describe(key));
            StoreError::new(StoreErrorKind::Fatal, message)
        })
    }
}

#[async_trait]
impl ConditionalStore for GcsStore {
    async fn get(&self, key: &str) -> Result<Option<VersionedObject>, StoreError> {
        self.check(key)?;
        let object = self.describe(key);
        let asked = self.client.ask(&object, async |client| {
            let request = client.read_object(self.parent(), key);
            let request =
                request.with_retry_policy(NeverRetry).with_read_resume_policy(NeverResume).with_user_agent(USER_AGENT);
            let mut response = match request.send().await {
                Ok(response) => response,
                Err(error) if error::is_absent(&error) => return Ok(None),
                Err(error) => return Err(self.explain(Operation::Get, &object, error)),
            };
            let found = response.object();
            let version = error::version(found.generation, StoreErrorKind::Fatal, &object)?;
            let mut body = Body::new(&object, MAX_BODY_BYTES, u64::try_from(found.size).ok())?;
            while let Some(chunk) = response.next().await {
                body.push(&chunk.map_err(|error| error::broke_off(&object, &error))?)?;
            }
            Ok(Some(VersionedObject::new(body.finish(), version)))
        });
        bounded(self.request_timeout, &object, asked).await
    }

    async fn put(&self, key: &str, body: Bytes, precondition: &Precondition) -> Result<Version, StoreError> {
        StoreError::check_body(&body, || self.describe(key))?;
        self.check(key)?;
        let object = self.describe(key);
        let (operation, generation) = match precondition {
            Precondition::Absent => (Operation::Create, 0),
            Precondition::Matches(expected) => (Operation::Update, self.generation(key, expected)?),
        };
        let asked = self.client.ask(&object, async |client| {
            let request = client
                .write_object(self.parent(), key, body)
                .set_if_generation_match(generation)
                .set_content_type("application/json")
                .set_cache_control("no-store")
                .with_retry_policy(NeverRetry)
                .with_user_agent(USER_AGENT)
                // Above the threshold, an upload takes two requests or more.
                .with_resumable_upload_threshold(MAX_BODY_BYTES + 1);
            let written = request.send_buffered().await.map_err(|error| self.explain(operation, &object, error))?;
            error::version(written.generation, StoreErrorKind::Ambiguous, &object)
        });
        bounded(self.request_timeout, &object, asked).await
    }

    async fn delete(&self, key: &str, expected: Option<&Version>) -> Result<(), StoreError> {
        self.check(key)?;
        let generation = expected.map(|expected| self.generation(key, expected)).transpose()?;
        self.remove(key, generation).await
    }

    async fn list_page(
        &self,
        prefix: &str,
        token: Option<&PageToken>,
        limit: Option<u16>,
    ) -> Result<ListedPage, StoreError> {
        let object = self.describe(prefix);
        let asked = self.control.ask(&object, async |client| {
            let request = client.list_objects().set_parent(self.parent());
            let request = request.set_prefix(prefix).set_page_token(token.map_or("", PageToken::as_str));
            // Zero leaves the size of the page to the service.
            let request = one_attempt(request.set_page_size(limit.map_or(0, i32::from)));
            request.send().await.map_err(|error| self.explain(Operation::List, &object, error))
        });
        let page = bounded(self.request_timeout, &object, asked).await?;
        let listed = page.objects.into_iter().map(|found| {
            let version = error::version(found.generation, StoreErrorKind::Fatal, &object).ok();
            ListedObject::new(found.name, version)
        });
        let next = Some(page.next_page_token).filter(|token| !token.is_empty());
        Ok(ListedPage::new(listed.collect(), next.map(PageToken::new)))
    }

    fn describe(&self, key: &str) -> String {
        format!("gs://{}/{key}", self.bucket)
    }

    // https://cloud.google.com/storage/quotas#objects
    fn min_write_interval(&self) -> Option<Duration> {
        Some(Duration::from_secs(1))
    }
}

/// Lets a request of the gRPC client be sent once, under the name of this library.
fn one_attempt<R: RequestOptionsBuilder>(request: R) -> R {
    request.with_retry_policy(NeverRetry).with_user_agent(USER_AGENT)
}

// Written by hand, because the client's credentials may print a secret.
impl fmt::Debug for GcsStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GcsStore")
            .field("bucket", &self.bucket)
            .field("request_timeout", &self.request_timeout)
            .finish_non_exhaustive()
    }
}
