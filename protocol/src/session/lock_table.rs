//! The locks of a process (rules S2, S5 and S6).

use std::collections::BTreeMap;
use std::collections::btree_map::{Entry, VacantEntry};
use std::sync::Arc;
use std::time::Duration;

use super::{Directory, LockContent, SessionRecord, Write};
use crate::LocalInstant;
use crate::lease::{Lease, Limits, NoPermit, ReadError, Visitor};
use crate::record::{FIRST_TOKEN, MAX_TOKEN, Versioned};

/// The number of a lock in its process.
pub type LockId = u32;

/// The longest pause between two polls of a lock by its leader, measured by the leader's clock.
///
/// Safety depends on it: if somebody deletes a lock's object, all others wait until its leader must have noticed (S5).
/// All processes that share locks must use the same value. If their versions differ in it, all must use the largest.
pub const MAX_POLL_INTERVAL: Duration = Duration::from_secs(30);

/// The durations on which safety depends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Bounds {
    /// The lease duration L and the renew deadline D of the local sessions.
    pub limits: Limits,
    /// [`MAX_POLL_INTERVAL`], unless a policy or a model checker uses another pause.
    pub poll_interval: Duration,
    /// S5: how long a leader may lead a lock after a poll of it: no longer than others wait after a deletion.
    pub poll_counts_for: Duration,
}

impl Bounds {
    /// Creates bounds for a pause between polls. A poll counts for two renew deadlines longer than this pause, because
    /// the next poll may take that long to be answered.
    #[must_use]
    pub fn new(limits: Limits, poll_interval: Duration) -> Self {
        Self { limits, poll_interval, poll_counts_for: poll_interval + limits.renew_deadline * 2 }
    }

    /// S5: how long this process waits after a deletion. By then, a leader whose lease duration is `lease` must have
    /// polled. By our clock, the leader's pause takes at most `poll_interval` times our L/D, because clock rates differ
    /// by no more than that. The leader's two renew deadlines take at most twice `lease`.
    fn until_polled(self, lease: Duration) -> Duration {
        let Limits { lease_duration, renew_deadline } = self.limits;
        let product = self.poll_interval.as_nanos() * lease_duration.as_nanos();
        let pause = product.div_ceil(renew_deadline.as_nanos().max(1));
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

    /// The moment at which leadership ends, unless the session is renewed and the lock is polled before.
    #[must_use]
    pub fn valid_until(self) -> LocalInstant {
        self.valid_until
    }
}

/// All locks of a process: which ones it leads, and which ones it may take or release.
///
/// Nobody is supposed to delete the object of a lock. If somebody does, a process that has seen the lock waits until its leader must have
/// noticed, and continues with a token above all that it has seen. Others may have seen larger tokens. A process that has not seen the lock
/// creates a record with the first token.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct LockTable<R: SessionRecord> {
    me: R::Identity,
    bounds: Bounds,
    /// The locks, by number. A process may have ten thousand, so each is small.
    locks: Vec<Lock<R>>,
    /// For each session, the number of locks whose work needs it. A count, so that nobody searches thousands of locks.
    works: BTreeMap<R::SessionId, usize>,
    /// At most one request per lock. If there were two, the older answer could come last and be taken for the newer one.
    in_flight: BTreeMap<LockId, InFlight<R>>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Lock<R: SessionRecord> {
    seen: ObservedLock<R>,
    /// The token of the next term: above every token that a read or a committed write has shown.
    next_token: u64,
    /// S2: the smallest token with which a term may begin. A record of the local session with a smaller token belongs to a term that has
    /// already begun, or whose release was sent.
    first_new_token: u64,
    /// The moment until which the last poll counts. It matters only while the record names the local session.
    poll_by: LocalInstant,
    /// `true` while the record that was seen last belongs to a term that has begun and not ended.
    leads: bool,
    /// The session of the term whose work is running.
    working_session: Option<R::SessionId>,
}

/// The object of a lock, as the last answer has shown it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LockView<'a, R: SessionRecord> {
    /// Not read yet.
    Unknown,
    /// There is no object. It may be created from this moment on.
    Absent(LocalInstant),
    /// Nobody holds the lock.
    Free,
    /// This session holds the lock, or held it until the session ended.
    Held(&'a R::SessionId),
    /// The object is not a lock of a session.
    Refused,
}

/// The session and the token of a term.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Claim<R: SessionRecord> {
    session: R::SessionId,
    token: u64,
}

