//! The parts of an elector that listen to its runs and to its terms.

use std::sync::{Arc, Weak};

use super::line::ElectorEnd;
use super::listeners::Listeners;
use super::new_leader::NewLeaderCalls;
use crate::config::LeaderElectionConfig;
use crate::config::callbacks::OnStop;
use crate::config::common::SharedConfig;
use crate::handle::status::StatusWriter;
use crate::handle::tuning::Tuning;
use crate::history::writer::Place;
use crate::leadership::TermListener;

/// The listeners of an elector whose lock has a lease of its own.
#[derive(Debug)]
pub(super) struct ElectorListeners {
    config: Arc<LeaderElectionConfig>,
    pub(super) status: StatusWriter,
    pub(super) tuning: Arc<Tuning>,
    new_leader_calls: NewLeaderCalls,
    pub(super) peers: ElectorEnd,
}

impl ElectorListeners {
    pub(super) fn new(config: Arc<LeaderElectionConfig>) -> Self {
        let new_leader_calls = NewLeaderCalls::new(config.callbacks.on_new_leader.clone(), &Arc::default());
        let (status, tuning) = (StatusWriter::new(), Arc::new(Tuning::new(&config)));
        Self { config, status, tuning, new_leader_calls, peers: ElectorEnd::default() }
    }
}

/// Notifies the peers that a run is over, even if the run's future is dropped before its end.
#[derive(Debug)]
pub(super) struct RunGuard(pub(super) Arc<ElectorListeners>);

impl Drop for RunGuard {
    fn drop(&mut self) {
        self.0.peers.on_run_end();
    }
}

impl Listeners for ElectorListeners {
    fn term_listener(self: Arc<Self>) -> Weak<dyn TermListener> {
        let listener: Arc<dyn TermListener> = self;
        Arc::downgrade(&listener)
    }

    fn name(&self) -> Arc<str> {
        self.config.basics.name.as_str().into()
    }

    fn lock_of_session(&self) -> Option<&str> {
        None
    }

    fn basics(&self) -> &SharedConfig {
        &self.config.basics
    }

    fn status(&self) -> &StatusWriter {
        &self.status
    }

    fn on_stop(&self) -> Option<Arc<OnStop>> {
        self.config.callbacks.at_the_end()
    }

    fn new_leader_calls(&self) -> &NewLeaderCalls {
        &self.new_leader_calls
    }

    fn identity(&self) -> &str {
        &self.config.rules.identity
    }

    fn objects(&self) -> Vec<Place> {
        self.config.lock.objects()
    }
}

impl TermListener for ElectorListeners {
    fn wake(&self) {
        self.tuning.wake_elector.notify_one();
    }
}
