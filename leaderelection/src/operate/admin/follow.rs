//! Following a lock together with the session that holds it.

use std::sync::Arc;
use std::time::Duration;

use super::target::{HoldingSession, Look, Target};
use crate::clock::{Clock, LocalInstant, SystemClock};
use crate::handle::observe::Observation;
use crate::lock::LockError;

/// A reader that reads a [`Target`] repeatedly, and the session that the target names: see [`Target::follow`].
///
/// A lease that runs out, be it that of the lock or that of its session, is read again at that moment, even if the period
/// is longer.
#[derive(Clone, Debug)]
#[must_use]
pub struct Follower {
    target: Target,
    period: Duration,
    clock: Arc<dyn Clock>,
    /// The moment of the next reads; `None` is now.
    due: Option<LocalInstant>,
    last: Option<Followed>,
}

/// A target as the reads of a [`Follower`] showed it.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Followed {
    /// The last look.
    pub look: Look,
    /// The observation of the target's own record.
    pub record: Observation,
    /// The observation of the record of the session that the target names.
    pub session: Option<Observation>,
}

impl Followed {
    /// The observation of the lease on which the lock depends: that of the session which holds the lock, or the lock's own.
    #[must_use]
    pub fn lease(&self) -> &Observation {
        self.session.as_ref().unwrap_or(&self.record)
    }
}

impl Target {
    /// Reads the target every `period`, with the session that it names.
    pub fn follow(&self, period: Duration) -> Follower {
        Follower { target: self.clone(), period, clock: Arc::new(SystemClock), due: None, last: None }
    }
}

impl Follower {
    /// Sets another clock than the machine's.
    pub fn on_clock(mut self, clock: impl Clock) -> Self {
        self.clock = Arc::new(clock);
        self
    }

    /// Waits until the next reads are due, and reads. The first reads are due at once.
    ///
    /// Cancellation safe: a dropped call loses no observation, and does not restart the period.
    ///
    /// # Errors
    ///
    /// The [`LockError`] of a read. The next call reads again after the period, and earlier observations still count.
    pub async fn next(&mut self) -> Result<Followed, LockError> {
        if let Some(due) = self.due {
            self.clock.sleep_until(due).await;
        }
        let asked_at = self.clock.now();
        let look = self.target.look().await;
        let now = self.clock.now();
        self.due = Some(now + self.period);
        let followed = Followed::new(look?, asked_at, now, self.last.as_ref());
        let expiry = followed.lease().expires_at().filter(|expiry| *expiry > now);
        self.due = self.due.into_iter().chain(expiry).min();
        self.last = Some(followed.clone());
        Ok(followed)
    }
}

impl Followed {
    fn new(look: Look, asked_at: LocalInstant, now: LocalInstant, before: Option<&Self>) -> Self {
        let record = Observation::new(look.found.clone(), asked_at, now, before.map(|before| &before.record));
        let session = look.session.as_ref().map(|session| {
            // Another session is another lease.
            let before = before.filter(|before| before.session_id() == Some(&session.id));
            let before = before.and_then(|before| before.session.as_ref());
            Observation::new(session.found.clone(), asked_at, now, before)
        });
        Self { look, record, session }
    }

    fn session_id(&self) -> Option<&String> {
        self.look.session.as_ref().map(|HoldingSession { id, .. }| id)
    }
}
