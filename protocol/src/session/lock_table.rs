//! The locks (rules S2, S5 and S6).

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use super::{Directory, LockContent, SessionRecord, Write};
use crate::LocalInstant;
use crate::lease::{Lease, Limits, NotYet, ReadError, Visitor};
use crate::record::{MAX_TOKEN, Versioned};

/// The number of a lock in its process.
pub type LockId = u32;

/// The longest pause between two looks of a leader at its lock, by the leader's clock.
///
/// It has the rank of L and D: after somebody has deleted the object of a lock, all others wait this long for its leader to notice
/// (S5). All processes that share locks have to have one value, or those that wait the largest.
pub const LOOK: Duration = Duration::from_secs(30);

/// The numbers on which safety depends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Bounds {
    /// L and D of the own sessions.
    pub limits: Limits,
    /// [`LOOK`], unless an explorer has shorter times.
    pub look: Duration,
}

impl Bounds {
    /// S5: the time for which a look at a lock counts for its leader. A look that is under way when the pause is over has until then
    /// to be answered.
    fn look_counts_for(self) -> Duration {
        self.look + self.limits.renew_deadline * 2
    }

    /// S5: the time for which others wait, after a deletion, for a leader with this lease to have looked. No clock is slower than
    /// another by more than L/D, for every pair of L and D. So the look takes at most `look` times the own L/D, and the rest of
    /// [`look_counts_for`](Self::look_counts_for), two deadlines, at most two leases.
    fn until_looked(self, lease: Duration) -> Duration {
        let Limits { lease_duration, renew_deadline } = self.limits;
        let slowest = self.look.as_nanos() * lease_duration.as_nanos();
        let pause = slowest.div_ceil(renew_deadline.as_nanos().max(1));
        Duration::from_nanos(u64::try_from(pause).unwrap_or(u64::MAX)) + lease * 2
    }
}

/// A term of a lock that is valid now.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct LockTerm {
    token: u64,
    valid_until: LocalInstant,
}

impl LockTerm {
    /// The fencing token.
    #[must_use]
    pub fn token(self) -> u64 {
        self.token
    }

    /// The moment at which leadership ends, unless the session is renewed and the lock is looked at.
    #[must_use]
    pub fn valid_until(self) -> LocalInstant {
        self.valid_until
    }
}

/// The locks of a process: which it leads, and which it may take or release.
///
/// Nobody deletes the object of a lock, as nobody deletes that of a lease. If somebody does, whoever has seen the lock waits until its
/// leader has noticed, and continues with a larger token. Whoever has not seen it creates a record with token 0.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct LockTable<R: SessionRecord> {
    me: R::Identity,
    bounds: Bounds,
    locks: BTreeMap<LockId, Lock<R>>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Lock<R: SessionRecord> {
    seen: Seen<R>,
    /// Above every token seen or written.
    next_token: u64,
    /// A record of an own session with a smaller token is what is left of an ended term, or was released (S2).
    first_new_token: u64,
    /// The moment until which the last look counts that showed a record of an own session.
    look_by: LocalInstant,
    term: Option<Held<R>>,
    /// The session of the term whose work runs.
    works_for: Option<R::SessionId>,
    /// One request at a time: of two answers the older one could come last, and pass for news.
    in_flight: Option<InFlight<R>>,
}

/// The session and the token of a term.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Held<R: SessionRecord> {
    session: R::SessionId,
    token: u64,
}

/// The object, as the last answer has shown it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Seen<R: SessionRecord> {
    Unknown,
    Absent {
        /// Later than the answer only if the object was seen before.
        free_at: LocalInstant,
    },
    Free {
        version: R::Version,
        token: u64,
    },
    Held {
        version: R::Version,
        by: Held<R>,
    },
    /// A lease, or something unreadable: never written over.
    Refused {
        lease: Duration,
    },
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum InFlight<R: SessionRecord> {
    /// The moment until which the look counts. It is counted from before the send, as a window is.
    Read {
        look_by: LocalInstant,
    },
    Claim {
        by: Held<R>,
        look_by: LocalInstant,
    },
    Release,
}

/// The right to send one write to a lock now.
#[derive(Debug)]
pub struct LockPermit<'a, R: SessionRecord> {
    lock: &'a mut Lock<R>,
    /// The holder, its session, and the lease of that; `None` for a release.
    holder: Option<(&'a R::Identity, &'a R::SessionId, Duration)>,
    token: u64,
    expected: Option<R::Version>,
    look_by: LocalInstant,
}