/// Like [`LockView`], with what the next write needs.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum ObservedLock<R: SessionRecord> {
    Unknown,
    Absent {
        /// The moment from which it may be created. Only a process that has seen the object has to wait for it.
        free_at: LocalInstant,
    },
    Free {
        version: R::Version,
        token: u64,
    },
    Held {
        version: R::Version,
        by: Claim<R>,
    },
    /// A plain lease, or something unreadable, which has no known version. It is never overwritten.
    Refused {
        version: Option<R::Version>,
        lease: Duration,
    },
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum InFlight<R: SessionRecord> {
    Read {
        /// The moment until which the poll counts. Like a window, it is counted from before the send.
        poll_by: LocalInstant,
    },
    Take {
        by: Claim<R>,
        poll_by: LocalInstant,
    },
    Release,
}

/// The place for a request about a lock that has none in flight.
type VacantRequest<'a, R> = VacantEntry<'a, LockId, InFlight<R>>;

/// The right to send one write to a lock now.
#[derive(Debug)]
pub struct LockPermit<'a, R: SessionRecord> {
    lock: &'a mut Lock<R>,
    in_flight: VacantRequest<'a, R>,
    /// The holder, its session, and the session's lease; `None` for a release.
    holder: Option<(&'a R::Identity, &'a R::SessionId, Duration)>,
    token: u64,
    expected: Option<R::Version>,
    /// Until when a take counts as a poll. A release does not use this.
    poll_by: LocalInstant,
}

