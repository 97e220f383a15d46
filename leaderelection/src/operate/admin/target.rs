//! Finds what an operator wants to see: a lock, the session that holds it, and the locks of a session.

use std::sync::Arc;

use futures_util::stream::{self, StreamExt as _, TryStreamExt as _};

use super::{AdminError, Intervention, force_release, request_transfer};
use crate::lock::object_lock::ObjectLock;
use crate::lock::record::LeaderElectionRecord;
use crate::lock::{LockError, ObjectStoreBasedLock, VersionedRecord};
use crate::sessions::keys::{self, LOCKS, SESSIONS};
use crate::sessions::machine::is_session;
use crate::store::{ConditionalStore, ConditionalStoreExt, ListedObject, StoreErrorKind};
#[cfg(feature = "majority")]
use crate::{majority::Majority, timings::config_error::ConfigError};

/// The most locks that are read at the same time.
const AT_A_TIME: usize = 16;

/// The identity of the locks that targets read. Nobody competes under it.
const OPERATOR: &str = "operator";

/// One object that an operator inspects: a lock with a lease of its own, a lock that a session holds, or a session.
///
/// A lock that a session holds has no lease, and an [`ObjectLock`] refuses to read it. A target reads it, and no
/// elector can use a target as a lock. The calls have no time limit: wrap the store in
/// [`Bounded`](crate::lock::Bounded).
///
/// ```
/// use leaderelection::admin::Target;
/// use leaderelection::{CancellationToken, Elector, MemoryStore, Session};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let store = MemoryStore::new();
/// let session = Session::builder(store.clone(), "shards", "node-1").build()?;
/// let elector = session.elector("17", ())?;
/// let shutdown = CancellationToken::new();
/// let stop = shutdown.clone();
/// let work = elector.run_while_leading(shutdown.clone().cancelled_owned(), move |_| async move {
///     let observed = Target::new(store, "shards/locks/17").read().await;
///     stop.cancel();
///     observed
/// });
/// let (ended, observed) = tokio::join!(session.run(shutdown.cancelled_owned()), work);
/// ended?;
/// let observed = observed??;
/// assert_eq!(observed.holder(), Some("node-1"));
/// assert!(observed.session.is_some_and(|session| !session.has_ended()));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Target {
    lock: ObjectLock<Arc<dyn ConditionalStore>>,
    /// The whole lock, if it has several parts. Then `lock` is the first part.
    #[cfg(feature = "majority")]
    whole: Option<Arc<Majority>>,
}

/// A target, as one poll showed it.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ObservedTarget {
    /// The record and its version; `None` if there is no object.
    pub found: Option<VersionedRecord>,
    /// The session that the record of a lock names; `None` if it names none.
    pub session: Option<HoldingSession>,
}

/// The session that a lock names, as one poll showed it.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct HoldingSession {
    /// The ID.
    pub id: String,
    /// The object of the session.
    pub target: Target,
    /// The session's record and its version; `None` if there is no object, because the session ended long ago.
    pub found: Option<VersionedRecord>,
}

impl ObservedTarget {
    /// The holder in the record, dead or alive; `None` if there is none, or if the holder's session has ended.
    #[must_use]
    pub fn holder(&self) -> Option<&str> {
        let is_over = self.session.as_ref().is_some_and(HoldingSession::has_ended);
        let record = self.found.as_ref().map(|found| &found.record).filter(|record| !record.is_released() && !is_over);
        record.map(|record| record.holder_identity.as_str())
    }
}

impl HoldingSession {
    /// Returns `true` if the session has ended, so that it holds nothing. An expired session ends only when a member
    /// ends it.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.found.as_ref().is_none_or(|found| found.record.is_released())
    }
}

impl Target {
    /// Creates the target at `key`.
    #[must_use]
    pub fn new(store: impl ConditionalStore, key: impl Into<String>) -> Self {
        Self::of(Arc::new(store), key)
    }

    /// Creates the target of the lock `name` of the sessions under `prefix`.
    #[must_use]
    pub fn lock_of_sessions(store: impl ConditionalStore, prefix: &str, name: &str) -> Self {
        Self::new(store, keys::key(prefix.trim_end_matches('/'), LOCKS, name))
    }

    fn of(store: Arc<dyn ConditionalStore>, key: impl Into<String>) -> Self {
        Self {
            lock: ObjectLock::new(store, key, OPERATOR).of_any_record(),
            #[cfg(feature = "majority")]
            whole: None,
        }
    }

    /// Creates the target of a lock with several parts. Pass them in the order in which the candidates name them. The
    /// target reads the record that a majority of the parts shows, and writes changes into a majority. Its key and its
    /// sessions are those of the first part.
    ///
    /// # Errors
    ///
    /// If there are no parts.
    #[cfg(feature = "majority")]
    pub fn of_parts(parts: &[Self]) -> Result<Self, ConfigError> {
        let whole = Majority::of(parts.iter().map(|part| part.lock.clone()))?;
        let first = parts.first().map(|part| part.lock.clone());
        let missing = || ConfigError::new("parts", "must have at least one lock".to_owned());
        Ok(Self { lock: first.ok_or_else(missing)?, whole: Some(Arc::new(whole)) })
    }

    /// The lock to read and to change: the whole lock, if it has several parts.
    fn lock(&self) -> &dyn ObjectStoreBasedLock {
        #[cfg(feature = "majority")]
        if let Some(whole) = &self.whole {
            return &**whole;
        }
        &self.lock
    }

