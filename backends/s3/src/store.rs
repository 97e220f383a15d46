//! Amazon S3 and the stores that speak its protocol, on the `aws-sdk-s3` crate.

use std::fmt;
use std::time::Duration;

use async_trait::async_trait;
use aws_sdk_s3::Client;
use aws_sdk_s3::config::SharedCredentialsProvider;
use aws_sdk_s3::config::retry::RetryConfig;
use aws_sdk_s3::error::{ProvideErrorMetadata, SdkError};
use aws_smithy_runtime_api::client::identity::ResolveIdentity as _;
use aws_smithy_runtime_api::client::orchestrator::HttpResponse;
use bytes::Bytes;
use leaderelection::implement::{
    ConditionalStore, ListedObject, ListedPage, PageToken, Precondition, Version, VersionedObject,
};
use leaderelection::{ObjectLock, StoreError, StoreErrorKind};
use leaderelection_store_support::request::fresh::Fresh;
use leaderelection_store_support::request::{self, Operation, bounded};

use crate::answer::Edges;
use crate::client::{Made, digest, renewed};
use crate::date::AnswerDate;
use crate::directory::Sessions;
use crate::error::Sender;
use crate::identity::Identities;
use crate::object::{read, version};
use crate::{directory, endpoint, error};

/// A lock that is one object in an S3 bucket.
///
/// ```no_run
/// use leaderelection::{DefaultLeaderElector, Elector, LeaderCallbacks, LeaderElectionConfig, Leadership, shutdown_signal};
/// use leaderelection_s3::S3Lock;
///
/// async fn controller(leadership: Leadership) {
///     leadership.lost().await; // Work until then.
/// }
///
/// #[tokio::main]
/// async fn main() -> Result<(), Box<dyn std::error::Error>> {
///     let lock = S3Lock::from_env("my-bucket", "locks/scheduler").await?;
///     let callbacks = LeaderCallbacks::new().on_start_leading(controller);
///     let config = LeaderElectionConfig::builder(lock, callbacks).build()?;
///     DefaultLeaderElector::new(config).campaign(shutdown_signal()).await?; // Until SIGTERM or Ctrl-C.
///     Ok(())
/// }
/// ```
///
/// [`from_env`](ObjectLock::from_env) takes the name of the bucket. Region, endpoint and credentials are those that the AWS SDK
/// finds: `AWS_REGION`, `AWS_ENDPOINT_URL`, `AWS_ACCESS_KEY_ID` with `AWS_SECRET_ACCESS_KEY`, `AWS_PROFILE` and its files, a web
/// identity, the role of the container or of the machine. A server that these name is asked with the bucket in the path, as
/// compatible stores expect it; [`S3Location`](crate::S3Location) can ask in the other way. `AWS_CA_BUNDLE` names authorities
/// of certificates.
pub type S3Lock = ObjectLock<S3Store>;

