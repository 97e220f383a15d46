//! Azure Blob Storage, on Microsoft's own `azure_storage_blob` crate.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use async_trait::async_trait;
use azure_core::http::headers::HeaderName;
use azure_core::http::pager::PagerOptions;
use azure_core::http::{ClientOptions, Etag, RetryOptions, Transport, Url};
use azure_storage_blob::models::{
    BlobClientDeleteOptions, BlobClientDownloadOptions, BlobClientUploadOptions, BlobContainerClientListBlobsOptions,
};
use azure_storage_blob::{BlobClient, BlobContainerClient, BlobContainerClientOptions};
use bytes::Bytes;
use futures_util::TryStreamExt;
use leaderelection::implement::{
    ConditionalStore, ListedObject, ListedPage, MAX_BODY_BYTES, PageToken, Precondition, Version, VersionedObject,
};
use leaderelection::{ObjectLock, StoreError, StoreErrorKind};
use leaderelection_store_support::ca::Authorities;
use leaderelection_store_support::request::fresh::Fresh;
use leaderelection_store_support::request::{self, Body, Operation, bounded};

use crate::AzureCredential;
use crate::transport::Edges;
use crate::{connection_string, error, transport};

/// A lock that is one blob in an Azure container.
///
/// ```no_run
/// use leaderelection::{DefaultLeaderElector, Elector, LeaderCallbacks, LeaderElectionConfig, Leadership, shutdown_signal};
/// use leaderelection_azure::AzureLock;
///
/// async fn controller(leadership: Leadership) {
///     leadership.lost().await; // Work until then.
/// }
///
/// #[tokio::main]
/// async fn main() -> Result<(), Box<dyn std::error::Error>> {
///     let lock = AzureLock::from_env("my-container", "locks/scheduler").await?;
///     let callbacks = LeaderCallbacks::new().on_start_leading(controller);
///     let config = LeaderElectionConfig::builder(lock, callbacks).build()?;
///     DefaultLeaderElector::new(config).campaign(shutdown_signal()).await?; // Until SIGTERM or Ctrl-C.
///     Ok(())
/// }
/// ```
///
/// [`from_env`](ObjectLock::from_env) takes the name of the container. `AZURE_STORAGE_ACCOUNT` names the account, and
/// `AZURE_STORAGE_CONNECTION_STRING` names it and has its key; one of them is enough. Without a connection string, the credential
/// is [that of the process](AzureCredential::from_environment), and the account one of the public cloud. Any other container or
/// credential goes into [`AzureStore::new`].
pub type AzureLock = ObjectLock<AzureStore>;

/// A [`ConditionalStore`] in one container of Azure Blob Storage.
///
/// The version is the ETag, exactly as the service spells it. Writes carry `If-None-Match: *` or `If-Match`,
/// deletions `If-Match`. Every call sends one request (one per five thousand blobs for a listing). The client's
/// retries are off, because a repeated write conflicts with its own first attempt.
///
/// The [age](VersionedObject::age) of an object is the answer's `Date` less its `Last-Modified`, in whole seconds. Both are
/// times of the service.
///
/// ```
/// use leaderelection::{ObjectStoreBasedLock, unique_identity};
/// use leaderelection_azure::{AzureLock, AzureCredential, AzureStore};
///
/// let credential = azure_identity::DeveloperToolsCredential::new(None)?;
/// let container = "https://account.blob.core.windows.net/container";
/// let store = AzureStore::new(container, AzureCredential::EntraId(credential))?;
/// let lock = AzureLock::new(store, "locks/scheduler", unique_identity());
/// assert_eq!(lock.describe(), "https://account.blob.core.windows.net/container/locks/scheduler");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Permissions
///
/// An elector reads and writes blobs: the role Storage Blob Data Contributor, or a SAS with the
/// permissions `rcw`. Deletions need `d`, listings `l`. The container must exist.
///
/// # Connections
///
/// After a call without an answer, later calls take new connections: the kept ones may lead nowhere. A transport
/// [of the program](Self::with_options) keeps its own.
///
/// # Secrets
///
/// Account keys, tokens and the query of the container's URL, which may be a SAS, appear neither in
/// errors nor in [`describe`](ConditionalStore::describe) nor in `Debug`.
///
/// # Cancellation safety
///
/// Dropping a call's future abandons the answer: a request that was already sent may still be applied.
#[derive(Clone)]
pub struct AzureStore {
    container: Arc<BlobContainerClient>,
    transport: Fresh<Transport>,
    // The container's URL without its query.
    name: String,
    request_timeout: Duration,
}

