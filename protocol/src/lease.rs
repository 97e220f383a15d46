//! One lease: observe it, acquire it, renew it and release it (rules 1 to 9, 12 to 15, 18, 19, 22 and 24 of docs/protocol.md).
//!
//! The *record* is the content of the lock's object, and a *version* identifies one content. A *candidate* *observes*
//! the record and *acquires* the lease; the *holder* *renews* and *releases* it. The holder may act as leader while its
//! *window* is open. The window closes one renew deadline after the holder began to send its last write that is known
//! to be committed. A *term* lasts from the acquisition until the window closes. Each term has a larger *token* than
//! all before.
//!
//! A *session* is a lease for one term, under which a process holds many locks (rule S1). A *job* is work that has to succeed only once. A
//! record with the job's *mark* says that the job has succeeded (rule 18).
//!
//! ```text
//!   Candidate -- acquire commits --> Won -- window open: Start --> Leading --+
//!     ^   ^                           |                              |  ^    | renewal committed: Extend
//!     |   +------------ lost ---------+                              |  +----+
//!     |                               | withdraw                     | deadline, command or loss: Stop
//!     |                               v                              v
//!     +--------- Finished ---------- Over <------- work ended -- Stopping --> Dropped --> Abandoned
//! ```
//!
//! - When the work ends, Stopping and Dropped become Over, and Abandoned becomes Candidate.
//! - If the work ends before the term, Leading becomes Over at the end of the term.
//! - If a candidate withdraws after a write that may have acquired the lease, Candidate becomes Over, too.
//! - Only the policy ends Over: it releases the lease, or gives up, for example because the lease was lost.
//!
//! A *permit* is the right to send one write. A *policy* decides when to read, when to use a permit, and when to end a
//! term. A *driver* sends the requests and carries out the effects.
//!
//! The promises that terms exclude each other, and that tokens grow, depend on these assumptions:
//!
//! - The store's conditional writes are linearizable, and no version identifies two contents. Reads may be stale: a stale read can only end
//!   a term early, or make a candidate wait longer.
//! - Nobody deletes the object, and nobody clears the record while a term may be open. After a deletion, those who saw a lease still wait
//!   for its end, but a candidate that has seen no token starts again with the first token (rule 13).
//! - The id of a write is random, and drawn after the writer has read its clock for the send. So a peer's message that names the id always
//!   comes after that moment (rule 15).
//! - L/D >= (rate of the fastest candidate's clock) / (rate of the slowest one's), where L is the lease duration and D the renew
//!   deadline. This protects the window. Work that continues after the window needs fencing, or a larger margin.
//! - Each request gets one answer. After a timeout, the driver answers that the read failed, or that the write is not
//!   known to be committed. After [`Effect::Finished`], the driver drops the answer to the request that was in flight.
//!
//! *Now* is read from the candidate's own monotonic clock, which counts during a suspend. No wall clock is read.

mod visit;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use crate::LocalInstant;
use crate::record::{Content, FIRST_TOKEN, MAX_TOKEN, RELEASED_LEASE, Record, Versioned, is_same_write};

pub use visit::Visitor;

/// L and D: how long one write blocks others, and how long it gives leadership.
///
/// Every candidate's pair must satisfy the bound on L/D at the top of this file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Limits {
    /// The lease duration L.
    pub lease_duration: Duration,
    /// The renew deadline D.
    pub renew_deadline: Duration,
}

/// The times of one write, counted from before its send.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Window {
    sent_at: LocalInstant,
    /// The end of the leadership that the write gives.
    valid_until: LocalInstant,
    /// The earliest moment at which others may acquire the lease.
    lease_until: LocalInstant,
}

impl Window {
    fn new(sent_at: LocalInstant, limits: Limits) -> Self {
        let Limits { lease_duration, renew_deadline } = limits;
        Self { sent_at, valid_until: sent_at + renew_deadline, lease_until: sent_at + lease_duration }
    }

    /// Rule 22: shortens the times to those of `limits`. The result satisfies the bound on L/D if both `limits` and the window do.
    fn capped(self, limits: Limits) -> Self {
        let cap = Self::new(self.sent_at, limits);
        let valid_until = self.valid_until.min(cap.valid_until);
        Self { valid_until, lease_until: self.lease_until.min(cap.lease_until), ..self }
    }

    /// How long before the end of the lease the work is dropped if it still runs (rule 8): an eighth of the time
    /// between the end of leadership and the end of the lease.
    fn stop_margin(self) -> Duration {
        self.lease_until.saturating_since(self.valid_until) / 8
    }
}

/// A term and its window. A term comes only from a write that is known to be committed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Term {
    token: u64,
    window: Window,
}

impl Term {
    /// The fencing token.
    #[must_use]
    pub fn token(self) -> u64 {
        self.token
    }

    /// The moment before the send of the last write that is known to be committed.
    #[must_use]
    pub fn sent_at(self) -> LocalInstant {
        self.window.sent_at
    }

    /// The moment at which leadership ends unless it is renewed.
    #[must_use]
    pub fn valid_until(self) -> LocalInstant {
        self.window.valid_until
    }
}

/// A conditional write, which only a [`Permit`] makes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Write<R: Record> {
    kind: Kind,
    record: Arc<R>,
    expected: Option<R::Version>,
}