/// A [`ConditionalStore`] in one bucket of Amazon S3 or of a compatible store.
///
/// The version is the ETag, exactly as the store spells it. Writes carry `If-None-Match: *` or
/// `If-Match`, deletions `If-Match`. Objects are written with `Cache-Control: no-store`, so that no proxy on the way
/// answers for the store.
///
/// The [age](VersionedObject::age) of an object is the answer's `Date` less its `Last-Modified`, in whole seconds. Both are
/// times of the store's servers.
///
/// The store uses the client's region, endpoint, path style, credentials and interceptors, but not the client's
/// retries. Every call sends one request (one per thousand keys for a listing), because a repeated write conflicts with
/// its own first attempt.
///
/// The store keeps the credentials by itself, instead of the client's identity cache. A task of their own loads new ones
/// from 15 minutes before the end of the old, which serve meanwhile, and after the store has refused the old. The SDK's own
/// providers read the files of profiles once; that of [`S3Location::client`](crate::S3Location::client) reads them at each
/// load. What has no end is loaded anew every 15 minutes.
///
/// ```
/// use aws_sdk_s3::config::{BehaviorVersion, Config, Credentials, Region};
/// use leaderelection::{ObjectStoreBasedLock, unique_identity};
/// use leaderelection_s3::{S3Lock, S3Store};
///
/// let config = Config::builder()
///     .behavior_version(BehaviorVersion::latest())
///     .region(Region::new("eu-central-1"))
///     .credentials_provider(Credentials::new("key id", "secret", None, None, "example"))
///     .build();
/// let store = S3Store::new(aws_sdk_s3::Client::from_conf(config), "my-bucket");
/// let lock = S3Lock::new(store, "locks/scheduler", unique_identity());
/// assert_eq!(lock.describe(), "s3://my-bucket/locks/scheduler");
/// ```
///
/// # Permissions
///
/// An elector needs `s3:GetObject` and `s3:PutObject` on the object; without `s3:GetObject`, a conditional update is
/// refused. Grant `s3:ListBucket` too: without it, S3 answers 403 instead of 404 for an object that does not exist yet.
/// Deletions need `s3:DeleteObject`.
///
/// # Directory buckets
///
/// A bucket whose name ends with `--x-s3` is a directory bucket, of the storage class S3 Express One Zone. Sessions sign its
/// requests (`CreateSession`). The store opens them with the client's own credentials, and renews each from the middle of
/// its life on a task of its own, so that no request waits for a renewal. The client's own provider of sessions is not used.
/// The permission is `s3express:CreateSession`. The tests run on a server of their own with the documented rules: no real
/// directory bucket was met.
///
/// # S3-compatible stores
///
/// An S3-compatible store needs its endpoint, usually path-style addresses, and often a client that sends
/// checksums only where the protocol requires them:
///
/// ```
/// # use aws_sdk_s3::config::{BehaviorVersion, Config, Region};
/// use aws_sdk_s3::config::{RequestChecksumCalculation, ResponseChecksumValidation};
///
/// let config = Config::builder()
///     .behavior_version(BehaviorVersion::latest())
///     .region(Region::new("us-east-1"))
///     .endpoint_url("http://127.0.0.1:8333")
///     .force_path_style(true)
///     .request_checksum_calculation(RequestChecksumCalculation::WhenRequired)
///     .response_checksum_validation(ResponseChecksumValidation::WhenRequired)
///     .build();
/// ```
///
/// Not every store enforces the conditions:
///
/// | store | create | update | delete |
/// |---|---|---|---|
/// | Amazon S3, general purpose buckets | yes | yes | yes |
/// | Amazon S3, directory buckets | documented | documented | documented |
/// | SeaweedFS 4.48, on which the tests run | yes, but see below | yes | yes |
/// | Ceph's gateway, DigitalOcean Spaces | yes | [`with_bare_etags`](S3Store::with_bare_etags) | |
/// | stores that answer 501 | refused with [`StoreErrorKind::Fatal`] | | |
///
/// SeaweedFS reports a conflict when the name of a new key is the directory of existing keys: `locks` after
/// `locks/scheduler`. Do not choose such keys there.
///
/// A single request cannot show whether a store enforces the conditions. Probe the store with
/// `leaderelection-conformance` before you rely on it, or let every elector [require
/// that](leaderelection::LeaderElectionConfigBuilder::store_check). The elector itself never deletes.
///
/// # Connections
///
/// After a call without an answer, later calls take new connections: the kept ones may lead nowhere. If the client was
/// given an HTTP client by the program, they share its connections, which no store can replace.
///
/// # Cancellation safety
///
/// Dropping a call's future abandons the answer: a request that was already sent may still be applied.
#[derive(Clone)]
pub struct S3Store {
    client: Fresh<Client>,
    identities: Identities,
    bucket: String,
    // The SDK's operation timeout is not enough: it ends where the body of a GET begins.
    request_timeout: Duration,
    bare_etags: bool,
    /// The region may be that of the machine, which is asked for it until it tells.
    asks_machine: bool,
    /// Those of a directory bucket.
    sessions: Option<Sessions>,
}

impl S3Store {
    /// The longest time that a request may take unless [`with_request_timeout`](Self::with_request_timeout)
    /// sets another limit.
    pub const DEFAULT_REQUEST_TIMEOUT: Duration = request::DEFAULT_TIMEOUT;

    /// Creates a store in `bucket`, with the client's configuration but without its retries.
    #[must_use]
    pub fn new(client: Client, bucket: impl Into<String>) -> Self {
        Self::made(client, bucket, Made::default())
    }