impl<R: SessionRecord> LockPermit<'_, R> {
    /// The token that the write carries.
    #[must_use]
    pub fn token(&self) -> u64 {
        self.token
    }

    /// Makes the write. `draw_id` draws an id that no writer has ever used.
    pub fn write(self, draw_id: impl FnOnce() -> R::WriteId, decoration: R::Decoration) -> Write<R> {
        let LockPermit { lock, in_flight, holder, token, expected, poll_by } = self;
        in_flight.insert(match holder {
            Some((_, session, _)) => InFlight::Take { by: Claim { session: session.clone(), token }, poll_by },
            None => {
                // S2: even if a later read still shows the holder, no term begins: the release may still be committed.
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
        Self { me, bounds, locks: Vec::new(), works: BTreeMap::new(), in_flight: BTreeMap::new() }
    }

    /// Adds a lock with this number and all missing locks with smaller numbers. Nothing is known of a new lock.
    pub fn add(&mut self, id: LockId) {
        let index = id as usize;
        if index >= self.locks.len() {
            if index >= self.locks.capacity() {
                // A vector that grows by itself would double its capacity.
                self.locks.reserve_exact(index + index / 8 + 8 - self.locks.len());
            }
            self.locks.resize_with(index + 1, Lock::new);
        }
    }

    /// Forgets what is known of a lock, so that its number can be given to another one. This is refused while a request
    /// is in flight, and, with `WorkRuns`, while work runs or the local session may hold the lock. Ended terms are
    /// forgotten, too: if the next read were out of date, an old record of that session would begin its term again.
    pub fn forget(&mut self, id: LockId, own: Option<&Lease<R>>) -> Result<(), NoPermit> {
        let (lock, _) = idle(&mut self.locks, &mut self.in_flight, id)?;
        if lock.working_session.is_some() || lock.names(own) {
            return Err(NoPermit::WorkRuns);
        }
        *lock = Lock::new();
        Ok(())
    }

    // ---- What a policy and the session see ----

    /// Rule S2: the term that is valid now, if the last write of the lock that is known to be committed names the local session. Each call
    /// compares that session's deadline with the clock. A lock that was not polled for too long is no longer led (S5).
    pub fn term(&self, now: LocalInstant, id: LockId, own: &Lease<R>) -> Option<LockTerm> {
        self.locks.get(id as usize)?.valid(now, Some(own))
    }

    /// The lock's object.
    pub fn view(&self, id: LockId) -> LockView<'_, R> {
        match self.locks.get(id as usize).map(|lock| &lock.seen) {
            None | Some(ObservedLock::Unknown) => LockView::Unknown,
            Some(ObservedLock::Absent { free_at }) => LockView::Absent(*free_at),
            Some(ObservedLock::Free { .. }) => LockView::Free,
            Some(ObservedLock::Held { by, .. }) => LockView::Held(&by.session),
            Some(ObservedLock::Refused { .. }) => LockView::Refused,
        }
    }

    /// The version of the lock's object, if there is one.
    pub fn version(&self, id: LockId) -> Option<&R::Version> {
        match &self.locks.get(id as usize)?.seen {
            ObservedLock::Unknown | ObservedLock::Absent { .. } => None,
            ObservedLock::Free { version, .. } | ObservedLock::Held { version, .. } => Some(version),
            ObservedLock::Refused { version, .. } => version.as_ref(),
        }
    }

    /// The token of the next term.
    pub fn next_token(&self, id: LockId) -> u64 {
        self.locks.get(id as usize).map_or(FIRST_TOKEN, |lock| lock.next_token)
    }

    /// Returns `true` if a term has begun and not ended. Use [`term`](Self::term) to find out if it is valid now.
    pub fn leads(&self, id: LockId) -> bool {
        self.locks.get(id as usize).is_some_and(|lock| lock.leads)
    }

    /// The session of the term whose work is running.
    pub fn work_of(&self, id: LockId) -> Option<&R::SessionId> {
        self.locks.get(id as usize)?.working_session.as_ref()
    }

    /// Returns `true` if a request about the lock waits for its answer.
    pub fn is_busy(&self, id: LockId) -> bool {
        self.in_flight.contains_key(&id)
    }

    /// The session named by an unanswered write that takes the lock.
    pub fn session_of_take(&self, id: LockId) -> Option<&R::SessionId> {
        self.in_flight.get(&id).and_then(InFlight::session_of_take)
    }

    /// The number of unanswered requests.
    pub fn requests(&self) -> usize {
        self.in_flight.len()
    }

    /// The number of unanswered writes that take locks.
    pub fn takes(&self) -> usize {
        self.in_flight.values().filter_map(InFlight::session_of_take).count()
    }

    /// Rules S6 and 8: returns `true` if work runs that needs this session. When the session ends, no more work begins, and
    /// [`Lease::work_ended`] must not be called before this is false: no session is released while work runs.
    pub fn works_for(&self, session: &R::SessionId) -> bool {
        self.works.contains_key(session)
    }

    // ---- Permits ----

    /// Begins a read of a lock. The driver has to send it afterwards.
    pub fn begin_read(&mut self, now: LocalInstant, id: LockId) -> Result<(), NoPermit> {
        // Counted from before the send, because the answer shows what was there at some later moment.
        let poll_by = now + self.bounds.poll_counts_for;
        let (_, in_flight) = idle(&mut self.locks, &mut self.in_flight, id)?;
        in_flight.insert(InFlight::Read { poll_by });
        Ok(())
    }

    /// Rule S5, take: creates a missing lock, or takes a lock that is released, or whose session is over. The write
    /// replaces exactly the version that was read. It has a token above all seen, and names the local session, which
    /// must be open now. An expired session is not over yet: see [`Directory::is_over`].
    pub fn may_take<'a, N>(
        &'a mut self,
        now: LocalInstant,
        id: LockId,
        own: &'a Lease<R>,
        others: &Directory<R, N>,
    ) -> Result<LockPermit<'a, R>, NoPermit> {
        // Counted from before the send: if the write is committed, the object was there at a later moment.
        let poll_by = now + self.bounds.poll_counts_for;
        let me = &self.me;
        let (lock, in_flight) = idle(&mut self.locks, &mut self.in_flight, id)?;
        // If the session is not renewed, others end it and take the locks that name it. If our write is committed after that, it begins no
        // term: see `start`.
        let session = own.session().filter(|_| own.term(now).is_some()).ok_or(NoPermit::Nothing)?;
        if lock.working_session.is_some() {
            // No term begins while work of an ended term still runs, however long ago that term ended (rule 8).
            return Err(NoPermit::WorkRuns);
        }
        let (expected, token) = match &lock.seen {
            ObservedLock::Absent { free_at } if now < *free_at => return Err(NoPermit::Before(*free_at)),
            ObservedLock::Absent { .. } => (None, 0),
            ObservedLock::Free { version, token } => (Some(version.clone()), *token),
            ObservedLock::Held { version, by } if others.is_over(&by.session) => (Some(version.clone()), by.token),
            // A held lock, too: it is free once its session is known to be over, or a read shows that it was released.
            ObservedLock::Held { .. } | ObservedLock::Unknown => return Err(NoPermit::Unread),
            // A plain lease would need a watch of its own, which this table does not have.
            ObservedLock::Refused { .. } => return Err(NoPermit::Nothing),
        };
        if token >= MAX_TOKEN {
            // The largest token blocks the lock until a read shows that an operator has corrected the record.
            return Err(NoPermit::Unread);
        }
        // Not the record's token plus one: after a deletion or an out-of-date read, larger ones may have been seen.
        let token = lock.next_token;
        Ok(LockPermit { lock, in_flight, holder: Some((me, session, own.lease_duration())), token, expected, poll_by })
    }

    /// Rule S6, release: empties the holder of a lock of the local session, once the term and its work have ended.
    pub fn may_release(
        &mut self,
        now: LocalInstant,
        id: LockId,
        own: &Lease<R>,
    ) -> Result<LockPermit<'_, R>, NoPermit> {
        let (lock, in_flight) = idle(&mut self.locks, &mut self.in_flight, id)?;
        // A term whose window has just closed must not block the release.
        lock.tick(now, Some(own));
        if lock.leads || lock.working_session.is_some() {
            // Rule 8: leadership ends first, then the work, then the lock.
            return Err(NoPermit::WorkRuns);
        }
        match &lock.seen {
            ObservedLock::Held { version, by } if Some(&by.session) == own.session() => {
                let (expected, token) = (Some(version.clone()), by.token);
                Ok(LockPermit { lock, in_flight, holder: None, token, expected, poll_by: now })
            }
            ObservedLock::Unknown => Err(NoPermit::Unread),
            _ => Err(NoPermit::Nothing),
        }
    }

    // ---- The term ----

    /// Rule S2, lead: begins a term and its work, if the session that the record names is open. An answer after the end
    /// of that session begins no term, because another process may have replaced this version since. A record that
    /// names the local session is our own write, however late it was committed. Such a record begins a term only if no
    /// earlier term had its token, and this process has not sent a release of it.
    pub fn start(&mut self, now: LocalInstant, id: LockId, own: &Lease<R>) -> Result<LockTerm, NoPermit> {
        let lock = self.locks.get_mut(id as usize).ok_or(NoPermit::Nothing)?;
        if lock.working_session.is_some() {
            return Err(NoPermit::WorkRuns);
        }
        // Not `valid`, which requires a term that has begun.
        let term = lock.window(now, Some(own)).ok_or(NoPermit::Nothing)?;
        if term.token < lock.first_new_token {
            return Err(NoPermit::Nothing);
        }
        // From now on, no read begins this term again.
        lock.first_new_token = term.token + 1;
        // Counted before the work begins, so that the session is not released while it runs.
        (lock.leads, lock.working_session) = (true, own.session().cloned());
        if let Some(session) = own.session() {
            *self.works.entry(session.clone()).or_default() += 1;
        }
        Ok(term)
    }

    /// Ends a term. The caller has to stop its work.
    pub fn end_term(&mut self, id: LockId) {
        if let Some(lock) = self.locks.get_mut(id as usize) {
            lock.leads = false;
        }
    }

    /// Notes the end of a term's work. The term continues: a process may lead although its work is complete.
    pub fn work_ended(&mut self, id: LockId) {
        let ended = self.locks.get_mut(id as usize).and_then(|lock| lock.working_session.take());
        let Some(session) = ended else { return };
        if let Entry::Occupied(mut works) = self.works.entry(session) {
            *works.get_mut() -= 1;
            if *works.get() == 0 {
                works.remove();
            }
        }
    }

    // ---- Answers ----

    /// Handles the answer to a write. `committed` is its version, or `None` after any error.
    pub fn write_answered(&mut self, id: LockId, committed: Option<R::Version>) {
        let Some(lock) = self.locks.get_mut(id as usize) else { return };
        let is_read = matches!(self.in_flight.get(&id), Some(InFlight::Read { .. }));
        let sent = if is_read { None } else { self.in_flight.remove(&id) };
        match (sent, committed) {
            (Some(InFlight::Take { by, poll_by }), Some(version)) => {
                lock.saw_token(by.token);
                // Only `start` begins the new term. A term of an earlier session may still count as leading.
                (lock.leads, lock.poll_by) = (false, poll_by);
                lock.seen = ObservedLock::Held { version, by };
            }
            (Some(InFlight::Release), Some(version)) => {
                // The token stays in the record, so that the next term's is larger.
                if let ObservedLock::Held { by, .. } = &lock.seen {
                    lock.seen = ObservedLock::Free { version, token: by.token };
                }
            }
            // The write may still be committed. The known version stays: if it is replaced, the next write fails.
            _ => {}
        }
    }

    /// Handles the answer to a read. `others` learns of the session that holds the lock. `own` is the local session.
    pub fn read_answered<N: Default>(
        &mut self,
        now: LocalInstant,
        id: LockId,
        own: Option<&Lease<R>>,
        others: &mut Directory<R, N>,
        answer: Result<Option<Versioned<R>>, ReadError>,
    ) {
        let bounds = self.bounds;
        let Some(lock) = self.locks.get_mut(id as usize) else { return };
        // Before the answer is used: an answer that comes too late must not revive a term.
        lock.tick(now, own);
        let Some(InFlight::Read { poll_by }) = self.in_flight.get(&id) else { return };
        let poll_by = *poll_by;
        self.in_flight.remove(&id);
        let seen = match answer {
            // A failed poll extends nothing.
            Err(ReadError::Failed) => return,
            Err(ReadError::Unreadable) => ObservedLock::Refused { version: None, lease: Duration::ZERO },
            // This depends on what was seen before, so it comes before `seen` is replaced.
            Ok(None) => ObservedLock::Absent { free_at: lock.free_at(now, bounds, others) },
            Ok(Some(Versioned { record, version })) => {
                let token = record.token();
                lock.saw_token(token);
                match record.session() {
                    Some(session) => {
                        // The local session is not added: no process waits for itself. Once closed, it is like others.
                        if own.and_then(Lease::session) != Some(&session) {
                            let stated = record.session_lease().unwrap_or_else(|| others.longest_lease());
                            others.discover(&session, Some(stated));
                        }
                        ObservedLock::Held { version, by: Claim { session, token } }
                    }
                    None if record.holder().is_none() => ObservedLock::Free { version, token },
                    None => ObservedLock::Refused { version: Some(version), lease: record.lease_duration() },
                }
            }
        };
        let before = lock.holder();
        (lock.seen, lock.poll_by) = (seen, poll_by);
        // If the holder has changed, the term is over: another session has the lock, or may have taken it since. An old read may also show
        // an earlier term of the local session, which has ended.
        lock.leads &= lock.holder() == before;
    }

    /// Notes that a listing did not show this lock, so it may be created now. This counts only if the lock was never read. If the listing
    /// is false, the creation fails.
    pub fn not_listed(&mut self, now: LocalInstant, id: LockId) {
        // A lock that was seen before needs a wait, which only a read begins.
        let is_in_flight = self.in_flight.contains_key(&id);
        let lock = self.locks.get_mut(id as usize).filter(|_| !is_in_flight);
        if let Some(lock @ Lock { seen: ObservedLock::Unknown, .. }) = lock {
            lock.seen = ObservedLock::Absent { free_at: now };
        }
    }

    /// Notes a lock's version in a listing that was requested at `asked_at`. If it is the known version, this counts as
    /// a poll. Otherwise the lock has to be read, because a listing shows no holder.
    pub fn listed(
        &mut self,
        now: LocalInstant,
        asked_at: LocalInstant,
        id: LockId,
        own: Option<&Lease<R>>,
        version: &R::Version,
    ) {
        let poll_by = asked_at + self.bounds.poll_counts_for;
        let Some(lock) = self.locks.get_mut(id as usize) else { return };
        // This comes first: a late listing must not revive a term.
        lock.tick(now, own);
        if matches!(&lock.seen, ObservedLock::Held { version: known, .. } if known == version) {
            // A listing that was requested earlier may return after a newer poll.
            lock.poll_by = lock.poll_by.max(poll_by);
        }
    }

    /// For model checkers: shows every moment to `visitor`.
    pub fn visit(&mut self, visitor: &mut impl Visitor<R>) {
        let visit_poll = |poll_by: &mut LocalInstant, visitor: &mut _| {
            // A poll that counts forever must not get an end.
            if *poll_by != LocalInstant::from_nanos(u64::MAX) {
                Visitor::<R>::timer(visitor, poll_by);
            }
        };
        for lock in &mut self.locks {
            visit_poll(&mut lock.poll_by, visitor);
            if let ObservedLock::Absent { free_at } = &mut lock.seen {
                visitor.timer(free_at);
            }
        }
        for sent in self.in_flight.values_mut() {
            if let InFlight::Read { poll_by } | InFlight::Take { poll_by, .. } = sent {
                visit_poll(poll_by, visitor);
            }
        }
    }
}

