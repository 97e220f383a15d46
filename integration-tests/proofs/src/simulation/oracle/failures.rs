//! The check of work that failed: its term is over, and others go first (rule 21).

use leaderelection::clock::LocalInstant;
use leaderelection::handle::Change;
use leaderelection::{EndReason, Leadership};

use super::{Oracle, Property, Watched};
use crate::simulation::clock::TrueTime;
use crate::simulation::timeline::{ProcessId, Sent};

/// A term whose work has failed while the term was valid.
#[derive(Clone, Copy, Debug)]
pub(super) struct Failed {
    token: u64,
    at: LocalInstant,
}

/// Returns `true` if the elector knew of the failure before the term was over for another reason.
fn ended_by_failure(watched: &Watched, token: u64) -> bool {
    watched.handle.transitions().into_iter().any(|transition| {
        let change = transition.change;
        matches!(change, Change::StoppedLeading { fencing_token, reason: EndReason::WorkFailed } if fencing_token == token)
    })
}

impl Oracle {
    /// Records that the work of a term is about to return an error.
    pub(in crate::simulation) fn work_failed(&mut self, now: TrueTime, process: ProcessId, leadership: &Leadership) {
        let watched = &mut self.processes[process];
        let failed = Failed { token: leadership.fencing_token(), at: watched.clock.local_at(now) };
        watched.failed = leadership.is_valid().then_some(failed);
    }

    /// Checks that the term is not renewed, and that a process that campaigns begins no other term in the cool-down.
    pub(super) fn check_failed_work(&mut self, now: TrueTime, process: ProcessId, sent: Sent) {
        let watched = &self.processes[process];
        let (
            Some(Failed { token, at }),
            Sent::Update { token: sent } | Sent::Create { token: sent } | Sent::Ask { token: sent },
        ) = (watched.failed, sent)
        else {
            return;
        };
        let waited = watched.clock.local_at(now).saturating_since(at);
        let what = match sent == token {
            true => format!("p{process} renews term {token} {waited:?} after its work has failed"),
            false if watched.campaigns && waited < watched.timings.lease && ended_by_failure(watched, token) => {
                format!("p{process} competes {waited:?} after the work of its term {token} has failed")
            }
            false => return,
        };
        self.violated(now, Property::FailedWorkEndsTerm, what);
    }
}
