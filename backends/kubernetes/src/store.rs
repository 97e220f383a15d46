//! Kubernetes Leases, on the `kube` crate.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use http::Method;
use leaderelection::implement::{ConditionalStore, ListedPage, PageToken, Precondition, Version, VersionedObject};
use leaderelection::{ObjectLock, StoreError, StoreErrorKind};
use leaderelection_store_support::request::{self, Operation, bounded, without_version};
use serde_json::json;

use crate::lease::{Lease, LeaseBody, check_name};
use crate::seen::Seen;
use crate::server::{Answer, Server};
use crate::tokens::Again;
use crate::{error, lease, server, tokens};

/// A lock that is one Kubernetes Lease.
pub type KubernetesLeaseLock = ObjectLock<LeaseStore>;

/// The Leases (`coordination.k8s.io/v1`) of one namespace, as a [`ConditionalStore`] of records.
///
/// The lock excludes candidates of client-go's elector on the same Lease, and takes over from them, and the other way
/// round. The fields of the Lease are theirs, and an annotation has the whole record.
///
/// ```no_run
/// use leaderelection::{ObjectStoreBasedLock, unique_identity};
/// use leaderelection_kubernetes::{KubernetesLeaseLock, LeaseStore};
///
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// let store = LeaseStore::new(kube::Config::infer().await?, "default")?;
/// let lock = KubernetesLeaseLock::new(store, "scheduler", unique_identity());
/// assert_eq!(lock.describe(), "lease://default/scheduler");
/// # Ok(())
/// # }
/// ```
///
/// # Records only
///
/// A Lease holds one record and nothing else, so this store refuses other bodies: locks of a session, fenced objects
/// and the objects of a probe belong in an object store.
///
/// # Versions
///
/// The version is the `uid` and the `resourceVersion` of the Lease, and both are in every update. The API server
/// creates a deleted Lease anew for an update, whatever `resourceVersion` the update names; only the `uid` prevents
/// this. Labels, owner references and annotations of others stay as they are.
///
/// # Candidates of client-go
///
/// client-go takes a lease over that it has not seen change for the duration of the lease, and it compares the times
/// of a Lease by the second. So the `renewTime` of a renewal is always in another second than the one before. With a
/// retry period below one second, `renewTime` is at times one second ahead of the clock. Old versions of client-go wait
/// for their own lease duration and not for the one in the Lease: give all candidates the same.
///
/// A candidate of client-go with `ReleaseOnCancel` that was frozen beyond its lease empties the Lease when it
/// continues, even if another candidate holds the Lease by then. Candidates of this library see that the lease is still
/// held, and candidates of client-go do not. So switch `ReleaseOnCancel` off in the Go version first.
///
/// # Requests
///
/// Every request names this library as its user agent, and every write names it as the field manager.
///
/// The client is made here, because a client that exists may repeat writes: kube's own repeats them up to 15 times.
/// Every call sends one request, except for the first update of a version that this store has never read: the store
/// then reads the Lease first. The client belongs to the Tokio runtime that creates it. After a request without an answer,
/// another client with new connections is made of the same configuration, and the token stays.
///
/// # Permissions
///
/// An elector needs the verbs `get`, `create` and `update` on `leases` in the API group `coordination.k8s.io`. The
/// verbs `list` and `delete` are only for people. An [`Announcer`](crate::Announcer) needs others.
///
/// # Cancellation safety
///
/// Dropping a call's future abandons the answer: a request that was already sent may still be applied.
#[derive(Clone)]
pub struct LeaseStore {
    server: Server,
    namespace: String,
    labels: Arc<BTreeMap<String, String>>,
    seen: Arc<Seen>,
}

impl LeaseStore {
    /// The longest time that a request may take unless [`with_request_timeout`](Self::with_request_timeout)
    /// sets another limit.
    pub const DEFAULT_REQUEST_TIMEOUT: Duration = request::DEFAULT_TIMEOUT;

    /// Creates a store of the Leases in `namespace`, with a client of this configuration but without kube's retries.
    ///
    /// # Panics
    ///
    /// If it is called outside of a Tokio runtime.
    ///
    /// # Errors
    ///
    /// [`StoreErrorKind::Fatal`] if no client can be made of the configuration.
    pub fn new(config: kube::Config, namespace: impl Into<String>) -> Result<Self, StoreError> {
        Self::read_again_by(tokens::same(&config), config, namespace.into())
    }

    /// Creates the store as [`new`](Self::new) does. `again` reads the configuration anew.
    pub(crate) fn read_again_by(again: Again, config: kube::Config, namespace: String) -> Result<Self, StoreError> {
        let connection = server::connection(config, again).map_err(|error| error::no_client(&namespace, &error))?;
        Ok(Self {
            server: Server::leases(connection, &namespace),
            namespace,
            labels: Arc::default(),
            seen: Arc::default(),
        })
    }

    /// Sets labels that every write gives to its Lease: client-go's `LeaseLabels`. Other labels of the Lease stay.
    ///
    /// The API server refuses an invalid label with the first write, which then fails as [`StoreErrorKind::Fatal`].
    #[must_use]
    pub fn with_labels<K: Into<String>, V: Into<String>>(mut self, labels: impl IntoIterator<Item = (K, V)>) -> Self {
        self.labels = Arc::new(labels.into_iter().map(|(key, value)| (key.into(), value.into())).collect());
        self
    }

