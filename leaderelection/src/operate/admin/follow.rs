//! Observes a lock together with the session that holds it.

use async_trait::async_trait;

use super::target::{HoldingSession, ObservedTarget, Target};
use crate::clock::{Clock, LocalInstant};
use crate::handle::observe::{Observable, Observation};
use crate::lock::LockError;

/// A [`Target`] as the polls of an [`Observer`](crate::handle::Observer) have shown it.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Followed {
    /// The last poll.
    pub target: ObservedTarget,
    /// The observation of the target's own record.
    pub record: Observation,
    /// The observation of the record of the session that the target names; `None` if it names none.
    pub session: Option<Observation>,
}

impl Followed {
    /// The observation of the lease on which leadership depends: the session's, or the lock's if no session holds it.
    #[must_use]
    pub fn lease(&self) -> &Observation {
        self.session.as_ref().unwrap_or(&self.record)
    }
}

#[async_trait]
impl Observable for Target {
    type Seen = Followed;

    async fn observe(&self, clock: &dyn Clock, before: Option<&Followed>) -> Result<Followed, LockError> {
        let asked_at = clock.now();
        Ok(Followed::new(Target::read(self).await?, asked_at, clock.now(), before))
    }

    fn lease<'a>(&self, seen: &'a Followed) -> &'a Observation {
        seen.lease()
    }
}

impl Followed {
    fn new(target: ObservedTarget, asked_at: LocalInstant, now: LocalInstant, before: Option<&Self>) -> Self {
        let record = Observation::new(target.found.clone(), asked_at, now, before.map(|before| &before.record));
        let session = target.session.as_ref().map(|session| {
            // Another session has another lease, so its observation starts anew.
            let before = before.filter(|before| before.session_id() == Some(&session.id));
            let before = before.and_then(|before| before.session.as_ref());
            Observation::new(session.found.clone(), asked_at, now, before)
        });
        Self { target, record, session }
    }

    fn session_id(&self) -> Option<&String> {
        self.target.session.as_ref().map(|HoldingSession { id, .. }| id)
    }
}
