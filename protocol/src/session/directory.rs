//! The other sessions: which of them are over (rules S3, S4 and S7).

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use super::Write;
use crate::LocalInstant;
use crate::lease::{Lease, NoPermit, ReadError, Visitor, Watch};
use crate::record::{Content, RELEASED_LEASE, Record, Versioned};

/// The failure detector for sessions: knows all other sessions, which of them are over, and which may be ended.
///
/// A session that is over stays over: no process uses an ID twice, and no session opens twice. A policy also keeps its notes about each
/// session here, as `N`; no rule reads them.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Directory<R: Record, N = ()> {
    own_lease: Duration,
    sessions: BTreeMap<R::SessionId, (OtherSession<R>, N)>,
}

/// One other session.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct OtherSession<R: Record> {
    /// The record that reads have shown.
    watch: Watch<R>,
    /// The session's lease: as its record states it, or else as its locks do, or else the longest known (S4).
    lease: Duration,
    /// `true` if its record or a lock states that lease. Otherwise, the real lease may be longer than all known ones.
    /// For a lock that states no lease, the lock table states the longest known one.
    is_stated: bool,
    /// The version in the last listing, and the moment at which a listing first showed it.
    listed: Option<(R::Version, LocalInstant)>,
    /// Why the last reads found no record, and when the first of them was answered; `None` after a read of a record.
    no_record: Option<(NoRecord, LocalInstant)>,
    over: Option<Over<R>>,
    /// At most one request. If there were two, the older answer could come last and be taken for the newer one.
    in_flight: Option<Request>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum NoRecord {
    /// There is no object.
    Missing,
    /// There is an object, but it is not a record.
    Unreadable,
}

/// Marks a session as over, with the version of its object if that is known.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Over<R: Record>(Option<R::Version>);

/// A request about a session's object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Request {
    Read {
        /// `true` if the read was sent after the object had been unreadable for one lease duration.
        is_late: bool,
    },
    End,
}

/// The right to end another session now.
#[derive(Debug)]
pub struct EndPermit<'a, R: Record> {
    other: &'a mut OtherSession<R>,
}

impl<R: Record> EndPermit<'_, R> {
    /// The record that the write replaces; `None` if it creates the object.
    #[must_use]
    pub fn replaces(&self) -> Option<&R> {
        self.other.found().map(|found| &*found.record)
    }

    /// Makes the write: a record without a holder, on the version observed. If the object is missing, this creates it as ended.
    /// `draw_id` draws an id that no writer has ever used.
    pub fn write(self, draw_id: impl FnOnce() -> R::WriteId, decoration: R::Decoration) -> Write<R> {
        let EndPermit { other } = self;
        let found = other.found();
        let before = found.map(|found| &*found.record);
        let content = Content {
            holder: None,
            lease_duration: RELEASED_LEASE,
            token: before.map_or(0, R::token),
            write_id: Some(draw_id()),
            preferred: None,
            mark: None,
        };
        let record = Arc::new(R::replacing(before, content, decoration));
        let expected = found.map(|found| found.version.clone());
        // No read may be in flight at the same time: its answer could come last, and show the record from before this write.
        other.in_flight = Some(Request::End);
        Write { record, expected }
    }
}

impl<R: Record, N> Directory<R, N> {
    /// Creates a directory without sessions. `own_lease` is the lease duration of this process.
    pub fn new(own_lease: Duration) -> Self {
        Self { own_lease, sessions: BTreeMap::new() }
    }

    // ---- What a policy and the locks see ----

    /// A session, and the notes about it.
    pub fn get(&self, session: &R::SessionId) -> Option<(&OtherSession<R>, &N)> {
        self.sessions.get(session).map(|(other, notes)| (other, notes))
    }

    /// A session, and the notes about it.
    pub fn get_mut(&mut self, session: &R::SessionId) -> Option<(&OtherSession<R>, &mut N)> {
        self.sessions.get_mut(session).map(|(other, notes)| (&*other, notes))
    }

