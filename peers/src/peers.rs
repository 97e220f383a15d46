//! The peers of a process: one server for all its locks, and a follower for each.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use leaderelection::peers::PeerChannel;
use leaderelection::{ConfigError, DefaultLeaderElector, Session};
use leaderelection_serving::expiry;
use leaderelection_serving::sockets::Serving;
use tokio::runtime;
use tokio_util::task::AbortOnDropHandle;

use crate::caller::Caller;
use crate::follower::Follower;
use crate::members::{Members, Statuses};
use crate::renewal::Renewal;
use crate::report::{PeerStatus, SharedStatus};
use crate::served::{Served, ServedLock};

/// The peers of this process: it answers the followers of the locks that it leads, and gets the messages of the leaders
/// of those that it follows. A clone is the same. The server ends with the last clone.
#[derive(Clone, Debug)]
pub struct Peers {
    pub(crate) path: Arc<str>,
    pub(crate) served: Arc<Served>,
    pub(crate) caller: Arc<Caller>,
    pub(crate) serving: Option<Arc<Serving>>,
    pub(crate) renewal: Arc<Renewal>,
}

/// The connection of one elector to its peers, in both directions. Drop it to end both.
#[derive(Debug)]
#[must_use = "the elector is connected to its peers only while this value lives"]
pub struct Attached {
    _served: ServedLock,
    _follower: AbortOnDropHandle<()>,
    _expiry: AbortOnDropHandle<()>,
    status: SharedStatus,
}

impl Peers {
    /// Connects an elector to the leader of its lock, and followers of the lock to this elector. All candidates have to
    /// name the lock alike; its name here is the key of its object.
    ///
    /// The address that followers are to call is a setting of the elector:
    /// [`advertise`](leaderelection::LeaderElectionConfigBuilder::advertise).
    ///
    /// # Errors
    ///
    /// [`ConfigError`] if a lock of this name is attached already, or outside a tokio runtime.
    pub fn attach(&self, elector: &DefaultLeaderElector) -> Result<Attached, ConfigError> {
        let line = elector.peer_channel();
        let name = line.lock_name();
        self.attach_line(line, name)
    }

    /// Does the same under another name of the lock, for two locks of one key in different buckets.
    ///
    /// # Errors
    ///
    /// As [`attach`](Self::attach).
    pub fn attach_as(&self, elector: &DefaultLeaderElector, lock: impl Into<String>) -> Result<Attached, ConfigError> {
        self.attach_line(elector.peer_channel(), lock.into())
    }

    /// Connects a session to the other members of its fleet: each learns of the others' renewals, releases and ends at once,
    /// and reads the store where the messages and the store differ. All members have to name the store's keys alike.
    ///
    /// The address that the others are to call is a setting of the session:
    /// [`advertise`](leaderelection::SessionBuilder::advertise).
    ///
    /// # Errors
    ///
    /// [`ConfigError`] outside a tokio runtime.
    pub fn attach_session(&self, session: &Session) -> Result<AttachedSession, ConfigError> {
        let line = session.peer_channel();
        let (runtime, expiry) = self.watch(line.name())?;
        let statuses = Statuses::default();
        let members = Members::new(line, Arc::clone(&self.served), Arc::clone(&self.caller), statuses.clone());
        let members = AbortOnDropHandle::new(runtime.spawn(members.connect()));
        Ok(AttachedSession { _members: members, _expiry: expiry, statuses })
    }

    /// Begins to watch the certificates of this process.
    fn watch(&self, name: &str) -> Result<(runtime::Handle, AbortOnDropHandle<()>), ConfigError> {
        let runtime = runtime::Handle::try_current()
            .map_err(|_| ConfigError::new("lock", format!("({name:?}) has to be attached in a tokio runtime")))?;
        self.renewal.start(&runtime);
        let expiry = expiry::tell("peers", name.to_owned(), self.renewal.validity());
        let expiry = AbortOnDropHandle::new(runtime.spawn(expiry));
        Ok((runtime, expiry))
    }

    fn attach_line(&self, line: PeerChannel, lock: String) -> Result<Attached, ConfigError> {
        let served = self.served.add(&lock, line.led())?;
        let (runtime, expiry) = self.watch(line.name())?;
        let status = SharedStatus::default();
        let follower = Follower::new(line, lock, Arc::clone(&self.caller), status.clone());
        let follower = AbortOnDropHandle::new(runtime.spawn(follower.follow()));
        Ok(Attached { _served: served, _follower: follower, _expiry: expiry, status })
    }

    /// Returns the routes that answer followers, for a server of your own. That server has to limit the time that a
    /// client may take to read, and to demand client certificates if nothing but them proves who asks.
    pub fn router(&self) -> Router {
        crate::server::routes(&self.path, Arc::clone(&self.served))
    }

    /// The address at which followers are answered, with the port that the system has chosen for port 0; `None` without
    /// a server.
    #[must_use]
    pub fn listens_at(&self) -> Option<SocketAddr> {
        self.serving.as_ref().and_then(|serving| serving.address())
    }

    /// Shuts the server down gracefully, so that followers still get the report of the end of a term: open answers get
    /// `grace` to end. Call it after the electors have ended.
    pub async fn finish(self, grace: Duration) {
        let Some(serving) = &self.serving else { return };
        serving.finish(grace).await;
    }
}

impl Attached {
    /// Returns a snapshot of the messages so far.
    #[must_use]
    pub fn status(&self) -> PeerStatus {
        self.status.get()
    }
}

/// The connection of a session to the other members, in both directions. Drop it to end both.
#[derive(Debug)]
#[must_use = "the session is connected to the others only while this value lives"]
pub struct AttachedSession {
    _members: AbortOnDropHandle<()>,
    _expiry: AbortOnDropHandle<()>,
    statuses: Statuses,
}

impl AttachedSession {
    /// Returns a snapshot of the messages of the other members so far. The reads that they save are not counted.
    #[must_use]
    pub fn status(&self) -> PeerStatus {
        self.statuses.get()
    }
}
