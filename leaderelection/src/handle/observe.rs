//! Watching a lock without competing for it.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures_util::stream::{Stream, unfold};

use crate::clock::{Clock, LocalInstant, SystemClock};
use crate::handle::observation::{ObservedLease, Sighting};
use crate::lock::record::LeaderElectionRecord;
use crate::lock::{LockError, ObjectStoreBasedLock, VersionedRecord};

/// Watches `lock` in a process that does not compete for it: [`next`](Observer::next) reads it every `period`.
///
/// If the observed lease expires before the period is over, the next read is at that moment. A change that is undone
/// between two reads is not seen. An observer waits forever for a read that is never answered, so limit the time of a
/// read with [`Bounded`](crate::lock::Bounded).
///
/// ```
/// use std::time::Duration;
/// use leaderelection::handle::observe;
/// use leaderelection::{LeaderElectionRecord, MemoryLock, MemoryStore, ObjectStoreBasedLock};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let lock = MemoryLock::new(MemoryStore::new(), "locks/scheduler", "node-1");
/// lock.create(&LeaderElectionRecord::new("node-1", Duration::from_secs(15))).await?;
/// let mut observer = observe(lock, Duration::from_secs(2));
/// let seen = observer.next().await?;
/// assert_eq!(seen.leader(), Some("node-1"));
/// # Ok(())
/// # }
/// ```
pub fn observe<L: Observable>(lock: L, period: Duration) -> Observer<L::Seen> {
    Observer { lock: Arc::new(lock), period, clock: Arc::new(SystemClock), due: None, last: None }
}

/// What an [`Observer`] reads: a lock, or an `admin::Target`, which is a lock together with the session that holds it.
#[async_trait]
pub trait Observable: fmt::Debug + Send + Sync + 'static {
    /// The state that one read shows.
    type Seen: Clone + fmt::Debug + Send + Sync + 'static;

    /// Reads the state. `before` is the previously seen state; `None` at the first read.
    ///
    /// # Errors
    ///
    /// The [`LockError`] of the read.
    async fn observe(&self, clock: &dyn Clock, before: Option<&Self::Seen>) -> Result<Self::Seen, LockError>;

    /// The observation of the lease that decides whether the lock is held: the lock's own, or that of its session.
    fn lease<'a>(&self, seen: &'a Self::Seen) -> &'a Observation;
}

#[async_trait]
impl<L: ObjectStoreBasedLock> Observable for L {
    type Seen = Observation;

    async fn observe(&self, clock: &dyn Clock, before: Option<&Observation>) -> Result<Observation, LockError> {
        let asked_at = clock.now();
        Ok(Observation::new(self.get().await?, asked_at, clock.now(), before))
    }

    fn lease<'a>(&self, seen: &'a Observation) -> &'a Observation {
        seen
    }
}

/// Reads a lock repeatedly: see [`observe`].
#[derive(Clone, Debug)]
#[must_use]
pub struct Observer<S = Observation> {
    lock: Arc<dyn Observable<Seen = S>>,
    period: Duration,
    clock: Arc<dyn Clock>,
    /// The moment of the next read; `None` means now.
    due: Option<LocalInstant>,
    last: Option<S>,
}

