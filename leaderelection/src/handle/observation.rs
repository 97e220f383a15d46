//! What a process last saw of a lock: the lease, the last error, and the age of each.

use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};

use crate::clock::LocalInstant;
use crate::election::Operation;
use crate::lock::LockError;
use crate::lock::record::{LeaderElectionRecord, PeerAddress};
use crate::store::{StoreErrorKind, Version};
use crate::term::FencingToken;
use crate::util::sync::Mutex;

/// The lease as this process last read or wrote it.
///
/// A lease is known to have expired when it has been [unchanged](Self::unchanged_for) for its whole duration. If a
/// session holds the lock, this is the lease of the session.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ObservedLease {
    /// The token of the term that holds the lease, or held it last.
    pub fencing_token: FencingToken,
    /// The start of the holder's term, by the holder's wall clock.
    pub acquire_time: Option<DateTime<Utc>>,
    /// The time of the holder's last renewal, by the holder's wall clock.
    pub renew_time: Option<DateTime<Utc>>,
    /// How long the lease lasts after a renewal.
    pub lease_duration: Duration,
    /// The candidate to which the lease is handed over. This candidate goes first once the lease is free.
    pub preferred_holder: Option<String>,
    /// The time since this process first saw this version of the lock, or got a message about a later renewal, by its
    /// monotonic clock.
    pub unchanged_for: Duration,
    /// The time since the last successful answer of the store, by the monotonic clock of this process.
    pub checked_for: Duration,
    /// `true` if this process has seen an earlier version of the lock, too. The holder was then alive shortly before
    /// this process first saw the current version. `false` after one read, when the holder may have been dead for long.
    pub seen_to_change: bool,
    /// `true` if another process was seen to renew the lease under the identity of this elector. At most one of the two
    /// leads. Unless it is this elector, [`LeaderStatus::leader`](crate::LeaderStatus::leader) names nobody. Always
    /// `false` for the lock of a session.
    pub of_duplicate: bool,
}

impl ObservedLease {
    /// Returns `true` if the lease was seen unchanged for its whole duration. Its holder then no longer leads, unless
    /// it has renewed the lease since the last read.
    #[must_use]
    pub fn has_expired(&self) -> bool {
        self.unchanged_for >= self.lease_duration
    }
}

/// The last error between an elector and its lock.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LastError {
    /// The time of the error, by the wall clock of this process.
    pub at: DateTime<Utc>,
    /// The time since the error, by the monotonic clock of this process. It is comparable with the times of an
    /// [`ObservedLease`].
    pub age: Duration,
    /// The time since the first of the errors in a row: no request has succeeded since then or, if these are errors of writes, no write. An
    /// object that is not a record begins a new row.
    pub failing_for: Duration,
    /// The kind of error, which says whether the failed request may have had an effect.
    pub kind: StoreErrorKind,
    /// The request that failed.
    pub operation: Operation,
    /// The error and its causes, on one line. The message contains no secrets.
    pub message: String,
}

/// An error, and the moment at which the elector got it.
#[derive(Clone, Debug)]
pub(crate) struct RecordedError {
    pub(crate) recorded_at: LocalInstant,
    /// The moment of the first of the errors in a row.
    first_at: LocalInstant,
    error: LastError,
}

impl RecordedError {
    pub(crate) fn new(now: LocalInstant, at: DateTime<Utc>, operation: Operation, error: &LockError) -> Self {
        let (kind, message) = (error.kind(), error.in_full());
        let error = LastError { at, age: Duration::ZERO, failing_for: Duration::ZERO, kind, operation, message };
        Self { recorded_at: now, first_at: now, error }
    }

    /// The same error, as one of several in a row if nothing seen since the error `before` says that such a request has succeeded.
    pub(crate) fn after(self, before: Option<&Self>, sighting: Option<&Sighting>) -> Self {
        let is_same = |before: &&Self| {
            let of_writes = [before, &self].iter().all(|error| error.error.operation != Operation::Get);
            // Reads may succeed while writes fail. A write that has succeeded shows a new version.
            let success = sighting.map(|seen| if of_writes { seen.changed_at } else { seen.checked_at });
            let is_unreadable = |error: &Self| error.error.kind == StoreErrorKind::Unreadable;
            is_unreadable(before) == is_unreadable(&self) && success.is_none_or(|success| success <= before.recorded_at)
        };
        let first_at = before.filter(is_same).map_or(self.first_at, |before| before.first_at);
        Self { first_at, ..self }
    }

    pub(crate) fn message(&self) -> &str {
        &self.error.message
    }

    pub(crate) fn is_permanent(&self) -> bool {
        matches!(self.error.kind, StoreErrorKind::Fatal | StoreErrorKind::Unreadable)
    }

    pub(crate) fn at(&self, now: LocalInstant) -> LastError {
        let (age, failing_for) = (now.saturating_since(self.recorded_at), now.saturating_since(self.first_at));
        LastError { age, failing_for, ..self.error.clone() }
    }
}

