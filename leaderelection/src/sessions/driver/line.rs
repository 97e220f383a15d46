//! The connection of a session to the other members: the messages from them and to them.

use std::collections::BTreeMap;
use std::sync::Arc;

use tokio::sync::watch;

use crate::election::PeerMessage;
use crate::elector::line::inbox::Inbox;
use crate::elector::line::{LeaderTerm, Led, ObservedTerm};

/// The number of messages that a session has not read yet.
const UNREAD: usize = 1_024;

/// The other sessions, by their IDs.
pub(super) type Others = BTreeMap<Arc<str>, ObservedTerm>;

/// The session's end of the line.
#[derive(Debug)]
pub(super) struct Line {
    pub(super) inbox: Arc<Inbox<(Arc<str>, PeerMessage)>>,
    pub(super) own: watch::Sender<Option<OwnSession>>,
    pub(super) others: watch::Sender<Others>,
}

/// The open session of this process, for the crate that reports it to others.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct OwnSession {
    /// The key of the session's object, by which the others ask for it.
    pub key: Arc<str>,
    /// Its writes, its releases of locks, and its end. The channel closes when the session is over.
    pub led: watch::Receiver<Option<LeaderTerm>>,
}

impl Line {
    pub(super) fn new() -> Self {
        let (own, others) = (watch::Sender::new(None), watch::Sender::new(Others::new()));
        Self { inbox: Arc::new(Inbox::new(UNREAD)), own, others }
    }

    /// The record of another session was read.
    pub(super) fn found(&self, session: Arc<str>, holder: &str, address: Option<&str>) {
        let found = ObservedTerm::of_session(holder, address);
        self.others.send_modify(|others| drop(others.insert(session, found)));
    }

    /// Another session is over.
    pub(super) fn lost(&self, session: &str) {
        self.others.send_if_modified(|others| others.remove(session).is_some());
    }

    /// A session of this process is open. Returns its messages to the others.
    pub(super) fn opened(&self, key: String) -> Led {
        let led = Led::default();
        self.own.send_replace(Some(OwnSession { key: key.into(), led: led.subscribe() }));
        led
    }

    /// No session of this process is open.
    pub(super) fn closed(&self) {
        self.own.send_if_modified(|own| own.take().is_some());
    }

    /// The run is over.
    pub(super) fn quiet(&self) {
        self.closed();
        self.others.send_if_modified(|others| !std::mem::take(others).is_empty());
    }
}