impl AzureStore {
    /// The longest time that a request may take unless [`with_request_timeout`](Self::with_request_timeout)
    /// sets another limit.
    pub const DEFAULT_REQUEST_TIMEOUT: Duration = request::DEFAULT_TIMEOUT;

    /// Creates a store in the container at `container_url`, such as
    /// `https://account.blob.core.windows.net/container`.
    ///
    /// # Errors
    ///
    /// [`StoreErrorKind::Fatal`] if the URL or the credential is invalid, or if the machine has no certificates of authorities
    /// for https. Nothing is sent.
    pub fn new(container_url: &str, credential: AzureCredential) -> Result<Self, StoreError> {
        Self::with_options(container_url, credential, ClientOptions::default())
    }

    /// Creates a store as [`new`](Self::new) does, whose connections trust these authorities, too.
    pub(crate) fn trusting(
        container_url: &str,
        credential: AzureCredential,
        authorities: Option<Authorities>,
    ) -> Result<Self, StoreError> {
        Self::made(container_url, credential, ClientOptions::default(), authorities)
    }

    /// Creates a store as [`new`](Self::new) does, with a transport, policies, logging and tracing of your own.
    /// The store uses all `options` except the retries.
    ///
    /// A transport should not decompress answers by itself, as the documentation of `azure_storage_blob` says.
    ///
    /// # Errors
    ///
    /// The same as for [`new`](Self::new).
    pub fn with_options(
        container_url: &str,
        credential: AzureCredential,
        options: ClientOptions,
    ) -> Result<Self, StoreError> {
        Self::made(container_url, credential, options, None)
    }

    fn made(
        container_url: &str,
        credential: AzureCredential,
        mut options: ClientOptions,
        authorities: Option<Authorities>,
    ) -> Result<Self, StoreError> {
        let url = container(container_url)?;
        options.retry = RetryOptions::none();
        let mut name = url.clone();
        name.set_query(None);
        let transport = transport::renewed(options.transport, name.as_str(), authorities)?;
        options.transport = Some(Edges::transport());
        let token = credential.apply(&url, &mut options)?;
        let options = BlobContainerClientOptions { client_options: options, ..Default::default() };
        // The SDK's own error repeats the URL, which may hold a SAS.
        let client = BlobContainerClient::new(url, token, Some(options))
            .map_err(|_| error::misconfigured(format!("cannot create a client for {name}; use https with Entra ID")))?;
        let (container, request_timeout) = (Arc::new(client), Self::DEFAULT_REQUEST_TIMEOUT);
        Ok(Self { container, transport, name: name.into(), request_timeout })
    }

    /// Creates a store in `container`, in the account of a connection string. The portal shows a connection
    /// string with an account key or a SAS; `UseDevelopmentStorage=true` means the emulator on its usual port.
    ///
    /// ```
    /// use leaderelection_azure::AzureStore;
    ///
    /// let store = AzureStore::from_connection_string("UseDevelopmentStorage=true", "container")?;
    /// # Ok::<(), leaderelection::StoreError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`StoreErrorKind::Fatal`] if a part of the connection string is missing or invalid. Nothing is sent.
    pub fn from_connection_string(connection_string: &str, container: &str) -> Result<Self, StoreError> {
        Self::of_connection_string(connection_string, container, None)
    }