    /// The key of the object in the store.
    #[must_use]
    pub fn key(&self) -> &str {
        self.lock.key()
    }

    /// The name of the object for people. The name contains no secrets.
    #[must_use]
    pub fn describe(&self) -> String {
        self.lock().describe()
    }

    /// Reads the record, but not the session that it names.
    ///
    /// # Errors
    ///
    /// [`StoreErrorKind::Unreadable`] if the object is not a record.
    pub async fn get(&self) -> Result<Option<VersionedRecord>, LockError> {
        self.lock().get().await
    }

    /// Reads the record, and the session that it names.
    ///
    /// # Errors
    ///
    /// As for [`get`](Self::get), for the lock or for the session.
    pub async fn read(&self) -> Result<ObservedTarget, LockError> {
        let found = self.get().await?;
        let Some(id) = found.as_ref().and_then(|found| found.record.session.clone()) else {
            return Ok(ObservedTarget { found, session: None });
        };
        let mut session = None;
        for target in self.sessions(&id) {
            let record = target.get().await?;
            let is_there = record.is_some();
            // If no object exists, the likeliest target is returned.
            if is_there || session.is_none() {
                session = Some(HoldingSession { id: id.clone(), target, found: record });
            }
            if is_there {
                break;
            }
        }
        Ok(ObservedTarget { found, session })
    }

    /// Returns the targets at which the session `id` may be, likeliest first, if it holds this lock. There may be
    /// several, because the name of a lock may contain `/locks/`, so that the prefix is uncertain.
    pub fn sessions(&self, id: &str) -> impl Iterator<Item = Self> {
        keys::prefixes_of_lock(self.key()).map(move |prefix| self.beside(keys::key(prefix, SESSIONS, id)))
    }

    /// Returns the ID of the session, if this target is a session and not a lock. `record` is its record.
    #[must_use]
    pub fn session_id(&self, record: &LeaderElectionRecord) -> Option<&str> {
        keys::session_of(self.key()).filter(|_| is_session(record)).map(|(_, id)| id)
    }

    /// Finds the locks that name this session. This takes one listing, and one read for each lock under the prefix.
    ///
    /// # Errors
    ///
    /// The first error of the store. Objects that are not records cause no error, and are left out.
    pub async fn locks_of_session(&self) -> Result<Vec<Self>, LockError> {
        let Some((prefix, id)) = keys::session_of(self.key()) else { return Ok(Vec::new()) };
        let folder = keys::key(prefix, LOCKS, "");
        let store = self.lock.store();
        let listed = store.list(&folder).await.map_err(|error| {
            let described = store.describe(&folder);
            LockError::from_store("cannot list", described, error)
        })?;
        let reads = ListedObject::keys(listed).into_iter().map(|key| async {
            let lock = self.beside(key);
            match lock.get().await {
                Ok(found) => {
                    let holds = found.is_some_and(|found| found.record.session.as_deref() == Some(id));
                    Ok(holds.then_some(lock))
                }
                Err(error) if error.kind() == StoreErrorKind::Unreadable => Ok(None),
                Err(error) => Err(error),
            }
        });
        stream::iter(reads).buffered(AT_A_TIME).try_filter_map(|lock| async { Ok(lock) }).try_collect().await
    }

    /// Takes the lock away from its holder, or ends the session, if the object still shows the term of `seen`. Use it
    /// for a holder that is known to be dead or stuck.
    ///
    /// **Two leaders are possible**: see [`force_release`]. For how long depends on the object:
    ///
    /// - A lock with a lease of its own: until the holder's next renewal attempt.
    /// - A lock that a session holds: until the holder next scans its locks, up to
    ///   [`scan_interval`](crate::SessionBuilder::scan_interval) and a request timeout later. The session keeps its
    ///   other locks. Other members notice the free lock when they scan the locks, so a new leader may take as long.
    /// - A session: until the holder's next renewal attempt. The holder loses all locks of the session. Other members
    ///   take these locks as soon as they notice the end, within about two retry periods. A living holder opens another
    ///   session.
    ///
    /// This function is not cancellation safe: when the future is dropped, the change may have happened or may
    /// still happen.
    ///
    /// # Errors
    ///
    /// As for [`force_release`].
    pub async fn force_release(&self, seen: &LeaderElectionRecord) -> Result<Intervention, AdminError> {
        force_release(self.lock(), seen).await
    }

    /// Asks the leader of this lock to hand over to the candidate `to`: see [`request_transfer`]. If a session holds
    /// the lock, its process sees the request when it next scans its locks, up to
    /// [`scan_interval`](crate::SessionBuilder::scan_interval) later.
    ///
    /// This function is not cancellation safe: when the future is dropped, the change may have happened or may
    /// still happen.
    ///
    /// # Errors
    ///
    /// As for [`request_transfer`]; [`AdminError::IsSession`] if the object is that of a session.
    pub async fn request_transfer(&self, seen: &LeaderElectionRecord, to: &str) -> Result<Intervention, AdminError> {
        if self.session_id(seen).is_some() {
            return Err(AdminError::IsSession { session: self.describe() });
        }
        request_transfer(self.lock(), seen, to).await
    }

    fn beside(&self, key: String) -> Self {
        Self::of(Arc::clone(self.lock.store()), key)
    }
}