impl<R: Record> Write<R> {
    /// The purpose of the write.
    #[must_use]
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// The record to write.
    #[must_use]
    pub fn record(&self) -> &Arc<R> {
        &self.record
    }

    /// The version to replace; `None` creates the object.
    #[must_use]
    pub fn expected(&self) -> Option<&R::Version> {
        self.expected.as_ref()
    }
}

/// The purpose of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Begins a term.
    Acquire,
    /// Prolongs a term.
    Renew,
    /// Ends the lease.
    Release,
    /// A *transfer request*: asks another holder, whose term and lease stay the same, to hand over (rules 14 and 24).
    Request,
}

/// Why a permit is not given. `JobDone` is final for the candidacy and `Spent` for the session; the other reasons are temporary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoPermit {
    /// It is too early. If nothing else changes, the permit is given from this moment on.
    Before(LocalInstant),
    /// Only the answer to a read can allow the write.
    Unread,
    /// A request is in flight.
    Busy,
    /// The work of an ended term still runs.
    WorkRuns,
    /// The job is done (rule 18).
    JobDone,
    /// This session can no longer begin its only term; the process must open a new session (S1).
    Spent,
    /// There is nothing of this kind to write in this state.
    Nothing,
}

/// The right to send one write now. Borrows the lease, so nothing changes between the decision and the write.
#[derive(Debug)]
pub struct Permit<'a, R: Record> {
    lease: &'a mut Lease<R>,
    now: LocalInstant,
    kind: Kind,
}

impl<R: Record> Permit<'_, R> {
    /// The purpose of the write.
    #[must_use]
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// The object that the write replaces; `None` if the write creates the object.
    #[must_use]
    pub fn replaces(&self) -> Option<&Versioned<R>> {
        match self.kind {
            Kind::Renew | Kind::Release => self.lease.own(),
            Kind::Acquire | Kind::Request => self.lease.watch.found(),
        }
    }

    /// The token that the write carries.
    #[must_use]
    pub fn token(&self) -> u64 {
        match (self.kind, self.replaces()) {
            // Rule 3: the token is above every token seen, even if the object was deleted since.
            (Kind::Acquire, _) | (_, None) => self.lease.next_token,
            (_, Some(found)) => found.record.token(),
        }
    }

    /// Makes the write. Send it once, and turn off the retries of SDKs (rule 7): a second attempt at a committed write fails, and would
    /// hide the success. `draw_id` draws an id that no writer has ever used.
    pub fn write(self, draw_id: impl FnOnce() -> R::WriteId, decoration: R::Decoration) -> Write<R> {
        let token = self.token();
        let before = self.replaces().cloned();
        let Permit { lease, now, kind } = self;
        let known = before.as_ref().map(|found| &*found.record);
        let (me, lease_duration) = (Some(&lease.me), lease.limits.lease_duration);
        let successor = lease.held.as_ref().and_then(|held| held.successor.as_deref());
        let others_record = known.filter(|_| kind == Kind::Request);
        let write_id = others_record.map_or_else(|| Some(draw_id()), |record| record.write_id().cloned());
        let (holder, lease_duration, preferred) = match (kind, others_record) {
            (Kind::Renew, _) => (me, lease_duration, successor),
            (Kind::Release, _) => (None, RELEASED_LEASE, successor),
            // Rule 14: the id, the lease and the token stay, because the holder recognizes its record by them.
            (_, Some(record)) => (record.holder(), record.lease_duration(), me),
            (Kind::Acquire | Kind::Request, None) => (me, lease_duration, None),
        };
        // Rule 18: the mark is part of the release, so whoever sees the release also sees that the job is done.
        let mark = lease.job.as_ref().filter(|job| kind == Kind::Release && job.succeeded).map(|job| &job.id);
        let content = Content { holder, lease_duration, token, write_id, preferred, mark };
        let record = Arc::new(R::replacing(known, content, decoration));
        let expected = before.map(|found| found.version);
        lease.session.iter_mut().for_each(|session| session.has_tried_to_create = true);
        // Rule 4: the window counts from here, before the request is sent.
        let sent = Sent { kind, record: Arc::clone(&record), window: Window::new(now, lease.limits) };
        lease.in_flight = Some(InFlight::Write(sent));
        Write { kind, record, expected }
    }
}

/// The failure of a read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ReadError {
    /// The read failed, and nothing is known.
    Failed,
    /// There is an object, but it is not a record. It must never be overwritten.
    Unreadable,
}

/// The meaning of a read's answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Shown {
    /// Nothing: the read failed, or nobody waits for its answer any more.
    Nothing,
    /// One of our own writes that had no positive answer.
    OwnWrite,
    /// Our own record, its version unchanged.
    OwnRecord,
    /// Our own record, into which somebody has since written a transfer request.
    OwnRecordNamed,
    /// No change: the version that was known before, or still no object.
    Same,
    /// No object, in the first read.
    Absent,
    /// No object, where one was seen before.
    Vanished,
    /// The record that was known before, into which somebody has since written a transfer request.
    Named,
    /// A write that was not known before.
    Written,
    /// An object that is not a record.
    Unreadable,
}

