//! The connection of a session to the other members: the messages from them, and the state that is reported to them.

use std::collections::BTreeMap;
use std::sync::Arc;

use tokio::sync::watch;

use crate::election::PeerMessage;
use crate::elector::line::inbox::Inbox;
use crate::elector::line::{LeaderTerm, Led, ObservedTerm};

/// The most messages that wait until the session reads them. If more arrive, the oldest are dropped.
const UNREAD: usize = 1_024;

/// The other sessions, by their IDs.
pub(super) type Others = BTreeMap<Arc<str>, ObservedTerm>;

/// The driver's end of the connection. The other end is `SessionChannel`, which exists only with the feature `peers`.
#[derive(Debug)]
pub(super) struct Line {
    pub(super) inbox: Arc<Inbox<(Arc<str>, PeerMessage)>>,
    pub(super) own: watch::Sender<Option<OwnSession>>,
    pub(super) others: watch::Sender<Others>,
}

/// The open session of this process, for the crate that sends its messages.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct OwnSession {
    /// The key of the session's object. The other members ask for the session by this key.
    pub key: Arc<str>,
    /// The session's writes, its releases of locks, and its end. The channel closes when the session is over.
    pub led: watch::Receiver<Option<LeaderTerm>>,
}

impl Line {
    pub(super) fn new() -> Self {
        let (own, others) = (watch::Sender::new(None), watch::Sender::new(Others::new()));
        Self { inbox: Arc::new(Inbox::new(UNREAD)), own, others }
    }

    /// Adds another session, or replaces its address.
    pub(super) fn add_peer(&self, session: Arc<str>, holder: &str, address: Option<&str>) {
        let found = ObservedTerm::of_session(holder, address);
        self.others.send_modify(|others| drop(others.insert(session, found)));
    }

    /// Removes another session, which is over.
    pub(super) fn remove_peer(&self, session: &str) {
        self.others.send_if_modified(|others| others.remove(session).is_some());
    }

    /// Shows that a session of this process is open. Returns the sender of its messages.
    pub(super) fn opened(&self, key: String) -> Led {
        let led = Led::default();
        self.own.send_replace(Some(OwnSession { key: key.into(), led: led.subscribe() }));
        led
    }

    /// Shows that no session of this process is open.
    pub(super) fn closed(&self) {
        self.own.send_if_modified(|own| own.take().is_some());
    }

    /// Removes all sessions at the end of a run.
    pub(super) fn clear(&self) {
        self.closed();
        self.others.send_if_modified(|others| !std::mem::take(others).is_empty());
    }
}