impl<S: Clone + fmt::Debug + Send + Sync + 'static> Observer<S> {
    /// Replaces the machine's clock.
    pub fn on_clock(mut self, clock: impl Clock) -> Self {
        self.clock = Arc::new(clock);
        self
    }

    /// Waits until the next read is due, and reads. The first read is due at once.
    ///
    /// Cancellation safe: a dropped call loses no observation, and does not restart the period.
    ///
    /// # Errors
    ///
    /// The [`LockError`] of the read. The next call reads again after the period. An error does not reset the age of
    /// the lease: if a later read shows the same version as before the error, the lease was unchanged in between.
    pub async fn next(&mut self) -> Result<S, LockError> {
        if let Some(due) = self.due {
            self.clock.sleep_until(due).await;
        }
        let seen = self.lock.observe(&*self.clock, self.last.as_ref()).await;
        let now = self.clock.now();
        self.due = Some(now + self.period);
        let seen = seen?;
        let expiry = self.lock.lease(&seen).expires_at().filter(|expiry| *expiry > now);
        self.due = self.due.into_iter().chain(expiry).min();
        self.last = Some(seen.clone());
        Ok(seen)
    }

    /// The last observation; `None` if no read has succeeded yet.
    #[must_use]
    pub fn last(&self) -> Option<&S> {
        self.last.as_ref()
    }

    /// Returns the observations as an endless stream. Errors do not end the stream.
    pub fn into_stream(self) -> impl Stream<Item = Result<S, LockError>> + Send + 'static {
        unfold(self, |mut observer| async move {
            let observation = observer.next().await;
            Some((observation, observer))
        })
    }
}

/// The state of a lock as one read showed it. All moments are by the observer's clock.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Observation {
    /// The record and its version; `None` if there is no object.
    pub found: Option<VersionedRecord>,
    /// The moment at which the read was sent.
    pub asked_at: LocalInstant,
    /// The moment at which the read was answered.
    pub answered_at: LocalInstant,
    /// The moment at which a read first showed this version.
    pub first_seen_at: LocalInstant,
    /// `true` if an earlier read showed another version, or no object. Otherwise, this version may be older than the
    /// first read.
    pub was_seen_to_change: bool,
    sighting: Option<Sighting>,
}

impl Observation {
    pub(crate) fn new(
        found: Option<VersionedRecord>,
        asked_at: LocalInstant,
        answered_at: LocalInstant,
        before: Option<&Self>,
    ) -> Self {
        let earlier = before.and_then(|before| before.sighting.as_ref());
        let sighting =
            found.as_ref().map(|found| Sighting::new(&found.record, found.version.clone(), answered_at, earlier));
        let version = |found: &Option<VersionedRecord>| found.as_ref().map(|found| found.version.clone());
        let same = before.filter(|before| version(&before.found) == version(&found));
        Self {
            first_seen_at: same.map_or(answered_at, |same| same.first_seen_at),
            was_seen_to_change: same.map_or(before.is_some(), |same| same.was_seen_to_change),
            found,
            asked_at,
            answered_at,
            sighting,
        }
    }

    /// The holder in the record, even if its lease has expired; `None` if there is no holder.
    #[must_use]
    pub fn leader(&self) -> Option<&str> {
        let holder = self.found.as_ref().map(|found| found.record.holder_identity.as_str());
        holder.filter(|holder| !holder.is_empty())
    }

    /// The lease, with its age when the read was answered; `None` if no object exists.
    #[must_use]
    pub fn lease(&self) -> Option<ObservedLease> {
        self.sighting.as_ref().map(|sighting| sighting.at(self.answered_at))
    }

    /// Returns `true` if the lock has changed since the read before, or if this was the first read.
    #[must_use]
    pub fn is_news(&self) -> bool {
        self.first_seen_at == self.answered_at
    }

    /// The age of this version by the store's own clock, when the read was answered; `None` if the store does not
    /// report it, or if there is no object. Over HTTP, the age is accurate to about a second.
    #[must_use]
    pub fn store_age(&self) -> Option<Duration> {
        self.found.as_ref()?.age
    }

    /// The moment at which the lease will have been unchanged for its whole duration; `None` if nobody holds the lock,
    /// or if a session does, because the lock's own record then has no lease.
    #[must_use]
    pub fn expires_at(&self) -> Option<LocalInstant> {
        let has_lease = |record: &LeaderElectionRecord| !record.is_released() && record.session.is_none();
        let found = self.found.as_ref().filter(|found| has_lease(&found.record))?;
        Some(self.first_seen_at + found.record.lease_duration)
    }

    /// Returns `true` if the lease was observed without a renewal for its whole duration.
    #[must_use]
    pub fn has_expired(&self) -> bool {
        self.expires_at().is_some_and(|expiry| self.answered_at >= expiry)
    }
}