/// The place of a candidate in the diagram above.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Stage {
    /// Holds nothing, and nothing of a term is left.
    Candidate,
    /// The lease is ours. If its window is open, `Leading` follows at once. Otherwise, the lease must be renewed before
    /// the term starts. This stage has no deadline.
    Won,
    /// The term has started.
    Leading,
    /// Leadership is over, and the work has to stop.
    Stopping {
        /// The moment at which the work is dropped.
        drop_by: LocalInstant,
        /// The time that dropped work has until it is abandoned.
        margin: Duration,
    },
    /// The work was dropped.
    Dropped {
        /// The moment at which the work is abandoned.
        abandon_at: LocalInstant,
    },
    /// The work was abandoned, and may still run.
    Abandoned,
    /// The term and its work are over. The lease may be released, if the record is still ours.
    Over,
}

impl Stage {
    /// Returns `true` if the term is over and its work may still run.
    #[must_use]
    pub fn awaits_work(self) -> bool {
        matches!(self, Self::Stopping { .. } | Self::Dropped { .. } | Self::Abandoned)
    }
}

/// An effect for the driver, which carries out all effects in order. `Acquired`, `Released` and `Finished` report what has happened; the
/// others are orders.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Effect {
    /// A write has acquired the lease. The term begins with [`Start`](Self::Start).
    Acquired {
        /// The token of the term.
        token: u64,
    },
    /// Opens the window and begins the work.
    Start(Term),
    /// Moves the end of the window. If the driver finds that the old window is over, it ends the term instead, because
    /// the work may have seen the window closed: see [`Lease::end_term`].
    Extend(Term),
    /// Closes the window and tells the work to stop, before anything else is sent or announced (rule 8).
    Stop {
        /// The token of the term.
        token: u64,
        /// The reason.
        why: Why,
        /// The moment by which the work must have stopped.
        drop_by: LocalInstant,
    },
    /// Drops the work, which has not stopped in time.
    DropWork,
    /// Stops waiting for work that cannot be dropped. The lease is not released, and expires. This candidate begins no other term until
    /// the work ends; other candidates may.
    Abandon,
    /// The lease was released.
    Released,
    /// The candidacy has ended. The driver drops the request in flight, if there is one.
    Finished,
}

/// The reason for the end of a term.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Why {
    /// The policy has ended the term, or its driver found the window closed.
    Command,
    /// No renewal was committed in time.
    RenewDeadline,
    /// The object shows somebody else's record, no record, or something unreadable.
    Lost,
}

/// What one candidate knows of one lease. Decides whether a request may be sent, and whether a term is valid.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Lease<R: Record> {
    me: R::Identity,
    /// `true` if we may take a record with our identity at once, because no other process has this identity (rule 2).
    reclaims: bool,
    limits: Limits,
    stage: Stage,
    /// Our own lease; `None` if the record is not known to be ours. Always present in the stages `Won` and `Leading`.
    held: Option<Held<R>>,
    /// The object as last observed while this candidate did not hold it.
    watch: Watch<R>,
    /// The token of the next term: above every token seen, even if the object is deleted.
    next_token: u64,
    /// At most one request. If there were two, the older answer could come last and be taken for the newer one.
    in_flight: Option<InFlight<R>>,
    /// Our own writes without a positive answer. All replace the same version, so at most one of them is committed (rule 6).
    unanswered: Vec<Sent<R>>,
    work_runs: bool,
    /// `None` unless the lease is a session. Boxed, like the next field, because most candidacies have neither.
    session: Option<Box<Session<R>>>,
    job: Option<Box<Job<R>>>,
    effects: VecDeque<Effect>,
    /// `true` if an [`Effect::Extend`] is due. This is the most common effect, so it takes no room in the queue.
    is_renewed: bool,
}

/// Our own lease: the last write of the term that is known to be committed.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Held<R: Record> {
    found: Versioned<R>,
    window: Window,
    /// The candidate that should lead next. Boxed, because there is rarely one.
    successor: Option<Box<R::Identity>>,
}

/// One of our own writes that was sent.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Sent<R: Record> {
    kind: Kind,
    record: Arc<R>,
    window: Window,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum InFlight<R: Record> {
    Read,
    Write(Sent<R>),
}

/// The additional state of a lease that is a session.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Session<R: Record> {
    id: R::SessionId,
    /// `true` once a write to create the object was made, whatever its outcome.
    has_tried_to_create: bool,
}

/// The job of this candidacy, which has to succeed only once (rule 18).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Job<R: Record> {
    id: R::Job,
    succeeded: bool,
    /// `true` if a record with the mark was read, or this candidate's mark was committed.
    done: bool,
}

impl<R: Record> Lease<R> {
    /// Creates a candidate that has observed nothing.
    pub fn new(me: R::Identity, limits: Limits, reclaims: bool) -> Self {
        Self {
            me,
            reclaims,
            limits,
            stage: Stage::Candidate,
            held: None,
            watch: Watch::default(),
            next_token: FIRST_TOKEN,
            in_flight: None,
            unanswered: Vec::new(),
            work_runs: false,
            session: None,
            job: None,
            effects: VecDeque::new(),
            is_renewed: false,
        }
    }

    /// Rule S1: creates a session, which is a lease for one term on its own object. `id` must be new.
    pub fn of_session(id: R::SessionId, me: R::Identity, limits: Limits) -> Self {
        // The object of a session is not a lock, so it has token 0, which no term of a lock has.
        let session = Some(Box::new(Session { id, has_tried_to_create: false }));
        Self { session, next_token: 0, ..Self::new(me, limits, false) }
    }

    // ---- What a policy reads ----

