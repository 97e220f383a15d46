//! Who leads, for those who ask.

use std::sync::Arc;

use futures_util::stream::{Stream, unfold};
use tokio::sync::watch;

use crate::clock::Clock;
use crate::election::EndReason;
use crate::history::{History, Transition};
use crate::identity;
use crate::leadership::Leadership;
use crate::observation::{LastError, ObservedLease, Sighting};

/// Tells who leads. Cheap to clone; outlives the elector.
#[derive(Clone, Debug)]
pub struct LeaderHandle {
    status: watch::Receiver<Status>,
    identity: Arc<str>,
    clock: Arc<dyn Clock>,
}

/// What a [`LeaderHandle`] saw at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LeaderStatus {
    /// Who holds the lease, as far as is known.
    pub leader: Option<String>,
    /// The token of our own term, while we lead.
    pub fencing_token: Option<u64>,
    /// The lease as it was last read or written; `None` if nothing was read yet, or if there is no object.
    pub observed: Option<ObservedLease>,
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

/// Why leadership was not [transferred](LeaderHandle::transfer_to).
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TransferError {
    /// Only the leader can hand over.
    #[error("we do not lead, so there is nothing to hand over; ask the leader, or request it from the lock")]
    NotLeading,
    /// The named candidate is this one.
    #[error("{identity:?} is our own identity, and leads already; name another candidate")]
    ToOurselves {
        /// Who was named.
        identity: String,
    },
    /// No candidate can have this identity.
    #[error("no candidate can be called {identity:?}: the identity {problem}; name the candidate that is to lead next")]
    BadIdentity {
        /// Who was named; the beginning, if it is long.
        identity: String,
        /// What is wrong with it.
        problem: String,
    },
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Status {
    pub(crate) leader: Option<String>,
    pub(crate) sighting: Option<Sighting>,
    pub(crate) history: History,
    pub(crate) last_error: Option<LastError>,
    /// From a term's start until its work has ended: longer than it is valid.
    pub(crate) term: Option<Leadership>,
}

impl LeaderHandle {
    pub(crate) fn new(status: watch::Receiver<Status>, identity: Arc<str>, clock: Arc<dyn Clock>) -> Self {
        Self { status, identity, clock }
    }

    /// Who we are: what the lock says when we lead.
    #[must_use]
    pub fn identity(&self) -> &str {
        &self.identity
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

    /// Who leads, our own term and the lease, all at one moment.
    #[must_use]
    pub fn status(&self) -> LeaderStatus {
        let status = self.status.borrow();
        let valid = status.term.as_ref().filter(|leadership| leadership.is_valid());
        LeaderStatus {
            leader: status.leader.clone(),
            fencing_token: valid.map(Leadership::fencing_token),
            observed: status.sighting.as_ref().map(|sighting| sighting.at(self.clock.now())),
        }
    }

    /// The lease as it was last read or written, and how long ago; `None` if nothing was read yet, or if
    /// there is no object.
    #[must_use]
    pub fn observed(&self) -> Option<ObservedLease> {
        self.status().observed
    }

    /// The last [few](crate::REMEMBERED_TRANSITIONS) changes of leadership and their reasons, oldest first.
    #[must_use]
    pub fn transitions(&self) -> Vec<Transition> {
        self.status.borrow().history.to_vec()
    }

    /// What went wrong last between us and the lock; `None` if nothing ever has. It may be long over:
    /// compare it with [`ObservedLease::checked_for`].
    #[must_use]
    pub fn last_error(&self) -> Option<LastError> {
        self.status.borrow().last_error.clone()
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

    /// Hands leadership over to the candidate `identity`.
    ///
    /// When this returns, we do not lead any more. The elector then waits for the work to end and releases
    /// the lease, naming who is to lead next: that candidate takes over at its next poll, all others, we
    /// included, let it go first for one lease duration. If it never comes, they do.
    ///
    /// The lease is released even if
    /// [`release_on_cancel`](crate::LeaderElectionConfigBuilder::release_on_cancel) is off.
    ///
    /// # Errors
    ///
    /// [`TransferError`]; nothing has changed then.
    pub fn transfer_to(&self, identity: &str) -> Result<(), TransferError> {
        if let Some(problem) = identity::problem_with(identity) {
            return Err(TransferError::BadIdentity { identity: identity::excerpt(identity), problem });
        }
        if identity == &*self.identity {
            return Err(TransferError::ToOurselves { identity: identity.to_owned() });
        }
        let leadership = self.leadership().ok_or(TransferError::NotLeading)?;
        leadership.give_up(EndReason::Transferred { to: identity.to_owned() });
        Ok(())
    }
}
