//! The receivers of an elector's reports, and the settings that reports need.

use std::sync::{Arc, Weak};

use super::new_leader::NewLeaderCalls;
use crate::config::callbacks::OnStop;
use crate::config::common::SharedConfig;
use crate::handle::observation::RecordedError;
use crate::handle::status::StatusWriter;
use crate::history::writer::Place;
use crate::leadership::TermListener;

/// The receivers of the reports of every run of an elector, and the settings that reports need.
pub(crate) trait Listeners: TermListener {
    /// Returns itself for a [`Leadership`](crate::Leadership). The reference is weak, because work may keep its `Leadership` forever, which
    /// must not keep the elector alive.
    fn term_listener(self: Arc<Self>) -> Weak<dyn TermListener>;

    /// The name of the elector in metrics and traces.
    fn name(&self) -> Arc<str>;

    /// The name of the lock if a session holds it, to tell the session's many locks apart in the log.
    fn lock_of_session(&self) -> Option<&str>;

    /// The shared settings, such as the clock and the writer of the lock's history.
    fn basics(&self) -> &SharedConfig;

    fn status(&self) -> &StatusWriter;

    /// The last error of a request to the lock; `None` if there was none.
    fn last_recorded_error(&self) -> Option<Box<RecordedError>> {
        self.status().last_recorded_error()
    }

    fn on_stop(&self) -> Option<Arc<OnStop>>;

    fn new_leader_calls(&self) -> &NewLeaderCalls;

    fn identity(&self) -> &str;

    /// The objects of the lock.
    fn objects(&self) -> Vec<Place>;
}
