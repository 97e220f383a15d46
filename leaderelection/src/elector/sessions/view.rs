//! The reports of a session to the outside: its metrics, its errors, and the sessions that its locks name.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use super::log;
use super::shared::Shared;
use crate::clock::LocalInstant;
use crate::election::{self, BeginReason, Operation};
use crate::elector::meters::SessionMeters;
use crate::elector::request::{Answered, Asked};
use crate::lock::LockError;
use crate::observation::{Beat, Mishap, Pulse};
use crate::session::Input;
use crate::store::StoreErrorKind;

/// The listeners of one run of a session.
pub(super) struct View {
    shared: Arc<Shared>,
    meters: SessionMeters,
    /// The renewals of the sessions that locks may name.
    pulses: HashMap<Arc<str>, Arc<Pulse>>,
    own: Option<Arc<Pulse>>,
}

impl View {
    pub(super) fn new(shared: &Arc<Shared>) -> Self {
        let meters = SessionMeters::new(&shared.settings.name);
        Self { shared: Arc::clone(shared), meters, pulses: HashMap::new(), own: None }
    }

    /// The renewals of a session that a lock names.
    pub(super) fn pulse(&mut self, now: LocalInstant, session: &str) -> Arc<Pulse> {
        if let Some(pulse) = self.pulses.get(session) {
            return Arc::clone(pulse);
        }
        // Nothing is known yet but that a lock names the session.
        let pulse = Arc::new(Pulse::new(self.beat(now)));
        self.pulses.insert(session.into(), Arc::clone(&pulse));
        pulse
    }

    pub(super) fn opened(&mut self, now: LocalInstant, session: &Arc<str>) {
        log::opened(session);
        let pulse = self.pulse(now, session);
        self.own = Some(pulse);
    }

    /// The own session was renewed.
    pub(super) fn renewed(&self, now: LocalInstant) {
        if let Some(own) = &self.own {
            own.beat(self.beat(now));
        }
    }

    pub(super) fn saw_peer(&mut self, now: LocalInstant, session: &str, since: LocalInstant, lease: Duration) {
        let beat = Beat { changed_at: since, checked_at: now, lease_duration: lease };
        self.pulse(now, session).beat(beat);
    }

    pub(super) fn peer_ended(&mut self, session: &str) {
        log::peer_ended(session);
        self.pulses.remove(session);
        // A session that ended earlier may have been named again since.
        self.pulses.retain(|_, pulse| Arc::strong_count(pulse) > 1);
    }

    pub(super) fn identity_clash(&self, now: LocalInstant, session: &str) {
        log::identity_clash(session);
        self.meters.identity_clash();
        let place = self.shared.settings.place.describe();
        let problem = "another process renews a session under our identity; give every process an identity of its own";
        let error = LockError::new(StoreErrorKind::Fatal, "cannot open a session under", place, problem);
        self.failed(now, Operation::Get, &error);
    }

    /// A request was answered that is not about a lock.
    pub(super) fn answered(
        &mut self,
        now: LocalInstant,
        input: &Input,
        asked: Asked,
        answered: Answered,
        error: Option<&LockError>,
    ) {
        if matches!(input, Input::Own { .. }) {
            self.meters.answered_own(now, asked, answered);
        } else {
            self.meters.answered(asked.operation, answered);
        }
        if let Some(error) = error.filter(|error| error.kind() != StoreErrorKind::Conflict) {
            self.failed(now, asked.operation, error);
        }
    }

    pub(super) fn own(&mut self, fact: &election::Fact) {
        self.meters.fact(fact);
    }

    pub(super) fn began(&self, leads: usize, reason: &BeginReason) {
        self.leads(leads);
        if matches!(reason, BeginReason::Expired { .. }) {
            self.meters.took_over();
        }
    }

    pub(super) fn leads(&self, locks: usize) {
        self.meters.leads(locks);
    }

    pub(super) fn sees(&self, sessions: usize) {
        self.meters.sees(sessions);
    }

    fn failed(&self, now: LocalInstant, operation: Operation, error: &LockError) {
        let at = self.shared.settings.clock.wall_time();
        self.shared.status.fail(Mishap::new(now, at, operation, error));
    }

    fn beat(&self, now: LocalInstant) -> Beat {
        let lease_duration = self.shared.settings.rules.election.lease_duration;
        Beat { changed_at: now, checked_at: now, lease_duration }
    }
}
