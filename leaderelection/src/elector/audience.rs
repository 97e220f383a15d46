//! The parts of an elector that listen to its runs and to its terms.

use std::sync::Arc;

use tokio::sync::Notify;

use super::line::Line;
use super::listeners::Listeners;
use super::new_leader::NewLeaderCalls;
use crate::clock::Clock;
use crate::config::LeaderElectionConfig;
use crate::leadership::TermListener;
use crate::status::StatusWriter;

/// The listeners of an elector whose lock has a lease of its own.
#[derive(Debug)]
pub(super) struct Audience {
    config: Arc<LeaderElectionConfig>,
    pub(super) status: StatusWriter,
    new_leader_calls: NewLeaderCalls,
    /// Rings when the term has news.
    pub(super) news: Notify,
    /// The line to the peers, if anyone has asked for it.
    pub(super) line: Line,
}

impl Audience {
    pub(super) fn new(config: Arc<LeaderElectionConfig>, status: StatusWriter) -> Self {
        let new_leader_calls = NewLeaderCalls::new(config.callbacks.on_new_leader.clone());
        Self { config, status, new_leader_calls, news: Notify::new(), line: Line::default() }
    }
}

/// A run of the elector, of which peers hear. They hear nothing more when it is over, or when its future is dropped.
#[derive(Debug)]
pub(super) struct OnTheLine(pub(super) Arc<Audience>);

impl Drop for OnTheLine {
    fn drop(&mut self) {
        self.0.line.quiet();
    }
}

impl Listeners for Audience {
    fn name(&self) -> Arc<str> {
        self.config.name.as_str().into()
    }

    fn lock_of_session(&self) -> Option<&str> {
        None
    }

    fn clock(&self) -> &dyn Clock {
        &*self.config.clock
    }

    fn status(&self) -> &StatusWriter {
        &self.status
    }

    fn new_leader_calls(&self) -> &NewLeaderCalls {
        &self.new_leader_calls
    }
}

impl TermListener for Audience {
    fn wake(&self) {
        self.news.notify_one();
    }
}
