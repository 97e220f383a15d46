//! The state machine of sessions: every history of a few processes.

use crate::keeps_every_promise;

#[test]
fn every_history_of_sessions_keeps_every_promise() {
    keeps_every_promise("sessions");
}