    /// All sessions and notes, in the order of their IDs.
    pub fn iter(&self) -> impl Iterator<Item = (&R::SessionId, &OtherSession<R>, &N)> {
        self.sessions.iter().map(|(id, (other, notes))| (id, other, notes))
    }

    /// All sessions and notes, in the order of their IDs.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = (&R::SessionId, &OtherSession<R>, &mut N)> {
        self.sessions.iter_mut().map(|(id, (other, notes))| (id, &*other, notes))
    }

    /// Rules S4 and S5: returns `true` if a session is known to be over: see [`OtherSession::is_over`].
    pub fn is_over(&self, session: &R::SessionId) -> bool {
        self.get(session).is_some_and(|(other, _)| other.is_over())
    }

    /// The longest known lease. It is used for a session whose lease nobody states (S4).
    pub fn longest_lease(&self) -> Duration {
        self.sessions.values().map(|(other, _)| other.lease).fold(self.own_lease, Duration::max)
    }

    // ---- Hints: they end no session by themselves ----

    /// Adds a session that a lock or a listing names. `stated` is the lease that a lock states for it. This lease counts until a read shows
    /// the session's record (S4).
    pub fn discover(&mut self, session: &R::SessionId, stated: Option<Duration>)
    where
        N: Default,
    {
        if !self.sessions.contains_key(session) {
            // A wait that is too long costs only time, but one that is too short costs safety.
            let new = (OtherSession::new(self.longest_lease()), N::default());
            self.sessions.insert(session.clone(), new);
        }
        let other = self.sessions.get_mut(session).map(|(other, _)| other);
        if let Some(other) = other.filter(|other| other.watch.found().is_none()) {
            other.lease = stated.unwrap_or(other.lease);
            other.is_stated |= stated.is_some();
        }
    }

    /// Rule S3: takes the version of a session's object from a listing. If a later read shows exactly this version, the version's age
    /// counts from now. Some stores return versions in another form in listings, so a version that differs from the one in a read is no
    /// sign of a change.
    pub fn listed(&mut self, now: LocalInstant, session: &R::SessionId, version: R::Version) {
        let other = self.sessions.get_mut(session).map(|(other, _)| other);
        if let Some(other) = other.filter(|other| other.listed().is_none_or(|known| *known != version)) {
            other.listed = Some((version, now));
        }
    }

    /// Rule S10: takes a message that a write of the session is committed. See [`Watch::hint`].
    pub fn hint(&mut self, now: LocalInstant, session: &R::SessionId, id: R::WriteId) {
        if let Some((other, _)) = self.sessions.get_mut(session) {
            other.watch.hint(now, id);
        }
    }

    // ---- Permits ----

    /// Begins a read of a session's object. The driver has to send it afterwards.
    pub fn begin_read(&mut self, now: LocalInstant, session: &R::SessionId) -> Result<(), NoPermit> {
        let (other, _) = self.sessions.get_mut(session).ok_or(NoPermit::Nothing)?;
        other.ensure_idle()?;
        // Decided when the read is sent: even a late answer may show the object as it was at that moment.
        let is_late = other.is_stated && other.is_unreadable() && other.expires_at().is_some_and(|at| now >= at);
        other.in_flight = Some(Request::Read { is_late });
        Ok(())
    }

    /// Rule S4, end: permits a conditional write on the version that was seen unchanged for the session's lease. Once this write is
    /// committed, the owner's renewals fail. The record must have been read, because the write keeps the record's other fields. If the
    /// object stayed missing for that long, the write creates it as ended, and fails if the object exists after all.
    pub fn may_end(&mut self, now: LocalInstant, session: &R::SessionId) -> Result<EndPermit<'_, R>, NoPermit> {
        let (other, _) = self.sessions.get_mut(session).ok_or(NoPermit::Nothing)?;
        other.ensure_idle()?;
        if other.is_over() {
            // The first end is final. Another one would only change the version for `may_delete`.
            return Err(NoPermit::Nothing);
        }
        if other.is_missing() && !other.is_stated {
            // Nobody knows for how long the session's owner may lead. Nobody waits for the session's end either: a lock that names it would
            // state a lease.
            return Err(NoPermit::Nothing);
        }
        // No write can name the version of an unreadable object.
        let at = other.expires_at().filter(|_| !other.is_unreadable()).ok_or(NoPermit::Unread)?;
        if now < at { Err(NoPermit::Before(at)) } else { Ok(EndPermit { other }) }
    }

    /// Rule S7, delete: the only version on which the object of an ended session may be deleted. A deletion is safe
    /// even if the owner does not know that its session has ended: the owner cannot open the session again, whatever
    /// its next read shows ([`Lease::may_renew`]).
    pub fn may_delete(&self, session: &R::SessionId) -> Result<&R::Version, NoPermit> {
        let over = self.sessions.get(session).and_then(|(other, _)| other.over.as_ref());
        over.and_then(|over| over.0.as_ref()).ok_or(NoPermit::Nothing)
    }

    // ---- Answers ----

    /// Takes the answer to a write that ends a session. `committed` is its version; `None` if no commit is known, so that nothing changes
    /// until the next read.
    pub fn end_answered(&mut self, session: &R::SessionId, committed: Option<R::Version>) {
        let Some((other, _)) = self.sessions.get_mut(session) else { return };
        let was_sent = other.in_flight.take_if(|sent| *sent == Request::End).is_some();
        if was_sent && committed.is_some() {
            other.ended(committed);
        }
    }

    /// Rules S3 and S4: takes the answer to the read of a session's object.
    pub fn read_answered(
        &mut self,
        now: LocalInstant,
        session: &R::SessionId,
        answer: Result<Option<Versioned<R>>, ReadError>,
    ) {
        let Some((other, _)) = self.sessions.get_mut(session) else { return };
        let Some(Request::Read { is_late }) = other.in_flight.take_if(|sent| *sent != Request::End) else { return };
        let no_record = match answer {
            // A failed read shows nothing, so all waits continue.
            Err(ReadError::Failed) => return,
            Ok(Some(found)) => return other.saw(now, found),
            Ok(None) => NoRecord::Missing,
            Err(ReadError::Unreadable) => NoRecord::Unreadable,
        };
        // A session ends differently if its object is missing than if it is unreadable, so each case has its own wait.
        if other.no_record.is_none_or(|(before, _)| before != no_record) {
            other.no_record = Some((no_record, now));
        } else if no_record == NoRecord::Unreadable && is_late {
            // This read was sent at least one lease after the first read that found the object unreadable. A read that
            // was sent earlier and answered late would say nothing about the time in between. If the session is over
            // already, the version for `may_delete` stays.
            if !other.is_over() {
                other.ended(None);
            }
        }
    }

    /// Adds the local session to the others after it was closed. This session, too, must be seen to have ended, unless
    /// its release is known to be committed.
    pub fn closed(&mut self, own: &Lease<R>)
    where
        N: Default,
    {
        let Some(session) = own.session() else { return };
        self.discover(session, Some(own.lease_duration()));
        // A closed window is not enough: a renewal may be in flight, and can be committed until a write ends the session.
        let released = own.watch().found().filter(|found| found.record.holder().is_none());
        if let (Some(found), Some((other, _))) = (released, self.sessions.get_mut(session)) {
            other.ended(Some(found.version.clone()));
        }
    }

    /// Rule S7: notes that the object of an ended session is gone, so there is nothing left to delete.
    pub fn deleted(&mut self, session: &R::SessionId) {
        if let Some((OtherSession { over: Some(over), .. }, _)) = self.sessions.get_mut(session) {
            *over = Over(None);
        }
    }

    /// Forgets a session, and returns the notes about it. If the session appears again, another wait begins.
    pub fn forget(&mut self, session: &R::SessionId) -> Option<N> {
        self.sessions.remove(session).map(|(_, notes)| notes)
    }

    /// For explorers, which are model checkers. For each session, calls `visit_notes` with the policy's notes, and then shows all stored
    /// moments to `visitor`.
    pub fn visit<V: Visitor<R>>(&mut self, visitor: &mut V, mut visit_notes: impl FnMut(&mut V, &mut N)) {
        for (other, notes) in self.sessions.values_mut() {
            visit_notes(visitor, notes);
            other.watch.visit(visitor);
            other.listed.iter_mut().for_each(|(_, at)| visitor.moment(at));
            other.no_record.iter_mut().for_each(|(_, at)| visitor.moment(at));
        }
    }
}