/// The last observed version of the lock, and when it was seen.
#[derive(Clone, Debug)]
pub(crate) struct Sighting {
    fencing_token: FencingToken,
    acquire_time: Option<DateTime<Utc>>,
    renew_time: Option<DateTime<Utc>>,
    lease_duration: Duration,
    preferred_holder: Option<Arc<str>>,
    /// The addresses of the holder, if it advertises any in this term.
    peer: Option<Arc<PeerAddress>>,
    version: Version,
    changed_at: LocalInstant,
    checked_at: LocalInstant,
    seen_to_change: bool,
    pub(crate) of_duplicate: bool,
    /// The moment of the last renewal that a message or an answer has shown. An answer resets it to `changed_at`.
    reported_at: LocalInstant,
    /// The last renewal of the session that holds the lock, if a session does.
    pub(crate) session: Option<Arc<SessionRenewal>>,
}

/// The last renewal of a session, which all locks of that session share.
pub(crate) type SessionRenewal = Mutex<Renewal>;

/// The last observed renewal.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Renewal {
    pub(crate) changed_at: LocalInstant,
    pub(crate) checked_at: LocalInstant,
    pub(crate) lease_duration: Duration,
}

impl Sighting {
    /// Creates the sighting for an answer that came at `now`. `before` is the previous sighting.
    pub(crate) fn new(
        record: &LeaderElectionRecord,
        version: Version,
        now: LocalInstant,
        before: Option<&Self>,
    ) -> Self {
        let same = before.filter(|before| before.version == version);
        let changed_at = same.map_or(now, |same| same.changed_at);
        Self {
            fencing_token: record.leader_transitions.into(),
            acquire_time: record.acquire_time,
            renew_time: record.renew_time,
            lease_duration: record.lease_duration,
            preferred_holder: record.preferred_holder.as_deref().map(Arc::from),
            peer: record.peer.clone().filter(|_| record.client_address().is_some()),
            version,
            changed_at,
            checked_at: now,
            seen_to_change: same.map_or(before.is_some(), |same| same.seen_to_change),
            of_duplicate: false,
            reported_at: changed_at,
            session: None,
        }
    }

    /// Records a message about a renewal. It counts until the next answer of the lock, which shows whether it was true.
    pub(crate) fn on_message(&mut self, at: LocalInstant) {
        self.reported_at = at.max(self.changed_at);
    }

    /// The addresses that the holder advertises.
    pub(crate) fn addresses(&self) -> Option<&PeerAddress> {
        self.peer.as_deref()
    }

    pub(crate) fn at(&self, now: LocalInstant) -> ObservedLease {
        let Self { reported_at, checked_at, lease_duration, .. } = *self;
        let own = Renewal { changed_at: reported_at, checked_at, lease_duration };
        let Renewal { changed_at, checked_at, lease_duration } =
            self.session.as_ref().map_or(own, |session| *session.lock());
        ObservedLease {
            fencing_token: self.fencing_token,
            acquire_time: self.acquire_time,
            renew_time: self.renew_time,
            lease_duration,
            preferred_holder: self.preferred_holder.as_deref().map(str::to_owned),
            unchanged_for: now.saturating_since(changed_at),
            checked_for: now.saturating_since(checked_at.max(self.checked_at)),
            seen_to_change: self.seen_to_change,
            of_duplicate: self.of_duplicate,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_in_a_row_tell_since_when_such_requests_fail() {
        let at = |seconds| LocalInstant::default() + Duration::from_secs(seconds);
        let error = |seconds, operation, kind| {
            let error = LockError::new(kind, "reading", "lock".to_owned(), "down");
            RecordedError::new(at(seconds), DateTime::UNIX_EPOCH, operation, &error)
        };
        let seen = |version: &str, changed, checked| {
            let sighting = |version: &str, seconds, before: Option<&Sighting>| {
                Sighting::new(
                    &LeaderElectionRecord::new("a", Duration::from_secs(15)),
                    Version::new(version),
                    at(seconds),
                    before,
                )
            };
            sighting(version, checked, Some(&sighting(version, changed, None)))
        };
        let first = error(10, Operation::Get, StoreErrorKind::Rejected);
        for (operation, kind, sighting, failing_for) in [
            (Operation::Get, StoreErrorKind::Rejected, None, 15),
            (Operation::Get, StoreErrorKind::Rejected, Some(seen("1", 5, 9)), 15),
            (Operation::Get, StoreErrorKind::Rejected, Some(seen("1", 5, 11)), 5),
            (Operation::Get, StoreErrorKind::Ambiguous, None, 15),
            (Operation::Get, StoreErrorKind::Unreadable, None, 5),
            (Operation::Update, StoreErrorKind::Rejected, None, 15),
            (Operation::Update, StoreErrorKind::Rejected, Some(seen("1", 5, 11)), 5),
        ] {
            let next = error(20, operation, kind).after(Some(&first), sighting.as_ref());
            assert_eq!(next.at(at(25)).failing_for, Duration::from_secs(failing_for), "{operation:?} {kind:?}");
        }
        // Reads go on while writes fail. Only another version may be a write that succeeded.
        let first = error(10, Operation::Update, StoreErrorKind::Rejected);
        for (sighting, failing_for) in [(seen("1", 5, 19), 15), (seen("2", 19, 19), 5)] {
            let next = error(20, Operation::Update, StoreErrorKind::Rejected).after(Some(&first), Some(&sighting));
            assert_eq!(next.at(at(25)).failing_for, Duration::from_secs(failing_for));
        }
    }
}