    /// Creates a store whose further clients are made so.
    pub(crate) fn made(client: Client, bucket: impl Into<String>, made: Made) -> Self {
        let bucket = bucket.into();
        let (identities, config) = (Identities::default(), client.config().to_builder());
        let config = config.retry_config(RetryConfig::disabled()).interceptor(Edges);
        let config = config.identity_cache(identities.clone());
        let client = renewed(config.clone().build(), made.clone());
        let sessions =
            directory::is_directory(&bucket).then(|| Sessions::new(client.clone(), identities.clone(), &bucket));
        let client = match &sessions {
            None => client,
            Some(sessions) => {
                let provider = SharedCredentialsProvider::new(sessions.clone());
                let identities = identities.clone().but_for(provider.cache_partition());
                let mut config = config.identity_cache(identities);
                // The other setter would wrap the provider once more, with another partition.
                config.set_express_credentials_provider(Some(provider));
                renewed(config.build(), made.clone())
            }
        };
        let request_timeout = Self::DEFAULT_REQUEST_TIMEOUT;
        let asks_machine = made.region.is_some();
        Self { client, identities, bucket, request_timeout, bare_etags: false, sessions, asks_machine }
    }

    /// Sets the limit for every request, from its first byte to the last byte of the answer.
    ///
    /// The client's own timeouts apply as well. An elector sets a shorter limit for its own requests:
    /// `request_timeout`.
    #[must_use]
    pub fn with_request_timeout(mut self, request_timeout: Duration) -> Self {
        self.request_timeout = request_timeout;
        self
    }

    /// Sends the ETags of conditions without their quotes, if `bare_etags` is `true`.
    ///
    /// HTTP has the quotes, and so has Amazon S3. Ceph's gateway, and services on top of it such as DigitalOcean
    /// Spaces, compare the condition with the bare ETag, and refuse every update and deletion that quotes it:
    /// nobody could renew a lease there. The probe in `leaderelection-conformance` finds such a store.
    #[must_use]
    pub fn with_bare_etags(mut self, bare_etags: bool) -> Self {
        self.bare_etags = bare_etags;
        self
    }

    /// The URL of the bucket, as the client resolves it from its endpoint, region and addressing style. Nothing is
    /// sent.
    ///
    /// # Errors
    ///
    /// [`StoreErrorKind::Fatal`] if the client has no region, or an invalid region.
    pub async fn endpoint(&self) -> Result<String, StoreError> {
        let client = self.client.client(&format!("s3://{}", self.bucket)).await?;
        endpoint::resolved(&client, &self.bucket).await
    }

    /// The bucket.
    #[must_use]
    pub fn bucket(&self) -> &str {
        &self.bucket
    }

    async fn explain<E>(
        &self,
        client: &Client,
        operation: Operation,
        object: &str,
        error: SdkError<E, HttpResponse>,
    ) -> StoreError
    where
        E: ProvideErrorMetadata + std::error::Error + Send + Sync + 'static,
    {
        let endpoint = match error::needs_endpoint(&error) {
            true => endpoint::resolved(client, &self.bucket).await.ok(),
            false => None,
        };
        if let Some(sessions) = self.sessions.as_ref().filter(|_| error::doubts_session(&error)) {
            sessions.refused();
        }
        // With a session, the opening of the next one tells.
        let is_loaded_anew = error::doubts_credentials(&error) && self.sessions.is_none() && self.identities.refused();
        let has_region = client.config().region().is_some_and(|region| !region.as_ref().is_empty());
        let asks_machine = self.asks_machine && !has_region;
        if asks_machine {
            self.client.refused();
        }
        let by_session = self.sessions.is_some();
        error::explain(
            operation,
            object,
            error,
            &Sender { has_region, asks_machine, endpoint, by_session, is_loaded_anew },
        )
    }

    async fn ask<T>(
        &self,
        object: &str,
        call: impl AsyncFnOnce(Client) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        bounded(self.request_timeout, object, self.client.ask(object, call)).await
    }

