//! The handle that shows the rest of the process who leads.

use std::mem::replace;
use std::sync::Arc;
use std::time::Duration;

use crate::clock::Clock;
use crate::election::Command;
use crate::handle::board::{Reader, Writer};
use crate::handle::history::{History, Transition};
use crate::handle::observation::{LastError, ObservedLease, RecordedError, Sighting};
use crate::handle::tuning::Tuning;
use crate::leadership::Leadership;
use crate::lock::identity;
use crate::term::FencingToken;
use futures_util::stream::{Stream, unfold};

/// A handle that shows who leads. It is cheap to clone and outlives the elector.
#[derive(Clone, Debug)]
pub struct LeaderHandle {
    pub(super) status: Reader<Status>,
    /// `Status::changes` when this handle last returned a change; `None` makes it return the current state first.
    changes_returned: Option<u32>,
    /// The number of errors, including the session's, when this handle last returned one.
    errors_returned: u32,
    identity: Arc<str>,
    clock: Arc<dyn Clock>,
    /// The settings that may change; `None` for the lock of a session.
    pub(super) tuning: Option<Arc<Tuning>>,
    /// The status of the session, for the lock of a session. The session's errors count as errors of each of its locks.
    session: Option<Reader<Status>>,
}

/// A snapshot of what a [`LeaderHandle`] shows at one moment.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct LeaderStatus {
    /// The leader, as far as is known: see [`LeaderHandle::leader`].
    pub leader: Option<String>,
    /// The holder in the record, which may not lead: see [`LeaderHandle::holder`].
    pub holder: Option<String>,
    /// The address that the leader advertises: see [`LeaderHandle::leader_address`].
    pub leader_address: Option<String>,
    /// The address for clients that the leader advertises: see [`LeaderHandle::client_address`].
    pub client_address: Option<String>,
    /// The elector's own term, if the elector led at that moment. The methods of [`Leadership`] return the term's
    /// current state.
    pub leadership: Option<Leadership>,
    /// The token of the elector's own term, if the elector led at that moment.
    pub fencing_token: Option<FencingToken>,
    /// How long the elector's own term would have lasted without another renewal; zero if the elector did not lead.
    pub remaining: Duration,
    /// The lease as the elector last read or wrote it; `None` before the first read, or if no object exists.
    pub observed: Option<ObservedLease>,
    /// The last error; `None` if none has happened: see [`LeaderHandle::last_error`].
    pub last_error: Option<LastError>,
}

impl LeaderStatus {
    /// Returns `true` if the elector led at that moment.
    #[must_use]
    pub fn is_leader(&self) -> bool {
        self.fencing_token.is_some()
    }
}

/// The elector was dropped, so there is nothing left to wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the elector was dropped; nothing will change any more")]
pub struct ElectorDropped;

/// Why leadership was not [transferred](LeaderHandle::transfer_to).
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TransferError {
    /// Only the leader can hand over.
    #[error(
        "we do not lead, so there is nothing to hand over; ask the leader to hand over, or use `admin::request_transfer`"
    )]
    NotLeading,
    /// The named candidate is this elector.
    #[error("{identity:?} is our own identity; name another candidate")]
    ToOurselves {
        /// The candidate that was named.
        identity: String,
    },
    /// No candidate can have this identity.
    #[error("invalid identity {identity:?}: it {problem}; name the candidate that should lead next")]
    BadIdentity {
        /// The identity that was named. A long one is shortened.
        identity: String,
        /// The problem, as the rest of a sentence that begins with "it".
        problem: String,
    },
}