    /// The term that is valid now. Every call compares the deadline with the clock; there is no flag (rule 4).
    pub fn term(&self, now: LocalInstant) -> Option<Term> {
        self.own_term().filter(|term| self.stage == Stage::Leading && now < term.valid_until())
    }

    /// The ID of the session; `None` if this lease is not a session.
    pub fn session(&self) -> Option<&R::SessionId> {
        self.session.as_ref().map(|session| &session.id)
    }

    /// Returns `true` for a session that has tried to create its object, whatever the outcome.
    pub fn has_tried_to_create(&self) -> bool {
        self.session.as_ref().is_some_and(|session| session.has_tried_to_create)
    }

    /// The lease duration L.
    pub(crate) fn lease_duration(&self) -> Duration {
        self.limits.lease_duration
    }

    /// The object as last observed while this candidate did not hold it, and the moment from which it may be acquired. A policy may wait
    /// longer, but not less.
    pub fn watch(&self) -> &Watch<R> {
        &self.watch
    }

    /// Our own record; `None` if the record is not known to be ours.
    pub fn own(&self) -> Option<&Versioned<R>> {
        self.held.as_ref().map(|held| &held.found)
    }

    /// The candidate's place in the diagram above.
    pub fn stage(&self) -> Stage {
        self.stage
    }

    /// The term of our own record, which may be over; `None` if the record is not known to be ours.
    pub fn own_term(&self) -> Option<Term> {
        self.held.as_ref().map(Held::term)
    }

    /// The moment until which this candidate may block others: the end of the lease of its last committed write, or
    /// else the latest end of acquisitions that may be committed. Renewals of unknown outcome are ignored.
    pub fn may_hold_until(&self) -> Option<LocalInstant> {
        let sent = || self.in_flight.iter().filter_map(InFlight::write).chain(&self.unanswered);
        // The newest acquisition need not have the latest end: an earlier one may have had a longer lease.
        let acquired = || sent().filter(|sent| sent.kind == Kind::Acquire).map(|sent| sent.window.lease_until).max();
        self.held.as_ref().map(|held| held.window.lease_until).or_else(acquired)
    }

    /// The purpose of the write in flight, if there is one.
    pub fn writes(&self) -> Option<Kind> {
        self.in_flight.as_ref().and_then(InFlight::write).map(|sent| sent.kind)
    }

    /// Returns `true` if a request is in flight.
    pub fn is_busy(&self) -> bool {
        self.in_flight.is_some()
    }

    /// Our own writes without a positive answer that may have been committed or may still be committed.
    pub fn unanswered(&self) -> impl Iterator<Item = &R> {
        self.unanswered.iter().map(|sent| &*sent.record)
    }

    /// Returns `true` if an unanswered write is older than its lease: the next answered read resolves or forgets it.
    pub fn has_old_write(&self, now: LocalInstant) -> bool {
        self.unanswered.iter().any(|sent| now >= sent.window.lease_until)
    }

    /// The candidate that should lead next: this process's own choice, or else the name in a request. The policy
    /// decides whether to hand over; a release carries the name in any case.
    pub fn successor(&self) -> Option<&R::Identity> {
        self.held.as_ref()?.successor.as_deref()
    }

    /// Returns `true` if this candidacy is for a job that has to succeed only once.
    pub fn has_job(&self) -> bool {
        self.job.is_some()
    }

    /// Returns `true` if the job of this candidacy is done (rule 18).
    pub fn is_job_done(&self) -> bool {
        self.job.as_ref().is_some_and(|job| job.done)
    }

    /// Returns `true` if the work of this term has succeeded at the job. If so, a release carries the mark.
    pub fn work_succeeded(&self) -> bool {
        self.job.as_ref().is_some_and(|job| job.succeeded)
    }

    /// The moment at which [`tick`](Self::tick) next changes something.
    pub fn deadline(&self) -> Option<LocalInstant> {
        match self.stage {
            Stage::Leading => self.own_term().map(Term::valid_until),
            Stage::Stopping { drop_by: at, .. } | Stage::Dropped { abandon_at: at } => Some(at),
            Stage::Candidate | Stage::Won | Stage::Abandoned | Stage::Over => None,
        }
    }

    /// Returns the next effect, oldest first.
    pub fn next_effect(&mut self) -> Option<Effect> {
        let effect = self.effects.pop_front();
        if effect.is_none() {
            self.effects.shrink_to_fit();
        }
        // `Extend` comes last, and once for several renewals, because only the newest end of the window counts.
        let renewed = self.own_term().filter(|_| effect.is_none() && std::mem::take(&mut self.is_renewed));
        effect.or(renewed.map(Effect::Extend))
    }

    // ---- Permits ----

    /// Begins a read, which the driver has to send afterwards. A read is allowed whenever no other request is in flight; the policy decides
    /// how often.
    pub fn begin_read(&mut self) -> Result<(), NoPermit> {
        self.ensure_idle()?;
        self.in_flight = Some(InFlight::Read);
        Ok(())
    }

