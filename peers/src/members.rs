//! The members of a fleet: one stream to each, and the messages of this process to all of them.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::{Arc, Mutex, PoisonError};

use leaderelection::peers::ObservedTerm;
use leaderelection::sessions::SessionChannel;
use tokio_util::task::AbortOnDropHandle;

use crate::caller::Caller;
use crate::follower::Follower;
use crate::report::{PeerStatus, SharedStatus};
use crate::served::{Served, ServedLock};

/// The connection of a session to the other members of its fleet.
#[derive(Debug)]
pub(crate) struct Members {
    line: SessionChannel,
    served: Arc<Served>,
    caller: Arc<Caller>,
    /// The followers of the other sessions, by their IDs.
    followers: BTreeMap<Arc<str>, Followed>,
    statuses: Statuses,
    /// The local session, for the others.
    own: Option<ServedLock>,
}

/// The follower of another session.
#[derive(Debug)]
struct Followed {
    term: ObservedTerm,
    _task: AbortOnDropHandle<Infallible>,
}

/// The statuses of all followers, for those who display them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Statuses(Arc<Mutex<BTreeMap<Arc<str>, SharedStatus>>>);

impl Statuses {
    /// The messages of all members.
    pub(crate) fn get(&self) -> PeerStatus {
        self.with(|statuses| {
            let none = PeerStatus { connected: !statuses.is_empty(), ..PeerStatus::default() };
            statuses.values().map(SharedStatus::get).fold(none, PeerStatus::and)
        })
    }

    fn with<T>(&self, change: impl FnOnce(&mut BTreeMap<Arc<str>, SharedStatus>) -> T) -> T {
        // No code that could panic runs under the lock.
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Members {
    pub(crate) fn new(line: SessionChannel, served: Arc<Served>, caller: Arc<Caller>, statuses: Statuses) -> Self {
        Self { line, served, caller, followers: BTreeMap::new(), statuses, own: None }
    }

    /// Connects the session to all others, until nobody has the session any more.
    pub(crate) async fn connect(mut self) {
        let (mut own, mut others) = (self.line.own(), self.line.others());
        own.mark_changed();
        others.mark_changed();
        loop {
            tokio::select! {
                changed = own.changed() => {
                    if changed.is_err() {
                        return;
                    }
                    self.own = None;
                    let session = own.borrow_and_update().clone();
                    // An ID has one session, so nothing else is served under its key.
                    self.own = session.and_then(|own| self.served.add(&own.key, own.led).ok());
                }
                changed = others.changed() => {
                    if changed.is_err() {
                        return;
                    }
                    let others = others.borrow_and_update().clone();
                    self.follow(&others);
                }
            }
        }
    }

    /// Follows these sessions, and no other.
    fn follow(&mut self, others: &BTreeMap<Arc<str>, ObservedTerm>) {
        self.followers.retain(|id, followed| others.get(id) == Some(&followed.term));
        for (id, term) in others {
            let Some(address) = term.address.clone().filter(|_| !self.followers.contains_key(id)) else { continue };
            let (line, status) = (self.line.channel_to(id), SharedStatus::default());
            let key = line.lock_name();
            let mut follower = Follower::new(line, key, Arc::clone(&self.caller), status.clone());
            self.statuses.with(|statuses| statuses.insert(Arc::clone(id), status));
            let of = term.clone();
            let task = tokio::spawn(async move { follower.listen(&of, &address).await });
            let followed = Followed { term: term.clone(), _task: AbortOnDropHandle::new(task) };
            self.followers.insert(Arc::clone(id), followed);
        }
        self.statuses.with(|statuses| statuses.retain(|id, _| self.followers.contains_key(id)));
    }
}
