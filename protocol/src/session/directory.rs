//! The other sessions: who is over (rules S3, S4 and S7).

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use super::Write;
use crate::LocalInstant;
use crate::lease::{Lease, NotYet, ReadError, Visitor, Watch};
use crate::record::{Content, RELEASED_LEASE, Record, Versioned};

/// All other sessions: who is over, and who may be ended. It is the detector of failures.
///
/// A session is over for good: no process uses an ID twice, and no session opens twice. A policy keeps its notes about each session
/// here, too, which no rule reads.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Directory<R: Record, N = ()> {
    own_lease: Duration,
    sessions: BTreeMap<R::SessionId, (OtherSession<R>, N)>,
}

/// One other session.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct OtherSession<R: Record> {
    /// The record, as reads have shown it.
    watch: Watch<R>,
    /// The session's own lease: of its record, or else the one that its locks tell, or else the longest known (S4).
    lease: Duration,
    /// The version in the last listing, and the moment at which a listing showed it first.
    listed: Option<(R::Version, LocalInstant)>,
    /// Since when reads agree that there is no record.
    missing: Option<(Missing, LocalInstant)>,
    over: Option<Over<R>>,
    /// One request at a time: of two answers the older one could come last, and pass for news.
    in_flight: Option<Asked>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Missing {
    /// There is no object.
    Object,
    /// There is an object, and it is no record.
    Record,
}

/// A session that is over, with the version of its object, if that is known.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Over<R: Record>(Option<R::Version>);

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Asked {
    /// `is_late` if the read was sent after the object had been unreadable for one lease duration.
    Read {
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

    /// Makes the write: an empty holder over the version that was observed, or an ended session instead of a missing object.
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
        // A read that is sent before the answer may show the record from before this write, and come last.
        other.in_flight = Some(Asked::End);
        Write { record, expected }
    }
}

impl<R: Record, N> Directory<R, N> {
    /// Creates a directory without sessions. `own_lease` is L of this process.
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

    /// Rules S4 and S5: tells whether a session is known to be over: see [`OtherSession::is_over`].
    pub fn is_over(&self, session: &R::SessionId) -> bool {
        self.get(session).is_some_and(|(other, _)| other.is_over())
    }

    /// The longest lease of a session that is known, for one of which nobody tells it (S4).
    pub fn longest_lease(&self) -> Duration {
        self.sessions.values().map(|(other, _)| other.lease).fold(self.own_lease, Duration::max)
    }

    // ---- Hints: they date what a later read shows, and decide nothing ----

    /// Learns of a session, from a lock or a listing. The lease that a lock names counts until a read shows the record, which
    /// somebody may have deleted (S4).
    pub fn discover(&mut self, session: &R::SessionId, told: Option<Duration>)
    where
        N: Default,
    {
        if !self.sessions.contains_key(session) {
            // A wait that is too long costs time, and one that is too short costs safety.
            let new = (OtherSession::new(self.longest_lease()), N::default());
            self.sessions.insert(session.clone(), new);
        }
        if let Some((other, _)) = self.sessions.get_mut(session)
            && other.watch.found().is_none()
        {
            other.lease = told.unwrap_or(other.lease);
        }
    }