impl<R: SessionRecord> LockPermit<'_, R> {
    /// Makes the write. `draw_id` draws an id that no writer has ever used.
    pub fn write(self, draw_id: impl FnOnce() -> R::WriteId, decoration: R::Decoration) -> Write<R> {
        let LockPermit { lock, holder, token, expected, look_by } = self;
        lock.in_flight = Some(match holder {
            Some((_, session, _)) => InFlight::Claim { by: Held { session: session.clone(), token }, look_by },
            None => {
                // S2: a read that shows this record once more begins no term, because the release may be on its way.
                lock.first_new_token = lock.first_new_token.max(token + 1);
                InFlight::Release
            }
        });
        let record = Arc::new(R::of_lock(LockContent { holder, token, write_id: draw_id() }, decoration));
        Write { record, expected }
    }
}

impl<R: SessionRecord> LockTable<R> {
    /// Creates a table without locks.
    pub fn new(me: R::Identity, bounds: Bounds) -> Self {
        Self { me, bounds, locks: BTreeMap::new() }
    }

    /// Adds a lock that was not seen.
    pub fn add(&mut self, id: LockId) {
        self.locks.entry(id).or_insert_with(Lock::new);
    }

    // ---- What a policy and the session see ----

    /// Rule S2: the term that is valid now. The last write of the lock that is known to have landed names the own session, and that
    /// session is open, by the clock on every call. A lock that was not looked at for too long is led no more (S5).
    pub fn term(&self, now: LocalInstant, id: LockId, own: &Lease<R>) -> Option<LockTerm> {
        self.locks.get(&id)?.valid(now, own)
    }

    /// Rule S6: tells whether work runs that needs this session.
    pub fn works_for(&self, session: &R::SessionId) -> bool {
        self.locks.values().any(|lock| lock.works_for.as_ref() == Some(session))
    }

    /// Rules S6 and 8: tells the own session that no work needs it any more, without which it is not released. It counts only after
    /// the end of the session, when no lock begins work any more.
    pub fn all_work_ended(&self, now: LocalInstant, own: &mut Lease<R>) -> Result<(), NotYet> {
        if own.session().is_some_and(|session| self.works_for(session)) {
            return Err(NotYet::WorkRuns);
        }
        own.tick(now);
        if !own.stage().awaits_work() {
            return Err(NotYet::Nothing);
        }
        own.work_ended(now, false);
        Ok(())
    }

    // ---- Permits ----

    /// Begins a read of a lock, which the driver has to send then.
    pub fn may_read(&mut self, now: LocalInstant, id: LockId) -> Result<(), NotYet> {
        let look_by = now + self.bounds.look_counts_for();
        let lock = self.locks.get_mut(&id).ok_or(NotYet::Nothing)?;
        lock.is_idle()?;
        lock.in_flight = Some(InFlight::Read { look_by });
        Ok(())
    }

