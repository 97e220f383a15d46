//! Who leads, for those who ask.

use futures_util::stream::{Stream, unfold};
use tokio::sync::watch;

use crate::leadership::Leadership;

/// Tells who leads. Cheap to clone; outlives the elector.
#[derive(Clone, Debug)]
pub struct LeaderHandle {
    status: watch::Receiver<Status>,
}

/// What a [`LeaderHandle`] saw at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LeaderStatus {
    /// Who holds the lease, as far as is known.
    pub leader: Option<String>,
    /// The token of our own term, while we lead.
    pub fencing_token: Option<u64>,
}

impl LeaderStatus {
    /// Whether we led at that moment.
    #[must_use]
    pub fn is_leader(&self) -> bool {
        self.fencing_token.is_some()
    }
}

/// The elector is gone, and nothing will change any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the elector was dropped; nothing will change any more")]
pub struct ElectorDropped;

#[derive(Clone, Debug, Default)]
pub(crate) struct Status {
    pub(crate) leader: Option<String>,
    /// From a term's start until its work has ended: longer than it is valid.
    pub(crate) term: Option<Leadership>,
}

impl LeaderHandle {
    pub(crate) fn new(status: watch::Receiver<Status>) -> Self {
        Self { status }
    }

    /// Whether we lead, right now: compares the deadline with the clock, on every call.
    #[must_use]
    pub fn is_leader(&self) -> bool {
        self.leadership().is_some()
    }

    /// Who holds the lease, as far as is known; `None` if nobody, or if nothing was read yet.
    #[must_use]
    pub fn leader(&self) -> Option<String> {
        self.status.borrow().leader.clone()
    }

    /// The token of our own term, while we lead.
    #[must_use]
    pub fn fencing_token(&self) -> Option<u64> {
        self.leadership().map(|leadership| leadership.fencing_token())
    }

    /// Our own term, while we lead.
    #[must_use]
    pub fn leadership(&self) -> Option<Leadership> {
        self.status.borrow().term.clone().filter(Leadership::is_valid)
    }

    /// All of it, at one moment.
    #[must_use]
    pub fn status(&self) -> LeaderStatus {
        let status = self.status.borrow();
        let valid = status.term.as_ref().filter(|leadership| leadership.is_valid());
        LeaderStatus { leader: status.leader.clone(), fencing_token: valid.map(Leadership::fencing_token) }
    }

    /// Completes when leader or term have changed since the last call. Cancellation safe.
    ///
    /// Renewals are no change.
    ///
    /// # Errors
    ///
    /// [`ElectorDropped`] if nothing will change any more.
    pub async fn changed(&mut self) -> Result<(), ElectorDropped> {
        self.status.changed().await.map_err(|_| ElectorDropped)
    }

    /// The status now, and after every change; ends with the elector. Changes that follow each other
    /// closely may be seen as one.
    pub fn into_stream(mut self) -> impl Stream<Item = LeaderStatus> + Send + 'static {
        self.status.mark_changed();
        unfold(self, |mut handle| async move {
            handle.changed().await.ok()?;
            Some((handle.status(), handle))
        })
    }

    /// Gives up leadership now, and lets the others go first. `false` if we do not lead.
    ///
    /// When this returns, we do not lead any more. The elector then stops the work and releases the
    /// lease; [`run`](crate::DefaultLeaderElector::run) ends, while
    /// [`campaign`](crate::DefaultLeaderElector::campaign) competes again after
    /// [the cool-down](crate::LeaderElectionConfigBuilder::step_down_cool_down).
    pub fn step_down(&self) -> bool {
        let leadership = self.leadership();
        if let Some(leadership) = &leadership {
            leadership.step_down();
        }
        leadership.is_some()
    }
}