    async fn remove(&self, key: &str, condition: Option<&str>) -> Result<(), StoreError> {
        let object = self.describe(key);
        self.ask(&object, async |client| {
            let request = client.delete_object().bucket(&self.bucket).key(key);
            match request.set_if_match(condition.map(str::to_owned)).send().await {
                Ok(_) => Ok(()),
                Err(error) if condition.is_none() && error::is_absent(&error) => Ok(()),
                Err(error) => Err(self.explain(&client, Operation::Delete, &object, error).await),
            }
        })
        .await
    }

    /// Returns the version as the store expects it in `If-Match`.
    fn condition<'a>(&self, version: &'a Version) -> &'a str {
        let etag = version.as_str();
        let bare = etag.strip_prefix('"').and_then(|etag| etag.strip_suffix('"')).filter(|_| self.bare_etags);
        bare.unwrap_or(etag)
    }
}

#[async_trait]
impl ConditionalStore for S3Store {
    async fn get(&self, key: &str) -> Result<Option<VersionedObject>, StoreError> {
        let object = self.describe(key);
        self.ask(&object, async |client| {
            let date = AnswerDate::default();
            let request = client.get_object().bucket(&self.bucket).key(key).customize();
            match request.interceptor(date.clone()).send().await {
                Ok(output) => read(&object, output, &date).await.map(Some),
                Err(error) if error::is_absent(&error) => Ok(None),
                Err(error) => Err(self.explain(&client, Operation::Get, &object, error).await),
            }
        })
        .await
    }

    async fn put(&self, key: &str, body: Bytes, precondition: &Precondition) -> Result<Version, StoreError> {
        let object = self.describe(key);
        StoreError::check_body(&body, || object.clone())?;
        self.ask(&object, async |client| {
            let request = client.put_object().bucket(&self.bucket).key(key);
            // A directory bucket demands no digest.
            let digest = if self.sessions.is_none() { digest(&client, &body) } else { None };
            let request = request.set_content_md5(digest);
            let (operation, request) = match precondition {
                Precondition::Absent => (Operation::Create, request.if_none_match("*")),
                Precondition::Matches(expected) => (Operation::Update, request.if_match(self.condition(expected))),
            };
            let request = request.cache_control("no-store").content_type("application/json").body(body.into());
            match request.send().await {
                Ok(output) => version(output.e_tag, StoreErrorKind::Ambiguous, &object),
                Err(error) => Err(self.explain(&client, operation, &object, error).await),
            }
        })
        .await
    }

    async fn delete(&self, key: &str, expected: Option<&Version>) -> Result<(), StoreError> {
        self.remove(key, expected.map(|expected| self.condition(expected))).await
    }

    async fn list_page(
        &self,
        prefix: &str,
        token: Option<&PageToken>,
        limit: Option<u16>,
    ) -> Result<ListedPage, StoreError> {
        let object = self.describe(prefix);
        // A directory bucket lists whole folders. The keys of other objects are left out below.
        let listed_by = if self.sessions.is_some() { directory::listed_by(prefix) } else { prefix };
        let page = self.ask(&object, async |client| {
            let request = client.list_objects_v2().bucket(&self.bucket).prefix(listed_by);
            let request = match token {
                Some(token) if token.key().is_some() => request.start_after(token.as_str()),
                token => request.set_continuation_token(token.map(|token| token.as_str().to_owned())),
            };
            match request.set_max_keys(limit.map(i32::from)).send().await {
                Ok(page) => Ok(page),
                Err(error) => Err(self.explain(&client, Operation::List, &object, error).await),
            }
        });
        let page = page.await?;
        let listed = page.contents.unwrap_or_default().into_iter().filter_map(|entry| {
            let version = entry.e_tag.map(Version::new);
            entry.key.filter(|key| key.starts_with(prefix)).map(|key| ListedObject::new(key, version))
        });
        let page = ListedPage::new(listed.collect(), page.next_continuation_token.map(PageToken::new));
        Ok(if self.sessions.is_some() { page } else { page.seekable() })
    }

    fn describe(&self, key: &str) -> String {
        format!("s3://{}/{key}", self.bucket)
    }

    fn min_write_interval(&self) -> Option<Duration> {
        None
    }
}

// Written by hand, because the client's configuration may print a secret.
impl fmt::Debug for S3Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("S3Store")
            .field("bucket", &self.bucket)
            .field("request_timeout", &self.request_timeout)
            .finish_non_exhaustive()
    }
}