    /// Sets the limit for every request, from its first byte to the last byte of the answer. The limit includes getting
    /// the token. The request names the limit, so that the API server does not work on a request that nobody waits for.
    ///
    /// An elector sets a shorter limit for its own requests: `request_timeout`.
    #[must_use]
    pub fn with_request_timeout(mut self, request_timeout: Duration) -> Self {
        self.server.request_timeout = request_timeout;
        self
    }

    /// The namespace.
    #[must_use]
    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    fn check(&self, key: &str) -> Result<(), StoreError> {
        check_name(key)
            .map_err(|problem| StoreError::new(StoreErrorKind::Fatal, format!("{}: {problem}", self.describe(key))))
    }

    fn of_record(&self, key: &str, body: &[u8]) -> Result<LeaseBody, StoreError> {
        StoreError::check_body(body, || self.describe(key))?;
        LeaseBody::of_record(body).map_err(|problem| {
            let message = format!("{}: a Lease cannot hold this: {problem}", self.describe(key));
            StoreError::new(StoreErrorKind::Fatal, message)
        })
    }

    /// Reads a Lease and remembers it.
    async fn read(&self, key: &str, object: &str) -> Result<Option<Lease>, StoreError> {
        let answer = self.server.send(Method::GET, key, None, object).await?;
        if answer.is_missing_lease() {
            return Ok(None);
        }
        self.lease(answer, key, Operation::Get, object).map(Some)
    }

    /// The Lease in a successful answer.
    fn lease(&self, answer: Answer, key: &str, operation: Operation, object: &str) -> Result<Lease, StoreError> {
        let kind = if operation.is_write() { StoreErrorKind::Ambiguous } else { StoreErrorKind::Fatal };
        let lease = Lease::of_answer(answer.content(operation, object)?)
            .ok_or_else(|| without_version(kind, object, "uid and resourceVersion of a Lease"))?;
        self.seen.remember(key, &lease);
        Ok(lease)
    }

    /// The Lease of this version, with what others have written into it.
    async fn replaced(&self, key: &str, expected: &Version, object: &str) -> Result<Lease, StoreError> {
        if let Some(lease) = self.seen.at(key, expected) {
            return Ok(lease);
        }
        let conflict = |what: &str| Err(StoreError::new(StoreErrorKind::Conflict, format!("{object}: {what}")));
        match self.read(key, object).await? {
            Some(lease) if lease.version() == expected => Ok(lease),
            Some(_) => conflict("it was changed meanwhile"),
            None => conflict("it was deleted meanwhile"),
        }
    }

    async fn remove(&self, key: &str, expected: Option<&Version>) -> Result<(), StoreError> {
        self.check(key)?;
        let object = self.describe(key);
        let preconditions = expected.map(lease::preconditions);
        let options = json!({"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": preconditions});
        bounded(self.server.request_timeout, &object, async {
            let answer = self.server.send(Method::DELETE, key, Some(options), &object).await?;
            if expected.is_none() && answer.is_missing_lease() {
                return Ok(());
            }
            answer.content(Operation::Delete, &object).map(drop)
        })
        .await
    }
}

#[async_trait]
impl ConditionalStore for LeaseStore {
    async fn get(&self, key: &str) -> Result<Option<VersionedObject>, StoreError> {
        self.check(key)?;
        let object = self.describe(key);
        bounded(self.server.request_timeout, &object, async {
            let Some(lease) = self.read(key, &object).await? else { return Ok(None) };
            let body = lease
                .record()
                .map_err(|problem| StoreError::new(StoreErrorKind::Unreadable, format!("{object}: {problem}")))?;
            Ok(Some(VersionedObject::new(body, lease.version().clone())))
        })
        .await
    }

    async fn put(&self, key: &str, body: Bytes, precondition: &Precondition) -> Result<Version, StoreError> {
        self.check(key)?;
        let state = self.of_record(key, &body)?;
        let object = self.describe(key);
        bounded(self.server.request_timeout, &object, async {
            let (operation, method, name, mut lease) = match precondition {
                Precondition::Absent => (Operation::Create, Method::POST, "", state.created(&self.namespace, key)),
                Precondition::Matches(expected) => {
                    let replaced = self.replaced(key, expected, &object).await?;
                    (Operation::Update, Method::PUT, key, state.replacing(&replaced))
                }
            };
            for (key, value) in &*self.labels {
                lease["metadata"]["labels"][key] = value.as_str().into();
            }
            let answer = self.server.send(method, name, Some(lease), &object).await?;
            Ok(self.lease(answer, key, operation, &object)?.version().clone())
        })
        .await
    }

    async fn delete(&self, key: &str, expected: Option<&Version>) -> Result<(), StoreError> {
        self.remove(key, expected).await
    }

    async fn list_page(
        &self,
        prefix: &str,
        token: Option<&PageToken>,
        limit: Option<u16>,
    ) -> Result<ListedPage, StoreError> {
        let object = self.describe(prefix);
        bounded(self.server.request_timeout, &object, async {
            let answer = self.server.list(token.map_or("", PageToken::as_str), limit, &object).await?;
            lease::page(&answer.content(Operation::List, &object)?, prefix)
                .ok_or_else(|| without_version(StoreErrorKind::Fatal, &object, "Leases"))
        })
        .await
    }

    fn describe(&self, key: &str) -> String {
        format!("lease://{}/{key}", self.namespace)
    }

    fn min_write_interval(&self) -> Option<Duration> {
        None
    }
}

// Written by hand, because the client may print a secret.
impl fmt::Debug for LeaseStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LeaseStore")
            .field("namespace", &self.namespace)
            .field("labels", &self.labels)
            .field("request_timeout", &self.server.request_timeout)
            .finish_non_exhaustive()
    }
}