/// Completes when the status of the session has changed. Never completes without a session, or after its end.
async fn next_update_of(session: Option<&mut Reader<Status>>) {
    if let Some(session) = session {
        if session.changed().await.is_ok() {
            return;
        }
    }
    std::future::pending().await
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Status {
    pub(crate) holder: Option<Arc<str>>,
    pub(crate) sighting: Option<Sighting>,
    pub(crate) history: History,
    /// The last error. Boxed, because most locks have none.
    pub(crate) recorded_error: Option<Box<RecordedError>>,
    /// The last term, from its start until its work has ended. It may no longer be valid.
    pub(crate) term: Option<Leadership>,
    /// `true` if the work of the last term was dropped or abandoned. Its tasks may then still run.
    pub(crate) work_was_left: bool,
    /// The number of changes of leadership so far.
    changes: u32,
    /// The number of errors so far.
    errors: u32,
}

/// The elector's side of the status. Changes and errors share one board, so that an idle elector takes little memory.
#[derive(Clone, Debug)]
pub(crate) struct StatusWriter(Writer<Status>);

impl StatusWriter {
    /// Creates the status of an elector that has not run.
    pub(crate) fn new() -> Self {
        Self(Writer::new(Status::default()))
    }

    /// Applies a change of leadership.
    pub(crate) fn change(&self, change: impl FnOnce(&mut Status)) {
        self.0.change(|status| {
            change(status);
            status.changes = status.changes.wrapping_add(1);
        });
    }

    /// Records an error between the elector and its lock.
    pub(crate) fn fail(&self, error: RecordedError) {
        self.0.change(|status| {
            // Keeps the start of a series of equal errors.
            let error = error.after(status.recorded_error.as_deref(), status.sighting.as_ref());
            status.recorded_error = Some(Box::new(error));
            status.errors = status.errors.wrapping_add(1);
        });
    }

    /// Returns `true` if a person probably has to fix something: the error is permanent, or no record of the lock is known. Then the lock
    /// was never read, or the last read found no object.
    pub(crate) fn needs_a_person(&self, error: &RecordedError) -> bool {
        error.is_permanent() || self.0.read().sighting.is_none()
    }

    /// The last error between the elector and its lock.
    pub(crate) fn last_recorded_error(&self) -> Option<Box<RecordedError>> {
        self.0.read().recorded_error.clone()
    }

    /// The elector's own term, if it is valid.
    #[cfg(feature = "sessions")]
    pub(crate) fn leadership(&self) -> Option<Leadership> {
        self.0.read().term.clone().filter(Leadership::is_valid)
    }

    pub(crate) fn watch(&self) -> Reader<Status> {
        self.0.reader()
    }

    /// Copies the observed lease from the elector `before` this one. Returns the holder that the lock named last.
    #[cfg(feature = "sessions")]
    pub(crate) fn inherit(&self, before: &Self) -> Option<Arc<str>> {
        let before = before.0.read();
        self.observe(|sighting| sighting.clone_from(&before.sighting));
        before.holder.clone()
    }

    /// Records an observation of the lock. Wakes nobody: if the holder has changed, a call of `change` reports that.
    pub(crate) fn observe(&self, change: impl FnOnce(&mut Option<Sighting>)) {
        self.0.adjust(|status| change(&mut status.sighting));
    }
}

impl LeaderHandle {
    /// Creates the handle of an elector, with its tuning, or of the lock of a session, with the status of that session.
    pub(crate) fn new(
        status: Reader<Status>,
        identity: Arc<str>,
        clock: Arc<dyn Clock>,
        tuning: Option<Arc<Tuning>>,
        session: Option<Reader<Status>>,
    ) -> Self {
        Self { status, changes_returned: Some(0), errors_returned: 0, identity, clock, tuning, session }
    }

    /// The identity of the elector: the name that the lock shows when the elector leads.
    #[must_use]
    pub fn identity(&self) -> &str {
        &self.identity
    }

    /// Returns `true` if the elector leads right now. Every call compares the deadline with the clock.
    #[must_use]
    pub fn is_leader(&self) -> bool {
        self.leadership().is_some()
    }

    /// The leader, as far as is known right now; `None` if nobody is known to lead.
    ///
    /// This is our own identity only while we lead, and another [holder](Self::holder) only until its lease has
    /// expired. Every call compares the lease with the clock, because [`changed`](Self::changed) does not complete when
    /// a lease expires.
    #[must_use]
    pub fn leader(&self) -> Option<String> {
        self.status().leader
    }

    /// The holder in the record; `None` if the record names none, or was not read yet.
    ///
    /// The holder may be dead. It may be us although we do not lead: shortly before a term begins, after it has ended,
    /// and if an earlier process had our identity.
    #[must_use]
    pub fn holder(&self) -> Option<String> {
        self.status.read().holder.as_deref().map(str::to_owned)
    }

    /// The token of the elector's own term; `None` if the elector does not lead.
    #[must_use]
    pub fn fencing_token(&self) -> Option<FencingToken> {
        self.leadership().map(|leadership| leadership.fencing_token())
    }

    /// The elector's own term; `None` if the elector does not lead.
    #[must_use]
    pub fn leadership(&self) -> Option<Leadership> {
        self.status.read().term.clone().filter(Leadership::is_valid)
    }

    /// Returns a snapshot of leader, term, lease and errors.
    #[must_use]
    pub fn status(&self) -> LeaderStatus {
        let (status, now) = (self.status.read(), self.clock.now());
        let remaining = status.term.as_ref().map_or(Duration::ZERO, Leadership::remaining);
        let leadership = status.term.clone().filter(|_| !remaining.is_zero());
        let observed = status.sighting.as_ref().map(|sighting| sighting.at(now));
        let leader = match &leadership {
            Some(_) => Some(self.identity.to_string()),
            None => status.holder.as_deref().map(str::to_owned).filter(|holder| {
                **holder != *self.identity && observed.as_ref().is_some_and(|lease| !lease.has_expired())
            }),
        };
        let addresses = status.sighting.as_ref().and_then(Sighting::addresses).filter(|_| leader.is_some());
        let leader_address = addresses.map(|addresses| addresses.url.clone()).filter(|url| !url.is_empty());
        LeaderStatus {
            client_address: addresses
                .and_then(|addresses| addresses.clients.clone())
                .or_else(|| leader_address.clone()),
            leader_address,
            leader,
            holder: status.holder.as_deref().map(str::to_owned),
            fencing_token: leadership.as_ref().map(Leadership::fencing_token),
            leadership,
            remaining,
            observed,
            last_error: self.last_recorded_error(&status).map(|error| error.at(now)),
        }
    }

    fn last_recorded_error(&self, status: &Status) -> Option<Box<RecordedError>> {
        let of_session = self.session.as_ref().and_then(|session| session.read().recorded_error.clone());
        of_session.into_iter().chain(status.recorded_error.clone()).max_by_key(|error| error.recorded_at)
    }

    /// The lease as the elector last read or wrote it, and the age of this observation; `None` before the first read,
    /// or if no object exists.
    #[must_use]
    pub fn observed(&self) -> Option<ObservedLease> {
        self.status().observed
    }

    /// The last [few](crate::handle::REMEMBERED_TRANSITIONS) changes of leadership and their reasons, oldest first.
    #[must_use]
    pub fn transitions(&self) -> Vec<Transition> {
        self.status.read().history.to_vec()
    }

    /// The last error between the elector and its lock, or between its session and the store; `None` if no error has
    /// happened. If its [`age`](LastError::age) is greater than [`ObservedLease::checked_for`], the store has answered
    /// a later request.
    #[must_use]
    pub fn last_error(&self) -> Option<LastError> {
        self.status().last_error
    }

    /// Completes when a request to the lock, or one of its session, has failed since the last call. The first call also
    /// completes if one has failed before this handle existed. Conflicts do not count as failures. Cancellation safe.
    ///
    /// # Errors
    ///
    /// [`ElectorDropped`] if the elector was dropped.
    pub async fn next_error(&mut self) -> Result<LastError, ElectorDropped> {
        loop {
            let of_session = self.session.as_mut().map_or(0, |session| session.read_and_mark().errors);
            let errors = self.status.read_and_mark().errors.wrapping_add(of_session);
            let has_changed = replace(&mut self.errors_returned, errors) != errors;
            if let Some(error) = self.last_error().filter(|_| has_changed) {
                return Ok(error);
            }
            let Self { status, session, .. } = self;
            tokio::select! {
                update = status.changed() => update.map_err(|_| ElectorDropped)?,
                () = next_update_of(session.as_mut()) => {}
            }
        }
    }

    /// Completes when the holder or the elector's own term has changed since the last call. The first call also
    /// completes if one of them has changed before this handle existed. Cancellation safe.
    ///
    /// A renewal does not count as a change, and neither does a lease that expires by itself.
    ///
    /// # Errors
    ///
    /// [`ElectorDropped`] if the elector was dropped.
    pub async fn changed(&mut self) -> Result<(), ElectorDropped> {
        loop {
            let changes = Some(self.status.read_and_mark().changes);
            if replace(&mut self.changes_returned, changes) != changes {
                return Ok(());
            }
            self.status.changed().await.map_err(|_| ElectorDropped)?;
        }
    }

    /// Waits until the elector leads, and returns its term. Completes at once if the elector leads already.
    /// Cancellation safe.
    ///
    /// # Errors
    ///
    /// [`ElectorDropped`] if the elector was dropped.
    pub async fn elected(&mut self) -> Result<Leadership, ElectorDropped> {
        loop {
            self.changes_returned = Some(self.status.read_and_mark().changes);
            if let Some(leadership) = self.leadership() {
                return Ok(leadership);
            }
            self.changed().await?;
        }
    }

    /// Returns a stream of the current status and of the status after every change. The stream ends when the elector is
    /// dropped. Changes that follow each other closely may be seen as one.
    pub fn into_stream(mut self) -> impl Stream<Item = LeaderStatus> + Send + 'static {
        self.changes_returned = None;
        unfold(self, |mut handle| async move {
            handle.changed().await.ok()?;
            Some((handle.status(), handle))
        })
    }

    /// Gives up leadership now, and lets other candidates go first. Returns `false` if the elector does not lead.
    ///
    /// When this function returns, the elector no longer leads. The elector then waits for the work to end, and
    /// releases the lease. [`run`](crate::Elector::run) returns, and [`campaign`](crate::Elector::campaign) competes
    /// again after [the cool-down](crate::LeaderElectionConfigBuilder::step_down_cool_down).
    pub fn step_down(&self) -> bool {
        self.leadership().is_some_and(|leadership| leadership.command(Command::StepDown))
    }

    /// Hands leadership over to the candidate `identity`.
    ///
    /// When this function returns, the elector no longer leads. The elector then waits for the work to end, and
    /// releases the lease with the name of the next leader in the record. The named candidate takes over at its next
    /// poll. All others, and this elector, compete only one lease duration later.
    ///
    /// The lease is released even if
    /// [`release_on_cancel`](crate::LeaderElectionConfigBuilder::release_on_cancel) is off.
    ///
    /// # Errors
    ///
    /// [`TransferError`] says why. After an error, nothing has changed.
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