    pub(crate) fn of_connection_string(
        connection_string: &str,
        container: &str,
        authorities: Option<Authorities>,
    ) -> Result<Self, StoreError> {
        let (container_url, credential) = connection_string::parse(connection_string, container)?;
        Self::trusting(&container_url, credential, authorities)
    }

    /// Sets the limit for every request, from its first byte to the last byte of the answer. The limit includes
    /// getting the token. A token that takes longer is got all the same, and serves the next request.
    ///
    /// An elector sets a shorter limit for its own requests: `request_timeout`.
    #[must_use]
    pub fn with_request_timeout(mut self, request_timeout: Duration) -> Self {
        self.request_timeout = request_timeout;
        self
    }

    /// Returns the container's URL without a SAS.
    #[must_use]
    pub fn container_url(&self) -> &str {
        &self.name
    }

    fn blob(&self, key: &str) -> Result<BlobClient, StoreError> {
        // A URL drops these segments and characters silently, so the request would go to another blob or to the
        // container.
        if matches!(key, "" | "." | "..") || key.contains(['\t', '\n', '\r']) {
            let message = format!("{}: not a blob name; use one without control characters", self.describe(key));
            return Err(StoreError::new(StoreErrorKind::Fatal, message));
        }
        Ok(self.container.blob_client(key))
    }

    async fn ask<T>(
        &self,
        object: &str,
        call: impl AsyncFnOnce(Transport) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        bounded(self.request_timeout, object, self.transport.ask(object, call)).await
    }

    async fn remove(&self, key: &str, if_match: Option<Etag>) -> Result<(), StoreError> {
        let object = self.describe(key);
        let blob = self.blob(key)?;
        let is_unconditional = if_match.is_none();
        self.ask(&object, async |transport| {
            let method_options = Edges::by(transport);
            let options = BlobClientDeleteOptions { if_match, method_options, ..Default::default() };
            match blob.delete(Some(options)).await {
                Ok(_) => Ok(()),
                Err(error) if is_unconditional && error::is_absent(&error) => Ok(()),
                Err(error) => Err(error::explain(Operation::Delete, &object, error)),
            }
        })
        .await
    }
}

#[async_trait]
impl ConditionalStore for AzureStore {
    async fn get(&self, key: &str) -> Result<Option<VersionedObject>, StoreError> {
        let object = self.describe(key);
        let blob = self.blob(key)?;
        // One byte more than the limit, in one range: for a larger blob, the SDK would send more requests for
        // the rest.
        let limit = MAX_BODY_BYTES + 1;
        self.ask(&object, async |transport| {
            let options = BlobClientDownloadOptions {
                range: Some((0..limit as u64).into()),
                method_options: Edges::by(transport),
                ..Default::default()
            };
            let download = match blob.download(Some(options)).await {
                Ok(download) => download,
                Err(error) if error::is_absent(&error) => return Ok(None),
                Err(error) => return Err(error::explain(Operation::Get, &object, error)),
            };
            let date = download.headers.get_optional_str(&HeaderName::from_static("date"));
            let age = request::answer::age(date, download.properties.last_modified.map(SystemTime::from));
            let version = error::version(download.properties.etag, StoreErrorKind::Fatal, &object)?;
            let (length, mut stream) = (download.properties.content_length, download.body);
            let mut body = Body::new(&object, MAX_BODY_BYTES, length)?;
            let broke_off = |error| request::broke_off(&object, error::words(error));
            while let Some(chunk) = stream.try_next().await.map_err(broke_off)? {
                body.push(&chunk)?;
            }
            Ok(Some(VersionedObject::new(body.finish(), version).with_age(age)))
        })
        .await
    }

