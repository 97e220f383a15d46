//! The public end of a session's connection to the other members.

use std::collections::BTreeMap;
use std::sync::Arc;

use tokio::sync::watch;

use super::line::OwnSession;
use super::shared::Shared;
use crate::elector::line::{ObservedTerm, PeerChannel, SessionEnd};

/// Connects a session to the other members of its fleet, for a crate that sends the messages over a network.
///
/// Clones are the same channel. A channel does not keep its session open.
#[derive(Clone, Debug)]
pub struct SessionChannel {
    pub(super) shared: Arc<Shared>,
}

impl SessionChannel {
    /// The name of the session in logs and metrics.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.shared.settings.basics.name
    }

    /// Watches the session of this process: `None` while none is open. A slow reader may miss writes, but does not delay the session.
    #[must_use]
    pub fn own(&self) -> watch::Receiver<Option<OwnSession>> {
        self.shared.line.own.subscribe()
    }

    /// Watches the other known sessions that have not ended, by their IDs.
    #[must_use]
    pub fn others(&self) -> watch::Receiver<BTreeMap<Arc<str>, ObservedTerm>> {
        self.shared.line.others.subscribe()
    }

    /// Returns the channel that delivers messages from the session `id` to this session.
    #[must_use]
    pub fn channel_to(&self, id: &str) -> PeerChannel {
        let Shared { settings, line, .. } = &*self.shared;
        let (key, name) = (settings.fleet.session_key(id).into(), settings.basics.name.as_str().into());
        let end = SessionEnd { timings: settings.basics.timings, id: id.into(), inbox: Arc::clone(&line.inbox) };
        PeerChannel::of_session(key, name, end, line.others.borrow().get(id).cloned())
    }
}