    /// Rule S5, take: creates a missing lock, or replaces the record of one that nothing holds, on exactly the version that was read,
    /// with the token plus one. The write names a session that is open now. Nothing holds a lock that is released, or whose session is
    /// over. That it looks expired is not enough: see [`Directory::is_over`].
    pub fn may_take<'a, N>(
        &'a mut self,
        now: LocalInstant,
        id: LockId,
        own: &'a Lease<R>,
        others: &Directory<R, N>,
    ) -> Result<LockPermit<'a, R>, NotYet> {
        let look_by = now + self.bounds.look_counts_for();
        let lock = self.locks.get_mut(&id).ok_or(NotYet::Nothing)?;
        lock.is_idle()?;
        let session = own.session().filter(|_| own.term(now).is_some()).ok_or(NotYet::Nothing)?;
        if lock.works_for.is_some() {
            // Not beside the work of an ended term, however late it is (rule 8).
            return Err(NotYet::WorkRuns);
        }
        let (expected, token) = match &lock.seen {
            Seen::Absent { free_at } if now < *free_at => return Err(NotYet::Before(*free_at)),
            Seen::Absent { .. } => (None, 0),
            Seen::Free { version, token } => (Some(version.clone()), *token),
            Seen::Held { version, by } if others.is_over(&by.session) => (Some(version.clone()), by.token),
            Seen::Held { .. } | Seen::Unknown => return Err(NotYet::Unread),
            Seen::Refused { .. } => return Err(NotYet::Nothing),
        };
        if token >= MAX_TOKEN {
            // It bars the lock while the record shows it, so that an operator can correct the record.
            return Err(NotYet::Unread);
        }
        let token = lock.next_token;
        Ok(LockPermit { lock, holder: Some((&self.me, session, own.lease_duration())), token, expected, look_by })
    }

    /// Rule S6, release: an empty holder over a record of the own session, the token kept. The work has ended before, and with it the
    /// term.
    /// How many releases a session tells of is decoration: others look sooner by it, and decide nothing.
    pub fn may_release(&mut self, now: LocalInstant, id: LockId, own: &Lease<R>) -> Result<LockPermit<'_, R>, NotYet> {
        let lock = self.locks.get_mut(&id).ok_or(NotYet::Nothing)?;
        lock.is_idle()?;
        if lock.works_for.is_some() {
            return Err(NotYet::WorkRuns);
        }
        match &lock.seen {
            Seen::Held { version, by } if Some(&by.session) == own.session() => {
                let (expected, token) = (Some(version.clone()), by.token);
                Ok(LockPermit { lock, holder: None, token, expected, look_by: now })
            }
            Seen::Unknown => Err(NotYet::Unread),
            _ => Err(NotYet::Nothing),
        }
    }

    // ---- The term ----

    /// Rule S2, lead: begins a term, and its work, while the session that the record names is open. An answer that comes after the end
    /// of that session begins none: whoever took the lock since has replaced this very version. A record that names the own session is
    /// an own write, however late it has landed. It begins a term only if no earlier one had its token and this process has sent no
    /// release of it.
    pub fn start(&mut self, now: LocalInstant, id: LockId, own: &Lease<R>) -> Result<LockTerm, NotYet> {
        let lock = self.locks.get_mut(&id).ok_or(NotYet::Nothing)?;
        if lock.works_for.is_some() {
            return Err(NotYet::WorkRuns);
        }
        let Seen::Held { by, .. } = &lock.seen else { return Err(NotYet::Nothing) };
        if by.token < lock.first_new_token {
            return Err(NotYet::Nothing);
        }
        let by = by.clone();
        let term = lock.window(now, &by, own).ok_or(NotYet::Nothing)?;
        lock.first_new_token = by.token + 1;
        // Counted before the work begins, so that nothing releases the session beside it.
        lock.works_for = Some(by.session.clone());
        lock.term = Some(by);
        Ok(term)
    }

    /// Ends a term. Its work has to be told.
    pub fn end_term(&mut self, id: LockId) {
        if let Some(lock) = self.locks.get_mut(&id) {
            lock.term = None;
        }
    }

    /// Takes the end of a term's work, which ends the term, if nothing else has.
    pub fn work_ended(&mut self, id: LockId) {
        if let Some(lock) = self.locks.get_mut(&id) {
            (lock.term, lock.works_for) = (None, None);
        }
    }

    // ---- Answers ----

    /// Takes the answer to a write: its version if it landed. In every other case only a read shows whose the lock is.
    pub fn write_answered(&mut self, id: LockId, landed: Option<R::Version>) {
        let Some(lock) = self.locks.get_mut(&id) else { return };
        let sent = lock.in_flight.take_if(|sent| !matches!(sent, InFlight::Read { .. }));
        match (sent, landed) {
            (Some(InFlight::Claim { by, look_by }), Some(version)) => {
                lock.next_token = lock.next_token.max(by.token + 1);
                lock.look_by = look_by;
                lock.seen = Seen::Held { version, by };
            }
            (Some(InFlight::Release), Some(version)) => {
                if let Seen::Held { by, .. } = &lock.seen {
                    lock.seen = Seen::Free { version, token: by.token };
                }
            }
            _ => {}
        }
    }

    /// Takes the answer to a read. `others` hears of the session that holds the lock.
    pub fn read_answered<N: Default>(
        &mut self,
        now: LocalInstant,
        id: LockId,
        own: &Lease<R>,
        others: &mut Directory<R, N>,
        answer: Result<Option<Versioned<R>>, ReadError>,
    ) {
        let bounds = self.bounds;
        let Some(lock) = self.locks.get_mut(&id) else { return };
        lock.tick(now, own);
        let Some(InFlight::Read { look_by }) = lock.in_flight.take_if(|sent| matches!(sent, InFlight::Read { .. }))
        else {
            return;
        };
        let seen = match answer {
            Err(ReadError::Failed) => return,
            Err(ReadError::Unreadable) => Seen::Refused { lease: Duration::ZERO },
            Ok(None) => Seen::Absent { free_at: lock.free_at(now, bounds, own, others) },
            Ok(Some(Versioned { record, version })) => {
                let token = record.token();
                if token < MAX_TOKEN {
                    lock.next_token = lock.next_token.max(token + 1);
                }
                match record.session() {
                    Some(session) => {
                        if Some(session) != own.session() {
                            others.heard_of(session, record.session_lease());
                        }
                        Seen::Held { version, by: Held { session: session.clone(), token } }
                    }
                    None if record.holder().is_none() => Seen::Free { version, token },
                    None => Seen::Refused { lease: record.lease_duration() },
                }
            }
        };
        lock.seen = seen;
        lock.look_by = look_by;
        let shows = |term: &Held<R>| matches!(&lock.seen, Seen::Held { by, .. } if by == term);
        if !lock.term.as_ref().is_some_and(shows) {
            // Another holder has the lock, or none. Somebody may hold it already.
            lock.term = None;
        }
    }

    /// Takes a listing of the locks that was asked for at `asked_at`. It counts as a look at a lock of which it shows the version that
    /// is known, and is a reason for a read otherwise. It shows no holder.
    pub fn listed(
        &mut self,
        now: LocalInstant,
        asked_at: LocalInstant,
        id: LockId,
        own: &Lease<R>,
        version: &R::Version,
    ) {
        let look_by = asked_at + self.bounds.look_counts_for();
        let Some(lock) = self.locks.get_mut(&id) else { return };
        lock.tick(now, own);
        if matches!(&lock.seen, Seen::Held { version: known, .. } if known == version) {
            lock.look_by = lock.look_by.max(look_by);
        }
    }

    /// Shows every moment to `visitor`.
    pub fn visit(&mut self, visitor: &mut impl Visitor<R>) {
        for lock in self.locks.values_mut() {
            visitor.timer(&mut lock.look_by);
            if let Seen::Absent { free_at } = &mut lock.seen {
                visitor.timer(free_at);
            }
            if let Some(InFlight::Read { look_by } | InFlight::Claim { look_by, .. }) = &mut lock.in_flight {
                visitor.timer(look_by);
            }
        }
    }
}

