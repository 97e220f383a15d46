//! The parts of an elector that receive its reports.

use std::sync::{Arc, Weak};

use super::new_leader::NewLeaderCalls;
use crate::config::callbacks::OnStop;
use crate::config::common::SharedConfig;
use crate::handle::observation::RecordedError;
use crate::handle::status::StatusWriter;
use crate::history::writer::Place;
use crate::leadership::TermListener;

/// The parts of an elector that listen to every run.
pub(crate) trait Listeners: TermListener {
    /// Itself, for a [`Leadership`](crate::Leadership). Work may keep that forever, and must not keep the elector alive.
    fn term_listener(self: Arc<Self>) -> Weak<dyn TermListener>;

    /// The name of the elector in metrics and traces.
    fn name(&self) -> Arc<str>;

    /// The name of the lock, if it is one of many of a session. A session logs totals; per-lock lines need the lock's
    /// name.
    fn lock_of_session(&self) -> Option<&str>;

    /// The settings, among them the clock and the writer of the lock's history.
    fn basics(&self) -> &SharedConfig;

    fn status(&self) -> &StatusWriter;

    /// The last error between the elector and its lock.
    fn last_recorded_error(&self) -> Option<Box<RecordedError>> {
        self.status().last_recorded_error()
    }

    fn on_stop(&self) -> Option<Arc<OnStop>>;

    fn new_leader_calls(&self) -> &NewLeaderCalls;

    fn identity(&self) -> &str;

    /// The objects of the lock.
    fn objects(&self) -> Vec<Place>;
}