    async fn put(&self, key: &str, body: Bytes, precondition: &Precondition) -> Result<Version, StoreError> {
        StoreError::check_body(&body, || self.describe(key))?;
        let object = self.describe(key);
        let blob = self.blob(key)?;
        self.ask(&object, async |transport| {
            let options = BlobClientUploadOptions {
                blob_cache_control: Some("no-store".to_owned()),
                blob_content_type: Some("application/json".to_owned()),
                method_options: Edges::by(transport),
                ..Default::default()
            };
            let (operation, options) = match precondition {
                Precondition::Absent => (Operation::Create, options.if_not_exists()),
                Precondition::Matches(expected) => {
                    (Operation::Update, BlobClientUploadOptions { if_match: Some(expected.as_str().into()), ..options })
                }
            };
            let upload = blob.upload(body.into(), Some(options)).await;
            let upload = upload.map_err(|error| error::explain(operation, &object, error))?;
            error::version(upload.etag, StoreErrorKind::Ambiguous, &object)
        })
        .await
    }

    async fn delete(&self, key: &str, expected: Option<&Version>) -> Result<(), StoreError> {
        self.remove(key, expected.map(|expected| expected.as_str().into())).await
    }

    async fn list_page(
        &self,
        prefix: &str,
        token: Option<&PageToken>,
        limit: Option<u16>,
    ) -> Result<ListedPage, StoreError> {
        let object = self.describe(prefix);
        let explain = |error| error::explain(Operation::List, &object, error);
        let page = self.ask(&object, async |transport| {
            let options = BlobContainerClientListBlobsOptions {
                prefix: Some(prefix.to_owned()).filter(|prefix| !prefix.is_empty()),
                marker: token.map(|token| token.as_str().to_owned()),
                maxresults: limit.map(i32::from),
                method_options: PagerOptions { context: Edges::by(transport).context, ..Default::default() },
                ..Default::default()
            };
            self.container.list_blobs(Some(options)).map_err(explain)?.into_pages().try_next().await.map_err(explain)
        });
        let page = page.await?;
        let Some(page) = page else { return Ok(ListedPage::new(Vec::new(), None)) };
        let page = page.into_model().map_err(explain)?;
        let listed = page.blob_items.into_iter().filter_map(|blob| {
            let etag = blob.properties.and_then(|properties| properties.etag);
            blob.name.map(|name| ListedObject::new(name, etag.map(listed_version)))
        });
        let next = page.next_marker.filter(|marker| !marker.is_empty());
        Ok(ListedPage::new(listed.collect(), next.map(PageToken::new)))
    }

    fn describe(&self, key: &str) -> String {
        format!("{}/{key}", self.name)
    }

    fn min_write_interval(&self) -> Option<Duration> {
        None
    }
}

// Written by hand, because the client's URL may contain a SAS.
impl fmt::Debug for AzureStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AzureStore")
            .field("container", &self.name)
            .field("request_timeout", &self.request_timeout)
            .finish_non_exhaustive()
    }
}

/// Returns the version in a listing. Listings leave out the quotes that an ETag has in a header.
fn listed_version(etag: Etag) -> Version {
    let etag = String::from(etag);
    Version::new(if etag.starts_with('"') { etag } else { format!("\"{etag}\"") })
}

fn container(text: &str) -> Result<Url, StoreError> {
    let wrong = |problem: &str| {
        error::misconfigured(format!(
            "{problem}; a valid URL looks like https://account.blob.core.windows.net/container"
        ))
    };
    let mut url = Url::parse(text).map_err(|error| wrong(&format!("the container's URL is not a URL: {error}")))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(wrong("the container's URL starts with neither https:// nor http://"));
    }
    if !url.username().is_empty() || url.password().is_some() || url.fragment().is_some() {
        return Err(wrong("the container's URL has a part that does not belong there"));
    }
    let path = url.path().trim_end_matches('/').to_owned();
    if path.is_empty() {
        return Err(wrong("the container's URL names no container"));
    }
    url.set_path(&path);
    Ok(url)
}