impl<R: SessionRecord> Lock<R> {
    fn new() -> Self {
        Self {
            seen: Seen::Unknown,
            next_token: 0,
            first_new_token: 0,
            look_by: LocalInstant::default(),
            term: None,
            works_for: None,
            in_flight: None,
        }
    }

    fn is_idle(&self) -> Result<(), NotYet> {
        if self.in_flight.is_some() { Err(NotYet::Busy) } else { Ok(()) }
    }

    fn valid(&self, now: LocalInstant, own: &Lease<R>) -> Option<LockTerm> {
        self.window(now, self.term.as_ref()?, own)
    }

    /// The window of a term by this session and token.
    fn window(&self, now: LocalInstant, by: &Held<R>, own: &Lease<R>) -> Option<LockTerm> {
        if Some(&by.session) != own.session() || now >= self.look_by {
            return None;
        }
        let valid_until = own.term(now)?.valid_until().min(self.look_by);
        Some(LockTerm { token: by.token, valid_until })
    }

    /// A term that is over stays over: what arrives now must not extend it.
    fn tick(&mut self, now: LocalInstant, own: &Lease<R>) {
        if self.valid(now, own).is_none() {
            self.term = None;
        }
    }

    /// Rule S5: the moment from which an object that was not found may be created. If it was seen before, a session may hold it, and
    /// everybody else waits for that to have looked. No other candidacy and no other read begins the wait again, or ends it.
    fn free_at<N>(&self, now: LocalInstant, bounds: Bounds, own: &Lease<R>, others: &Directory<R, N>) -> LocalInstant {
        let longest = others.longest_lease();
        let lease = match &self.seen {
            Seen::Absent { free_at } => return *free_at,
            Seen::Unknown => return now,
            // Nobody else could take it yet.
            Seen::Held { by, .. } if Some(&by.session) == own.session() && own.term(now).is_some() => return now,
            Seen::Held { by, .. } => match others.get(&by.session) {
                Some((holder, _)) if !holder.is_over() => holder.lease_duration(),
                // Somebody may have taken it since it was read.
                _ => longest,
            },
            Seen::Free { .. } => longest,
            Seen::Refused { lease } => longest.max(*lease),
        };
        now + bounds.until_looked(lease)
    }
}