/// A lock that has no request in flight, and the place for one.
fn idle<'a, R: SessionRecord>(
    locks: &'a mut [Lock<R>],
    in_flight: &'a mut BTreeMap<LockId, InFlight<R>>,
    id: LockId,
) -> Result<(&'a mut Lock<R>, VacantRequest<'a, R>), NoPermit> {
    let lock = locks.get_mut(id as usize).ok_or(NoPermit::Nothing)?;
    match in_flight.entry(id) {
        Entry::Vacant(place) => Ok((lock, place)),
        Entry::Occupied(_) => Err(NoPermit::Busy),
    }
}

impl<R: SessionRecord> InFlight<R> {
    fn session_of_take(&self) -> Option<&R::SessionId> {
        match self {
            Self::Take { by, .. } => Some(&by.session),
            Self::Read { .. } | Self::Release => None,
        }
    }
}

impl<R: SessionRecord> Lock<R> {
    fn new() -> Self {
        Self {
            seen: ObservedLock::Unknown,
            next_token: FIRST_TOKEN,
            first_new_token: 0,
            poll_by: LocalInstant::default(),
            leads: false,
            working_session: None,
        }
    }

    fn holder(&self) -> Option<Claim<R>> {
        match &self.seen {
            ObservedLock::Held { by, .. } => Some(by.clone()),
            _ => None,
        }
    }

