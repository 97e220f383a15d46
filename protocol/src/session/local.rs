//! The own session (rules S1 and S6).

use std::time::Duration;

use super::SessionRecord;
use crate::LocalInstant;
use crate::lease::{Event, Lease, Limits, NotYet, Permit, ReadError, Term, Visitor};
use crate::record::Versioned;

/// The own session: a [`Lease`] for one term of an object that nobody else creates.
///
/// Its events are those of the lease, about the work of all locks together. After [`Event::Rested`] the session is over for good, and
/// the process may open another.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct LocalSession<R: SessionRecord> {
    id: R::SessionId,
    lease_duration: Duration,
    lease: Lease<R>,
    is_created: bool,
}

impl<R: SessionRecord> LocalSession<R> {
    /// Prepares a session. `id` was never used before.
    pub fn new(now: LocalInstant, id: R::SessionId, me: R::Identity, limits: Limits) -> Self {
        let mut lease = Lease::new(me, limits, false);
        lease.begin(now, None);
        Self { id, lease_duration: limits.lease_duration, lease, is_created: false }
    }

    /// The ID.
    pub fn id(&self) -> &R::SessionId {
        &self.id
    }

    /// L of the session, which its locks tell.
    pub(super) fn lease_duration(&self) -> Duration {
        self.lease_duration
    }

    /// Rules S1 and 4: the window of the session, and so of every lock that it holds. It is a comparison with the clock on every
    /// call.
    pub fn window(&self, now: LocalInstant) -> Option<Term> {
        self.lease.term(now)
    }

    /// The lease, of which everything may be looked at, and which only this session changes.
    pub fn lease(&self) -> &Lease<R> {
        &self.lease
    }

    // ---- Permits ----

    /// Begins a read of the session's object. See [`Lease::may_read`].
    pub fn may_read(&mut self) -> Result<(), NotYet> {
        self.lease.may_read()
    }

    /// Rule S1, open: one write creates an ID. If its outcome is unknown and a read does not show it, the process takes another ID: a
    /// second creation could land after others have ended the first one and have taken its locks. The permit counts as that write.
    pub fn may_create(&mut self, now: LocalInstant) -> Result<Permit<'_, R>, NotYet> {
        if self.is_created || self.lease.watch().found().is_some() {
            return Err(NotYet::Nothing);
        }
        let permit = self.lease.may_acquire(now)?;
        self.is_created = true;
        Ok(permit)
    }

    /// Rules S1 and 5, renew: only while the window is open. A lease that was won too late is renewed before its term starts; a
    /// session is not. Others may have ended it and deleted its object, and if the network then delivers the creation once more, a
    /// renewal would open a session that others know to be over.
    pub fn may_renew(&mut self, now: LocalInstant) -> Result<Permit<'_, R>, NotYet> {
        if self.window(now).is_none() {
            return Err(NotYet::Nothing);
        }
        self.lease.may_renew(now)
    }

    /// Rule S6, release: one write ends the session and frees its locks. All their work has ended before: see
    /// [`LockTable::all_work_ended`](super::LockTable::all_work_ended).
    pub fn may_release(&mut self, now: LocalInstant) -> Result<Permit<'_, R>, NotYet> {
        self.lease.may_release(now)
    }

    // ---- Answers and time ----

    /// Takes the answer to the read of the session's object.
    pub fn read_answered(&mut self, now: LocalInstant, answer: Result<Option<Versioned<R>>, ReadError>) {
        // Sessions ignore ages (rule 19).
        self.lease.read_answered(now, answer, Duration::ZERO);
    }

    /// Takes the answer to a write of the session's object. See [`Lease::write_answered`].
    pub fn write_answered(&mut self, now: LocalInstant, landed: Option<R::Version>) {
        self.lease.write_answered(now, landed);
    }

    /// Looks at the clock.
    pub fn tick(&mut self, now: LocalInstant) {
        self.lease.tick(now);
    }

    /// Returns the next event, oldest first.
    pub fn next_event(&mut self) -> Option<Event> {
        self.lease.next_event()
    }

    // ---- The end ----

    /// Ends the session, or the try to open it. A session that was created, or may have been, is released then.
    pub fn end(&mut self, now: LocalInstant) {
        self.lease.end_term(now, None);
        self.lease.withdraw(now);
    }

    /// Rule 8: takes the end of all work, which counts only after the end of the session. See [`LockTable::all_work_ended`].
    ///
    /// [`LockTable::all_work_ended`]: super::LockTable::all_work_ended
    pub(super) fn work_ended(&mut self, now: LocalInstant) -> Result<(), NotYet> {
        self.lease.tick(now);
        if !self.lease.stage().awaits_work() {
            return Err(NotYet::Nothing);
        }
        self.lease.work_ended(now, false);
        Ok(())
    }

    /// Leaves the session to run out.
    pub fn give_up(&mut self, now: LocalInstant) {
        self.lease.give_up(now);
    }

    /// Shows every moment to `visitor`.
    pub fn visit(&mut self, visitor: &mut impl Visitor<R>) {
        self.lease.visit(visitor);
    }
}