    /// Rule 3, acquire: the write creates a missing object, or replaces a free or expired record. It replaces exactly the version observed,
    /// and its token is the highest ever seen plus one. The store commits only one of the writes that replace one version. So the token of
    /// each acquisition is larger than all before, whatever the clocks do.
    pub fn may_acquire(&mut self, now: LocalInstant) -> Result<Permit<'_, R>, NoPermit> {
        self.tick(now);
        self.ensure_idle()?;
        if self.stage != Stage::Candidate {
            // No term begins while the work of an ended one still runs, however late that work is (rule 8).
            return Err(if self.stage.awaits_work() { NoPermit::WorkRuns } else { NoPermit::Nothing });
        }
        // Checked before the wait: a job that is done stays done when the lease expires.
        if self.is_job_done() {
            return Err(NoPermit::JobDone);
        }
        // Rule S1: only the first write on a missing object may create a session. A later one could be committed after
        // others have ended the session and taken its locks.
        if self.has_tried_to_create() || self.session.is_some() && self.watch.found().is_some() {
            return Err(NoPermit::Spent);
        }
        let expires_at = self.watch.expires_at().ok_or(NoPermit::Unread)?;
        if now < expires_at {
            return Err(NoPermit::Before(expires_at));
        }
        if self.watch.found().is_some_and(|found| found.record.token() >= MAX_TOKEN) {
            // While the record shows the largest token, nobody can acquire. That token is not remembered, so that an operator can correct
            // the record.
            return Err(NoPermit::Unread);
        }
        Ok(Permit { lease: self, now, kind: Kind::Acquire })
    }

    /// Rule 5, renew: one conditional write on the known version of our own record, without a read. The policy decides how often. A term
    /// whose window has closed has ended, and is not renewed. A lease that was won too late is renewed before its term begins.
    pub fn may_renew(&mut self, now: LocalInstant) -> Result<Permit<'_, R>, NoPermit> {
        self.tick(now);
        self.ensure_idle()?;
        match self.stage {
            // Rule S1: others may have ended the session and deleted its object. If the network then delivers the creation a second time, a
            // renewal would open a session that others know to be over.
            Stage::Won if self.session.is_some() => Err(NoPermit::Spent),
            // Rule 18: some of several parts may be acquired before another one shows the mark. Then no term begins.
            Stage::Won if self.is_job_done() => Err(NoPermit::JobDone),
            Stage::Won | Stage::Leading => Ok(Permit { lease: self, now, kind: Kind::Renew }),
            _ => Err(NoPermit::Nothing),
        }
    }

    /// Rules 8 and 9, release: only after leadership and then the work have ended, and only over our own record. An unanswered renewal
    /// replaces the same version, so it cannot be committed after the release. The token stays in the record, so that the next one is
    /// larger.
    pub fn may_release(&mut self, now: LocalInstant) -> Result<Permit<'_, R>, NoPermit> {
        self.tick(now);
        self.ensure_idle()?;
        match self.stage {
            // The candidate has withdrawn although one of its writes may have been committed. A read has to find the version to replace.
            Stage::Over if self.held.is_none() => Err(NoPermit::Unread),
            Stage::Over => Ok(Permit { lease: self, now, kind: Kind::Release }),
            stage if stage.awaits_work() => Err(NoPermit::WorkRuns),
            _ => Err(NoPermit::Nothing),
        }
    }

    /// Rules 14 and 24: asks the observed holder to hand over. A record without a write id is not changed: others would mistake the request
    /// for a renewal, and wait for another lease.
    pub fn may_request(&mut self, now: LocalInstant) -> Result<Permit<'_, R>, NoPermit> {
        self.tick(now);
        self.ensure_idle()?;
        let found = self.watch.found().ok_or(NoPermit::Unread)?;
        let is_others = found.record.holder().is_some_and(|holder| *holder != self.me);
        if self.stage != Stage::Candidate || !is_others || found.record.write_id().is_none() {
            return Err(NoPermit::Nothing);
        }
        Ok(Permit { lease: self, now, kind: Kind::Request })
    }

    fn ensure_idle(&self) -> Result<(), NoPermit> {
        if self.in_flight.is_some() { Err(NoPermit::Busy) } else { Ok(()) }
    }

    // ---- Time ----

    /// Rules 4, 8 and 12: ends what is over at `now`, before anything else is done. A term that is over stays over: no late answer may
    /// extend it, because the work may have seen its window closed.
    pub fn tick(&mut self, now: LocalInstant) {
        if self.deadline().is_none_or(|at| now < at) {
            return;
        }
        match self.stage {
            // The term ends at the deadline itself, as in `term`, so that no moment is in both an old window and a new one.
            Stage::Leading => {
                self.stop(Why::RenewDeadline);
                // After a suspend, the time of the work may be over as well.
                self.tick(now);
            }
            Stage::Stopping { margin, .. } => {
                // Counted from now: after a suspend, `drop_by` may be long past, but dropping work still takes time.
                self.stage = Stage::Dropped { abandon_at: now + margin };
                self.effects.push_back(Effect::DropWork);
            }
            Stage::Dropped { .. } => {
                self.stage = Stage::Abandoned;
                self.effects.push_back(Effect::Abandon);
            }
            Stage::Candidate | Stage::Won | Stage::Abandoned | Stage::Over => {}
        }
    }

    // ---- Answers ----

    /// Takes the answer to the read, and returns its meaning. `known_for` is how long the version has certainly
    /// existed: zero, unless the store's clock is trusted (rule 19).
    pub fn read_answered(
        &mut self,
        now: LocalInstant,
        answer: Result<Option<Versioned<R>>, ReadError>,
        known_for: Duration,
    ) -> Shown {
        // This comes first: the answer may come after the end of the term.
        self.tick(now);
        if self.in_flight.take_if(|sent| *sent == InFlight::Read).is_none() {
            return Shown::Nothing;
        }
        let found = match answer {
            Ok(found) => found,
            Err(ReadError::Failed) => return Shown::Nothing,
            Err(ReadError::Unreadable) => {
                self.lose(now);
                return Shown::Unreadable;
            }
        };
        if let Some(found) = &found {
            let own = self.unanswered.iter().find(|sent| is_same_write(&*found.record, &*sent.record));
            if let Some(sent) = own.cloned() {
                // Rule 6. This comes first: otherwise, a write of ours that was committed late would look like somebody else's.
                self.committed(now, sent, found.clone());
                return Shown::OwnWrite;
            }
            // Our own writes, handled above, need no check: only a release adds our mark, and `committed` notes that.
            if let Some(job) = &mut self.job {
                job.done |= found.record.is_done(&job.id);
            }
        }
        match (&mut self.held, &found) {
            (Some(held), Some(found)) if held.found.version == found.version => {
                // The version is the same, so unanswered writes may still be committed. Only old ones are forgotten.
                self.forget_old(now);
                return Shown::OwnRecord;
            }
            (Some(held), Some(found)) if is_same_write(&*found.record, &*held.found.record) => {
                // Rule 14: a request leaves the record ours. The first name stays: it may be this process's own choice.
                held.successor = held.successor.take().or_else(|| asked_for(&*found.record));
                held.found = found.clone();
                // The unanswered writes replace the previous version, so they can no longer be committed.
                self.unanswered.clear();
                return Shown::OwnRecordNamed;
            }
            _ => {}
        }
        if self.held.is_some() {
            // This comes first: it puts our own lease into the watch. If the object has vanished, that lease has to expire.
            self.lose(now);
        }
        self.observe(now, found, known_for)
    }

    /// Takes the answer to the write: its version if it was committed, or `None` after any error. All errors mean the
    /// same here (rule 6), because even a rejected write may be committed: a proxy may report a false rejection, and an
    /// SDK's second attempt may conflict with its first. So each write is remembered.
    pub fn write_answered(&mut self, now: LocalInstant, committed: Option<R::Version>) {
        self.tick(now);
        let Some(InFlight::Write(sent)) = self.in_flight.take_if(|sent| *sent != InFlight::Read) else { return };
        match (committed, sent.kind) {
            (Some(version), Kind::Request) => {
                self.observe(now, Some(Versioned { record: sent.record, version }), Duration::ZERO);
            }
            (Some(version), _) => {
                let found = Versioned { record: Arc::clone(&sent.record), version };
                self.committed(now, sent, found);
            }
            // A request leaves the record with its holder, so a late commit changes nothing here.
            (None, Kind::Request) => {}
            (None, _) => self.unanswered.push(sent),
        }
    }

    /// Rule 15: takes a peer's message that the write with this id is committed. See [`Watch::hint`].
    pub fn hint(&mut self, now: LocalInstant, id: R::WriteId) {
        self.watch.hint(now, id);
    }

    /// Takes one of our own writes that is known to be committed, because its answer says so or a read shows its id.
    /// Our other unanswered writes replace a version that is gone, so they are forgotten.
    fn committed(&mut self, now: LocalInstant, sent: Sent<R>, found: Versioned<R>) {
        self.unanswered.clear();
        self.saw_token(found.record.token());
        if sent.kind == Kind::Release {
            if let Some(job) = &mut self.job {
                job.done |= job.succeeded;
            }
            self.effects.push_back(Effect::Released);
            // This comes first: otherwise `reset` would put the replaced record into the watch.
            (self.held, self.watch) = (None, Watch::own(found, now));
            return self.reset(now);
        }
        // Rule 14: the first name stays, as in `read_answered`.
        let named = self.held.take().and_then(|before| before.successor);
        let successor = named.or_else(|| asked_for(&*found.record));
        // Rule 4: the window counts from before the send. Rule 22: it is capped by the present limits.
        let held = Held { found, window: sent.window.capped(self.limits), successor };
        match self.stage {
            Stage::Candidate => {
                self.effects.push_back(Effect::Acquired { token: held.token() });
                // The previous holder's record is no longer needed.
                self.watch = Watch::default();
                self.stage = Stage::Won;
            }
            Stage::Leading => self.is_renewed = true,
            _ => {}
        }
        // Rule 4: an answer after the window begins no term. The lease is renewed first.
        if self.stage == Stage::Won && now < held.window.valid_until {
            self.effects.push_back(Effect::Start(held.term()));
            self.stage = Stage::Leading;
            self.work_runs = true;
            // The success of an earlier term does not count for this one.
            if let Some(job) = &mut self.job {
                job.succeeded = false;
            }
        }
        self.held = Some(held);
    }

    fn observe(&mut self, now: LocalInstant, found: Option<Versioned<R>>, known_for: Duration) -> Shown {
        let holder = found.as_ref().and_then(|found| found.record.holder());
        // Rule 2: a holder with our identity is another process, unless the configuration rules out that there is one.
        let is_free = holder.is_none_or(|holder| self.reclaims && *holder == self.me);
        if let Some(found) = &found {
            self.saw_token(found.record.token());
        }
        let shown = self.watch.observe(now, found, known_for, is_free);
        if shown == Shown::Same {
            self.forget_old(now);
        } else {
            // The previous version is gone, so none of our writes on it can be committed any more. (If the read was
            // stale, one may be committed already. That write counts as another's, and this candidate waits for it.)
            self.unanswered.clear();
        }
        shown
    }

    // ---- The end of a term ----

    /// Begins a candidacy. If a restart of the driver has cut off an earlier one, the earlier work must not run any more, and the earlier
    /// request in flight must have been dropped. A term that was left open is over.
    pub fn begin(&mut self, now: LocalInstant, job: Option<R::Job>) {
        // This comes first: it moves the record of an open term into the watch, which `is_done` reads.
        self.reset(now);
        // The effects of an earlier candidacy, and the `Finished` of `reset`, are not for this one.
        (self.effects, self.is_renewed) = (VecDeque::new(), false);
        self.work_runs = false;
        let is_done = |job: &R::Job| self.watch.found().is_some_and(|found| found.record.is_done(job));
        self.job = job.map(|id| Box::new(Job { done: is_done(&id), id, succeeded: false }));
    }

    /// Ends the term for a step-down, a cancellation or a transfer to another candidate, or because the driver found the window closed.
    pub fn end_term(&mut self, now: LocalInstant, transfer_to: Option<R::Identity>) {
        self.tick(now);
        if self.stage != Stage::Leading {
            return;
        }
        // The release that follows the stop carries the name.
        if let (Some(held), Some(to)) = (&mut self.held, transfer_to) {
            held.successor = Some(Box::new(to));
        }
        self.stop(Why::Command);
    }

    /// Stops competing for a lease that this candidate has won or may have won. Otherwise, a late answer would begin a term that nobody
    /// wants. The policy then has to release the lease.
    pub fn withdraw(&mut self, now: LocalInstant) {
        self.tick(now);
        let is_acquire = |sent: &Sent<R>| sent.kind == Kind::Acquire;
        let may_hold = self.unanswered.iter().any(is_acquire)
            || matches!(&self.in_flight, Some(InFlight::Write(sent)) if is_acquire(sent));
        if self.stage == Stage::Won || self.stage == Stage::Candidate && may_hold {
            self.stage = Stage::Over;
        }
    }

    /// Ends the candidacy, and lets the lease expire. Does nothing while the term or its work may still run.
    pub fn give_up(&mut self, now: LocalInstant) {
        if self.stage != Stage::Leading && !self.stage.awaits_work() {
            self.reset(now);
        }
    }

    /// Records that the term's work has ended. `succeeded` counts only for a job.
    pub fn work_ended(&mut self, now: LocalInstant, succeeded: bool) {
        // In every stage: if work ends before its term, `stop` need not wait for it.
        self.work_runs = false;
        if let Some(job) = &mut self.job {
            job.succeeded |= succeeded;
        }
        if !self.stage.awaits_work() {
            return;
        }
        if std::mem::replace(&mut self.stage, Stage::Over) == Stage::Abandoned {
            // The work may have run into the term of another candidate, so the lease is not released.
            self.give_up(now);
        }
    }

    /// Rule 22: changes L and D. Shorter ones shorten the present window at once. A later increase does not lengthen it again: a renewal
    /// with the short L may have been committed without an answer, and others then wait only for that L. Longer ones apply once a write
    /// that carries them is committed.
    pub fn set_limits(&mut self, now: LocalInstant, limits: Limits) {
        self.limits = limits;
        // Later stages keep their deadlines: no renewal with the new limits follows.
        if let (Stage::Won | Stage::Leading, Some(held)) = (self.stage, &mut self.held) {
            held.window = held.window.capped(limits);
        }
        // This comes after the change, which may have closed the window.
        self.tick(now);
        self.is_renewed |= self.stage == Stage::Leading;
    }

    /// Rule 8: leadership ends first, then the work, then the lease.
    fn stop(&mut self, why: Why) {
        let Some(Term { token, window }) = self.own_term() else { return };
        let margin = window.stop_margin();
        let drop_by = window.lease_until - margin;
        // If a renewal were reported after the stop, it would reopen the window.
        self.is_renewed = false;
        self.effects.push_back(Effect::Stop { token, why, drop_by });
        self.stage = if self.work_runs { Stage::Stopping { drop_by, margin } } else { Stage::Over };
    }

    /// Takes the loss of our own record, if we had one. If that record comes back, or if the object vanished, this
    /// candidate waits like any other until the record's lease expires (rule 3).
    fn lose(&mut self, now: LocalInstant) {
        self.unanswered.clear();
        // This comes before `held` is taken: the deadlines of the work count from its window.
        match self.stage {
            Stage::Won => self.stage = Stage::Candidate,
            Stage::Leading => self.stop(Why::Lost),
            _ => {}
        }
        if let Some(Held { found, window, .. }) = self.held.take() {
            // Others wait for the duration in the record, and so does this candidate, even if its own window was shortened.
            let expires_at = (window.sent_at + found.record.lease_duration()).max(now);
            self.watch = Watch::own(found, expires_at);
        }
    }

    /// Ends the candidacy. Its unanswered writes are forgotten: one that is committed later is treated as another's, so no late answer
    /// revives a term. If the store still has our record, nobody leads with it, so this process may replace it at once.
    fn reset(&mut self, now: LocalInstant) {
        self.stage = Stage::Candidate;
        self.unanswered.clear();
        self.in_flight = None;
        if let Some(Held { found, .. }) = self.held.take() {
            self.watch = Watch::own(found, now);
        }
        self.effects.push_back(Effect::Finished);
    }

    // ---- Helpers ----

    /// Remembers a token, so that the next term's is above every token seen, even if the object is deleted.
    fn saw_token(&mut self, token: u64) {
        // The largest token is ignored: no token could follow it, and an operator may correct the record.
        if token < MAX_TOKEN {
            self.next_token = self.next_token.max(token + 1);
        }
    }

    /// Forgets the unanswered writes that are older than their leases, after a read has shown that none is committed. If one
    /// is committed after all, its window is over, and it is treated as another's.
    fn forget_old(&mut self, now: LocalInstant) {
        self.unanswered.retain(|sent| now < sent.window.lease_until);
    }
}