    /// Rule S3: takes the version of a session's object from a listing that has returned. If a later read shows this very version, it
    /// counts from here. Some stores spell versions in listings in another way, so nothing follows from a difference.
    pub fn listed(&mut self, now: LocalInstant, session: &R::SessionId, version: R::Version) {
        if let Some((other, _)) = self.sessions.get_mut(session)
            && other.listed().is_none_or(|known| *known != version)
        {
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

    /// Begins a read of a session's object, which the driver has to send then.
    pub fn may_read(&mut self, now: LocalInstant, session: &R::SessionId) -> Result<(), NotYet> {
        let (other, _) = self.sessions.get_mut(session).ok_or(NotYet::Nothing)?;
        other.is_idle()?;
        // Decided when the read is sent: its answer tells of no later moment.
        let is_late = other.is_unreadable() && other.expires_at().is_some_and(|at| now >= at);
        other.in_flight = Some(Asked::Read { is_late });
        Ok(())
    }

    /// Rule S4, end: a conditional write on the version that was observed for the session's lease, after which no renewal of the
    /// owner is committed. The content must have been read, because the write keeps its fields. If the object is missing for that
    /// lease, an ended one is created: a read that shows none may be false, and then the creation fails.
    pub fn may_end(&mut self, now: LocalInstant, session: &R::SessionId) -> Result<EndPermit<'_, R>, NotYet> {
        let (other, _) = self.sessions.get_mut(session).ok_or(NotYet::Nothing)?;
        other.is_idle()?;
        if other.is_over() {
            // The first end is final. Another would only change the version to delete.
            return Err(NotYet::Nothing);
        }
        // No write can name the version of an unreadable object.
        let at = other.expires_at().filter(|_| !other.is_unreadable()).ok_or(NotYet::Unread)?;
        if now < at { Err(NotYet::Before(at)) } else { Ok(EndPermit { other }) }
    }

    /// Rule S7, delete: the version on which alone the object of an ended session may be deleted. An owner that does
    /// not know of the end cannot open its session again, whatever its next read shows ([`Lease::may_renew`]).
    pub fn may_delete(&self, session: &R::SessionId) -> Result<&R::Version, NotYet> {
        let over = self.sessions.get(session).and_then(|(other, _)| other.over.as_ref());
        over.and_then(|over| over.0.as_ref()).ok_or(NotYet::Nothing)
    }

    // ---- Answers ----

    /// Takes the answer to a write that ends a session: its version if it was committed. One that is not known to be committed
    /// changes nothing: the next read decides.
    pub fn end_answered(&mut self, session: &R::SessionId, committed: Option<R::Version>) {
        if let Some((other, _)) = self.sessions.get_mut(session)
            && other.in_flight.take_if(|sent| *sent == Asked::End).is_some()
            && committed.is_some()
        {
            other.end(committed);
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
        let Some(Asked::Read { is_late }) = other.in_flight.take_if(|sent| *sent != Asked::End) else { return };
        let missing = match answer {
            // It shows neither a change nor an absence, so every wait runs on.
            Err(ReadError::Failed) => return,
            Ok(Some(found)) => return other.saw(now, found),
            Ok(None) => Missing::Object,
            Err(ReadError::Unreadable) => Missing::Record,
        };
        // The two end in different ways, so each has a wait of its own.
        if other.missing.is_none_or(|(before, _)| before != missing) {
            other.missing = Some((missing, now));
        } else if missing == Missing::Record && is_late {
            // The second of these reads was sent a lease after the first had returned. A read that was sent earlier and is answered
            // late shows nothing about the time between. A session that is over already keeps the version to delete.
            if !other.is_over() {
                other.end(None);
            }
        }
    }

    /// Takes over what is known of the local session, which is one of the others from here on: it must be seen to have ended like
    /// any other, unless its release is known to be committed.
    pub fn closed(&mut self, own: &Lease<R>)
    where
        N: Default,
    {
        let Some(session) = own.session() else { return };
        self.discover(session, Some(own.lease_duration()));
        // A window that has closed is not enough: a renewal may be in flight, and is committed unless a write ends the session
        // before.
        let released = own.watch().found().filter(|found| found.record.holder().is_none());
        if let (Some(found), Some((other, _))) = (released, self.sessions.get_mut(session)) {
            other.end(Some(found.version.clone()));
        }
    }

    /// Rule S7: takes the end of the object of a session that is over: there is nothing to delete any more.
    pub fn deleted(&mut self, session: &R::SessionId) {
        if let Some((OtherSession { over: Some(over), .. }, _)) = self.sessions.get_mut(session) {
            *over = Over(None);
        }
    }

    /// Forgets a session, and returns the notes about it. Whatever shows it again begins another wait.
    pub fn forget(&mut self, session: &R::SessionId) -> Option<N> {
        self.sessions.remove(session).map(|(_, notes)| notes)
    }

    /// Shows every moment to `visitor`, after `turn_to` has shown it the notes about that session.
    pub fn visit<V: Visitor<R>>(&mut self, visitor: &mut V, mut turn_to: impl FnMut(&mut V, &mut N)) {
        for (other, notes) in self.sessions.values_mut() {
            turn_to(visitor, notes);
            other.watch.visit(visitor);
            other.listed.iter_mut().for_each(|(_, at)| visitor.moment(at));
            other.missing.iter_mut().for_each(|(_, at)| visitor.moment(at));
        }
    }
}

impl<R: Record> OtherSession<R> {
    fn new(lease: Duration) -> Self {
        Self { watch: Watch::default(), lease, listed: None, missing: None, over: None, in_flight: None }
    }

    /// Rules S4 and S5: returns `true` if the session is over, so that it holds nothing. Only a committed write that ends it, a
    /// read that shows its released record, or an object that stayed unreadable makes it so. That its lease has passed is not
    /// enough: a renewal may be in flight.
    pub fn is_over(&self) -> bool {
        self.over.is_some()
    }

    /// The session's own lease, as far as is known.
    pub fn lease_duration(&self) -> Duration {
        self.lease
    }

    /// The record, as the last read has shown it; `None` if it has shown none.
    pub fn found(&self) -> Option<&Versioned<R>> {
        self.watch.found().filter(|_| self.missing.is_none())
    }

    /// The moment from which the session has expired, if its object does not change; `None` before the first read. A policy may wait
    /// longer, never less.
    pub fn expires_at(&self) -> Option<LocalInstant> {
        // What is missing now is newer than anything that the watch knows.
        self.missing.map(|(_, since)| since + self.lease).or(self.watch.expires_at())
    }

    /// Returns `true` if the last read has shown no object.
    pub fn is_missing(&self) -> bool {
        matches!(self.missing, Some((Missing::Object, _)))
    }

    /// Returns `true` if the last read has shown an object that is no record.
    pub fn is_unreadable(&self) -> bool {
        matches!(self.missing, Some((Missing::Record, _)))
    }

    /// The version in the last listing, as the listing spells it.
    pub fn listed(&self) -> Option<&R::Version> {
        self.listed.as_ref().map(|(version, _)| version)
    }

    fn is_idle(&self) -> Result<(), NotYet> {
        if self.in_flight.is_some() { Err(NotYet::Busy) } else { Ok(()) }
    }

    /// Takes the session for over. `version` is that of its object, if it is known; the record is of no use any more.
    fn end(&mut self, version: Option<R::Version>) {
        (self.over, self.watch) = (Some(Over(version)), Watch::default());
    }

    fn saw(&mut self, now: LocalInstant, found: Versioned<R>) {
        if self.missing.take().is_some() {
            // Another object may have the version of the one before, if the store makes versions of contents.
            self.watch = Watch::default();
        }
        if found.record.holder().is_none() {
            // Final, so that even a read that is out of date may be believed.
            return self.end(Some(found.version));
        }
        // Before the watch takes the record: the wait for this version is for the lease that it names.
        self.lease = found.record.lease_duration();
        let listed = self.listed.as_ref().filter(|(version, _)| *version == found.version);
        let known_for = listed.map_or(Duration::ZERO, |(_, at)| now.saturating_since(*at));
        self.watch.observe(now, Some(found), known_for, false);
    }
}