impl<R: Record> OtherSession<R> {
    fn new(lease: Duration) -> Self {
        Self {
            watch: Watch::default(),
            lease,
            is_stated: false,
            listed: None,
            no_record: None,
            over: None,
            in_flight: None,
        }
    }

    /// Rules S4 and S5: returns `true` if the session is over, which means that it holds nothing. It is over if a committed write has
    /// ended it, a read shows its released record, or its object stayed unreadable. An expired lease is not enough: a renewal may be in
    /// flight.
    pub fn is_over(&self) -> bool {
        self.over.is_some()
    }

    /// The session's lease, as far as it is known.
    pub fn lease_duration(&self) -> Duration {
        self.lease
    }

    /// The record that the last read has shown, if any.
    pub fn found(&self) -> Option<&Versioned<R>> {
        self.watch.found().filter(|_| self.no_record.is_none())
    }

    /// The moment at which the session expires, unless its object changes; `None` before the first read. A policy may wait longer, but not
    /// less.
    pub fn expires_at(&self) -> Option<LocalInstant> {
        // Reads that found no record are newer than anything in the watch.
        self.no_record.map(|(_, since)| since + self.lease).or(self.watch.expires_at())
    }

    /// Returns `true` if the last read found no object.
    pub fn is_missing(&self) -> bool {
        matches!(self.no_record, Some((NoRecord::Missing, _)))
    }