impl<R: Record> InFlight<R> {
    fn write(&self) -> Option<&Sent<R>> {
        match self {
            Self::Read => None,
            Self::Write(sent) => Some(sent),
        }
    }
}

impl<R: Record> Held<R> {
    fn token(&self) -> u64 {
        self.found.record.token()
    }

    fn term(&self) -> Term {
        Term { token: self.token(), window: self.window }
    }
}

/// The candidate that a request in the record names. A request that names the holder has no effect, and must not block a later one.
fn asked_for<R: Record>(record: &R) -> Option<Box<R::Identity>> {
    record.preferred().filter(|preferred| record.holder() != Some(preferred)).cloned().map(Box::new)
}

/// What was observed of an object that somebody else may hold, and when its lease expires.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Watch<R: Record> {
    /// `None` before the first read.
    observed: Option<Observed<R>>,
    /// The last write that a peer has named, and the moment of its message. Boxed, because most candidates have no peers.
    hint: Option<Box<(R::WriteId, LocalInstant)>>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Observed<R: Record> {
    found: Option<Versioned<R>>,
    expires_at: LocalInstant,
}

impl<R: Record> Default for Watch<R> {
    fn default() -> Self {
        Self { observed: None, hint: None }
    }
}

impl<R: Record> Watch<R> {
    /// The object; `None` if there is none, or before the first read.
    pub fn found(&self) -> Option<&Versioned<R>> {
        self.observed.as_ref()?.found.as_ref()
    }

