//! The line of a session, for the crate that connects the members over a network.

use std::collections::BTreeMap;
use std::sync::Arc;

use tokio::sync::watch;

use super::line::OwnSession;
use super::shared::Shared;
use crate::elector::line::{ObservedTerm, PeerChannel, SessionEnd};

/// The line of a session to the other members of its fleet, for a crate that connects them over a network.
///
/// A clone is the same line. The line does not keep its session open.
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

    /// Watches the session of this process: `None` while none is open. A slow reader misses writes, but delays nothing.
    #[must_use]
    pub fn own(&self) -> watch::Receiver<Option<OwnSession>> {
        self.shared.line.own.subscribe()
    }

    /// Watches the other sessions that are known to live, by their IDs.
    #[must_use]
    pub fn others(&self) -> watch::Receiver<BTreeMap<Arc<str>, ObservedTerm>> {
        self.shared.line.others.subscribe()
    }

    /// Returns the line to the session of this ID, for the messages that it sends.
    #[must_use]
    pub fn line_to(&self, id: &str) -> PeerChannel {
        let Shared { settings, line, .. } = &*self.shared;
        let (key, name) = (settings.place.session(id).into(), settings.basics.name.as_str().into());
        let end = SessionEnd { timings: settings.basics.timings, id: id.into(), inbox: Arc::clone(&line.inbox) };
        PeerChannel::of_session(key, name, end, line.others.borrow().get(id).cloned())
    }
}