    /// Remembers a token. The largest possible one counts only while the record shows it, so that an operator can correct the record.
    fn saw_token(&mut self, token: u64) {
        if token < MAX_TOKEN {
            self.next_token = self.next_token.max(token + 1);
        }
    }

    fn names(&self, own: Option<&Lease<R>>) -> bool {
        matches!(&self.seen, ObservedLock::Held { by, .. } if own.and_then(Lease::session) == Some(&by.session))
    }

    /// The term that has begun and is valid now.
    fn valid(&self, now: LocalInstant, own: Option<&Lease<R>>) -> Option<LockTerm> {
        self.window(now, own).filter(|_| self.leads)
    }

    /// The term that the last observed record gives now, whether or not it has begun.
    fn window(&self, now: LocalInstant, own: Option<&Lease<R>>) -> Option<LockTerm> {
        let (ObservedLock::Held { by, .. }, Some(own)) = (&self.seen, own) else { return None };
        if Some(&by.session) != own.session() || now >= self.poll_by {
            return None;
        }
        let valid_until = own.term(now)?.valid_until().min(self.poll_by);
        Some(LockTerm { token: by.token, valid_until })
    }

    /// Ends a term that is no longer valid, so that an answer which arrives now does not extend it.
    fn tick(&mut self, now: LocalInstant, own: Option<&Lease<R>>) {
        self.leads &= self.valid(now, own).is_some();
    }

    /// Rule S5: the moment from which a missing object may be created. If the object was seen before, a session may hold the lock, and all
    /// others wait until that session must have polled it. Further reads and candidacies of this process do not restart this wait.
    fn free_at<N>(&self, now: LocalInstant, bounds: Bounds, others: &Directory<R, N>) -> LocalInstant {
        let record_lease = match &self.seen {
            ObservedLock::Absent { free_at } => return *free_at,
            // This process has never seen the object, so it knows of no holder.
            ObservedLock::Unknown => return now,
            // Nobody else can have taken it: the session is open, and no release was sent.
            ObservedLock::Held { .. } if self.leads => return now,
            // The holder may have released it since it was read, and a session with a longer lease may have taken it.
            ObservedLock::Held { .. } | ObservedLock::Free { .. } => Duration::ZERO,
            ObservedLock::Refused { lease, .. } => *lease,
        };
        let lease = others.longest_lease().max(record_lease);
        now + bounds.until_polled(lease)
    }
}