    /// The moment from which the lease has expired if the object does not change; `None` before the first read.
    pub fn expires_at(&self) -> Option<LocalInstant> {
        self.observed.as_ref().map(|observed| observed.expires_at)
    }

    /// Rule 15: takes a message that a write is committed. If a later read shows the id of this write, the lease counts
    /// from this message. The writer had read its clock for the send before it drew the id. So no message can name the
    /// id earlier, not even a false or replayed one. A hint has no other effect.
    pub fn hint(&mut self, now: LocalInstant, id: R::WriteId) {
        if self.hint.as_ref().is_none_or(|hint| hint.0 != id) {
            self.hint = Some(Box::new((id, now)));
        }
    }

    /// Rules 1 to 3, 13 to 15 and 19: remembers the object and when it may be acquired. Returns what has changed. `is_free` is `true` if
    /// the object has no holder, or this candidate may reclaim it.
    pub(crate) fn observe(
        &mut self,
        now: LocalInstant,
        found: Option<Versioned<R>>,
        known_for: Duration,
        is_free: bool,
    ) -> Shown {
        let before = self.observed.take();
        let is_same = |before: &Observed<R>| match (&before.found, &found) {
            (Some(before), Some(found)) => before.version == found.version,
            (before, found) => before.is_none() && found.is_none(),
        };
        if before.as_ref().is_some_and(is_same) {
            // The lease continues.
            self.observed = before;
            return Shown::Same;
        }
        // The first case that fits applies. A vanished object has no holder either, but its lease has to expire. A
        // request must not move the end of the wait, whoever holds the lease. Nobody waits for a free record.
        let (shown, expires_at) = match (&found, before) {
            // Rules 3 and 13: the object vanished; no candidate deletes it. A candidate that saw the lease waits until it expires.
            (None, None) => (Shown::Absent, now),
            (None, Some(before)) => (Shown::Vanished, before.expires_at),
            // Rule 14: a request is not a renewal, so the lease continues.
            (Some(found), Some(Observed { found: Some(old), expires_at }))
                if is_same_write(&*found.record, &*old.record) =>
            {
                (Shown::Named, expires_at)
            }
            _ if is_free => (Shown::Written, now),
            // Rules 1 and 2: the lease counts from the return of the read. The send of the read would be too early: the
            // write may have been sent in between. A hint or an age proves that it was sent earlier.
            (Some(found), _) => {
                let lease = found.record.lease_duration();
                let hinted = self.hint.as_deref().filter(|(id, _)| found.record.write_id() == Some(id));
                let since_hint = hinted.map_or(now, |(_, at)| *at) + lease;
                (Shown::Written, since_hint.min(now + lease.saturating_sub(known_for)))
            }
        };
        self.observed = Some(Observed { found, expires_at });
        shown
    }

    /// Creates the watch of our own record, which may be replaced from `expires_at` on. Hints are dropped, because they are about others'
    /// writes.
    fn own(found: Versioned<R>, expires_at: LocalInstant) -> Self {
        Self { observed: Some(Observed { found: Some(found), expires_at }), hint: None }
    }
}
