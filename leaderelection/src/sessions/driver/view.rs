//! What a session reports to its process: metrics, errors, and the renewals of the sessions that locks name.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use super::log;
use super::shared::Shared;
use crate::clock::LocalInstant;
use crate::election::Operation;
use crate::elector::meters::SessionMeters;
use crate::elector::request::Answered;
use crate::handle::observation::{RecordedError, Renewal, SessionRenewal};
use crate::lock::LockError;
use crate::sessions::machine::Progress;
use crate::store::StoreErrorKind;

/// The reports of one run of a session.
pub(super) struct View {
    shared: Arc<Shared>,
    pub(super) meters: SessionMeters,
    /// The last renewal of each session that a lock may name. The handles of those locks share it.
    renewals: HashMap<Arc<str>, Arc<SessionRenewal>>,
    own: Option<Arc<SessionRenewal>>,
}

impl View {
    pub(super) fn new(shared: &Arc<Shared>) -> Self {
        let meters = SessionMeters::new(&shared.settings.basics.name);
        Self { shared: Arc::clone(shared), meters, renewals: HashMap::new(), own: None }
    }

    /// Returns the last renewal of a session that a lock names.
    pub(super) fn renewal_of(&mut self, now: LocalInstant, session: &str) -> Arc<SessionRenewal> {
        if let Some(renewal) = self.renewals.get(session) {
            return Arc::clone(renewal);
        }
        // The session was not read yet. Until then, the moment at which a lock named it counts as its last renewal.
        let renewal = Arc::new(SessionRenewal::new(self.renewal_at(now)));
        self.renewals.insert(session.into(), Arc::clone(&renewal));
        renewal
    }

    pub(super) fn opened(&mut self, now: LocalInstant, session: &Arc<str>) {
        log::opened(session);
        let renewal = self.renewal_of(now, session);
        self.own = Some(renewal);
    }

    /// Records a renewal of this process's session.
    pub(super) fn renewed(&self, now: LocalInstant) {
        if let Some(own) = &self.own {
            *own.lock() = self.renewal_at(now);
        }
    }

    pub(super) fn saw_peer(&mut self, now: LocalInstant, session: &str, since: LocalInstant, lease: Duration) {
        let renewal = Renewal { changed_at: since, checked_at: now, lease_duration: lease };
        *self.renewal_of(now, session).lock() = renewal;
    }

    pub(super) fn peer_ended(&mut self, session: &str) {
        log::peer_ended(session);
        // A status that still shows the session keeps its reference to the renewal.
        self.renewals.remove(session);
        // A lock that names an ended session adds an entry again. Such an entry is removed once no status refers to it.
        self.renewals.retain(|_, renewal| Arc::strong_count(renewal) > 1);
    }

    pub(super) fn duplicate_identity(&self, now: LocalInstant, session: &str) {
        log::duplicate_identity(session);
        self.meters.duplicate_identity();
        let fleet = self.shared.settings.fleet.describe();
        let problem = "another process renews a session under our identity; give every process an identity of its own";
        let error = LockError::new(StoreErrorKind::Fatal, "cannot open a session under", fleet, problem);
        self.failed(now, Operation::Get, &error);
    }

    /// Reports the answer to a request that was not about a lock.
    pub(super) fn answered(
        &mut self,
        now: LocalInstant,
        operation: Operation,
        answered: Answered,
        error: Option<&LockError>,
    ) {
        self.meters.answered(operation, answered);
        // Conflicts are not failures: several members may end the same session at once.
        if let Some(error) = error.filter(|error| error.kind() != StoreErrorKind::Conflict) {
            self.failed(now, operation, error);
        }
    }

    pub(super) fn report_progress(&self, progress: Option<Progress>) {
        let Progress { taking, handing_over, waiting, .. } = progress.unwrap_or_default();
        self.meters.works(taking, handing_over, waiting);
    }

    pub(super) fn failed(&self, now: LocalInstant, operation: Operation, error: &LockError) {
        let at = self.shared.settings.basics.clock.wall_time();
        self.shared.status.fail(RecordedError::new(now, at, operation, error));
    }

    fn renewal_at(&self, now: LocalInstant) -> Renewal {
        let lease_duration = self.shared.settings.rules.election.lease_duration;
        Renewal { changed_at: now, checked_at: now, lease_duration }
    }
}