    /// Returns `true` if the last read found an object that is not a record.
    pub fn is_unreadable(&self) -> bool {
        matches!(self.no_record, Some((NoRecord::Unreadable, _)))
    }

    /// The version in the last listing, in the listing's form.
    pub fn listed(&self) -> Option<&R::Version> {
        self.listed.as_ref().map(|(version, _)| version)
    }

    fn ensure_idle(&self) -> Result<(), NoPermit> {
        if self.in_flight.is_some() { Err(NoPermit::Busy) } else { Ok(()) }
    }

    /// Notes that the session is over. `version` is the version of its object, if that is known. The record is no longer needed.
    fn ended(&mut self, version: Option<R::Version>) {
        (self.over, self.watch) = (Some(Over(version)), Watch::default());
    }

    fn saw(&mut self, now: LocalInstant, found: Versioned<R>) {
        if self.no_record.take().is_some() {
            // The wait starts anew even for a known version: if the store derives versions from contents, a new object may have the version
            // of the one before.
            self.watch = Watch::default();
        }
        if found.record.holder().is_none() {
            // This is final, so even an outdated read can be trusted.
            return self.ended(Some(found.version));
        }
        // The watch waits for the lease that the record states. A later wait for a missing or unreadable object lasts as long.
        self.lease = found.record.lease_duration();
        self.is_stated = true;
        let listed = self.listed.as_ref().filter(|(version, _)| *version == found.version);
        let known_for = listed.map_or(Duration::ZERO, |(_, at)| now.saturating_since(*at));
        self.watch.observe(now, Some(found), known_for, false);
    }
}
