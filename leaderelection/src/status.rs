//! The handle that tells the process who leads.

use std::sync::Arc;
use std::time::Duration;

use futures_util::stream::{Stream, unfold};
use tokio::sync::watch;

use crate::clock::Clock;
use crate::election::Command;
use crate::history::{History, Transition};
use crate::identity;
use crate::leadership::Leadership;
use crate::observation::{LastError, Mishap, ObservedLease, Sighting};

/// Tells who leads. Cheap to clone; outlives the elector.
#[derive(Clone, Debug)]
pub struct LeaderHandle {
    status: watch::Receiver<Status>,
    errors: watch::Receiver<()>,
    identity: Arc<str>,
    clock: Arc<dyn Clock>,
}

/// A snapshot of everything that a [`LeaderHandle`] tells, all of one moment.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct LeaderStatus {
    /// The leader, as far as is known: see [`LeaderHandle::leader`].
    pub leader: Option<String>,
    /// The holder that the lock names, leader or not: see [`LeaderHandle::holder`].
    pub holder: Option<String>,
    /// Our own term, if we led at that moment. Its methods tell what is true now.
    pub leadership: Option<Leadership>,
    /// The token of our own term, if we led at that moment.
    pub fencing_token: Option<u64>,
    /// The time for which we led unless the lease was renewed; zero if we did not lead.
    pub remaining: Duration,
    /// The lease as it was last read or written; `None` if nothing was read yet, or if there is no object.
    pub observed: Option<ObservedLease>,
    /// The last error between us and the lock; `None` if there never was one.
    pub last_error: Option<LastError>,
}

impl LeaderStatus {
    /// Returns `true` if we led at that moment.
    #[must_use]
    pub fn is_leader(&self) -> bool {
        self.fencing_token.is_some()
    }
}

/// The elector is gone, and nothing will change any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the elector was dropped; nothing will change any more")]
pub struct ElectorDropped;

/// The reason for which leadership was not [transferred](LeaderHandle::transfer_to).
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TransferError {
    /// Only the leader can hand over.
    #[error("we do not lead, so there is nothing to hand over; ask the leader, or request it from the lock")]
    NotLeading,
    /// The named candidate is this one.
    #[error("{identity:?} is our own identity, and leads already; name another candidate")]
    ToOurselves {
        /// The candidate that was named.
        identity: String,
    },
    /// No candidate can have this identity.
    #[error("no candidate can be called {identity:?}: the identity {problem}; name the candidate that is to lead next")]
    BadIdentity {
        /// The candidate that was named; the beginning, if it is long.
        identity: String,
        /// The problem with it.
        problem: String,
    },
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Status {
    pub(crate) holder: Option<String>,
    pub(crate) sighting: Option<Sighting>,
    pub(crate) history: History,
    pub(crate) mishap: Option<Mishap>,
    /// From a term's start until its work has ended: longer than it is valid.
    pub(crate) term: Option<Leadership>,
}

impl LeaderHandle {
    pub(crate) fn new(
        status: watch::Receiver<Status>,
        errors: watch::Receiver<()>,
        identity: Arc<str>,
        clock: Arc<dyn Clock>,
    ) -> Self {
        Self { status, errors, identity, clock }
    }

    /// Our identity: the name that the lock shows when we lead.
    #[must_use]
    pub fn identity(&self) -> &str {
        &self.identity
    }

    /// Returns `true` if we lead right now: compares the deadline with the clock, on every call.
    #[must_use]
    pub fn is_leader(&self) -> bool {
        self.leadership().is_some()
    }

    /// The leader, as far as is known right now; `None` if nobody is known to lead.
    ///
    /// Names us only while we lead, and another [holder](Self::holder) only until its lease was seen unchanged for
    /// its whole duration. Compares with the clock, on every call: [`changed`](Self::changed) does not tell that a
    /// lease has run out.
    #[must_use]
    pub fn leader(&self) -> Option<String> {
        self.status().leader
    }

    /// The holder that the lock named last; `None` if it named none, or if nothing was read yet.
    ///
    /// The holder may be dead. It may be us although we do not lead: before a term begins, after it has ended, and
    /// if an earlier process had our identity.
    #[must_use]
    pub fn holder(&self) -> Option<String> {
        self.status.borrow().holder.clone()
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

    /// A snapshot of leader, term, lease and errors.
    #[must_use]
    pub fn status(&self) -> LeaderStatus {
        let (status, now) = (self.status.borrow(), self.clock.now());
        let remaining = status.term.as_ref().map_or(Duration::ZERO, Leadership::remaining);
        let leadership = status.term.clone().filter(|_| !remaining.is_zero());
        let observed = status.sighting.as_ref().map(|sighting| sighting.at(now));
        let leader = match &leadership {
            Some(_) => Some(self.identity.to_string()),
            None => status.holder.clone().filter(|holder| {
                **holder != *self.identity && observed.as_ref().is_some_and(|lease| !lease.has_run_out())
            }),
        };
        LeaderStatus {
            leader,
            holder: status.holder.clone(),
            fencing_token: leadership.as_ref().map(Leadership::fencing_token),
            leadership,
            remaining,
            observed,
            last_error: status.mishap.as_ref().map(|mishap| mishap.at(now)),
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

    /// The last error between us and the lock; `None` if there never was one. It may be long over:
    /// compare it with [`ObservedLease::checked_for`].
    #[must_use]
    pub fn last_error(&self) -> Option<LastError> {
        self.status().last_error
    }

    /// Completes when a request to the lock has failed since the last call. Conflicts are no failures. Cancellation safe.
    ///
    /// # Errors
    ///
    /// [`ElectorDropped`] if nothing will fail any more.
    pub async fn next_error(&mut self) -> Result<LastError, ElectorDropped> {
        loop {
            self.errors.changed().await.map_err(|_| ElectorDropped)?;
            if let Some(error) = self.last_error() {
                return Ok(error);
            }
        }
    }

    /// Completes when holder or term have changed since the last call. Cancellation safe.
    ///
    /// Renewals are no change, and neither is a lease that runs out by itself.
    ///
    /// # Errors
    ///
    /// [`ElectorDropped`] if nothing will change any more.
    pub async fn changed(&mut self) -> Result<(), ElectorDropped> {
        self.status.changed().await.map_err(|_| ElectorDropped)
    }

    /// Completes when we lead, at once if we do already, with our term. Cancellation safe.
    ///
    /// # Errors
    ///
    /// [`ElectorDropped`] if we shall never lead any more.
    pub async fn elected(&mut self) -> Result<Leadership, ElectorDropped> {
        loop {
            self.status.borrow_and_update();
            if let Some(leadership) = self.leadership() {
                return Ok(leadership);
            }
            self.changed().await?;
        }
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
        self.leadership().is_some_and(|leadership| leadership.command(Command::StepDown))
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
        let command = Command::TransferTo(identity.to_owned());
        let accepted = self.leadership().is_some_and(|leadership| leadership.command(command));
        if accepted { Ok(()) } else { Err(TransferError::NotLeading) }
    }
}
