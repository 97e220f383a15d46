//! The check of work that failed: its term is over, and others go first (rule 21).

use leaderelection::handle::Change;
use leaderelection::{Leadership, TermEndReason};

use super::knowledge::Oracle;
use super::process::Watched;
use super::property::Property;
use crate::simulation::names::{ProcessId, Sent};

/// Returns `true` if the elector knew of the failure before the term was over for another reason.
fn ended_by_failure(watched: &Watched, token: u64) -> bool {
    watched.handle.transitions().into_iter().any(|transition| {
        let change = transition.change;
        matches!(change, Change::StoppedLeading { fencing_token, reason: TermEndReason::WorkFailed } if fencing_token == token)
    })
}

impl Oracle {
    /// Records that the work of a term is about to return an error.
    pub(crate) fn work_failed(&mut self, process: ProcessId, leadership: &Leadership) {
        let Watched { is, seen } = &mut self.processes[process];
        let failed = (u64::from(leadership.fencing_token()), is.clock.local_at(self.timeline.now));
        seen.failed = leadership.is_valid().then_some(failed);
    }

    /// Checks that the term is not renewed, and that a process that campaigns begins no other term in the cool-down.
    pub(super) fn check_failed_work(&mut self, process: ProcessId, sent: Sent) {
        let watched = &self.processes[process];
        let Some((token, at)) = watched.seen.failed else { return };
        let (Sent::Update { token: sent } | Sent::Create { token: sent } | Sent::Ask { token: sent }) = sent else {
            return;
        };
        let waited = watched.clock.local_at(self.now()).saturating_since(at);
        let what = match sent == token {
            true => format!("p{process} renews term {token} {waited:?} after its work has failed"),
            false if watched.campaigns && waited < watched.timings.lease && ended_by_failure(watched, token) => {
                format!("p{process} competes {waited:?} after the work of its term {token} has failed")
            }
            false => return,
        };
        self.timeline.violated(Property::FailedWorkEndsTerm, what);
    }
}
