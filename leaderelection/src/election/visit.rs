//! Shows an election to a model checker, so that it treats states without a relevant difference as one.

use std::time::Duration;

use leaderelection_protocol::lease;
use leaderelection_protocol::policy::Visitor;

use super::machine::Election;
use crate::clock::LocalInstant;
use crate::lock::record::LeaderElectionRecord;

impl Election {
    /// Shows every moment to `visitor`, which may replace it.
    pub fn visit(&mut self, visitor: &mut impl Visitor) {
        let rank_wait = self.rank_wait();
        self.lease.visit(&mut OfKernel(visitor, self.wait.spread + rank_wait));
        self.doubts.retain(|id| visitor.may_commit(id));
        self.pacing.visit(visitor);
        if let Some(preferred_until) = &mut self.wait.preferred_until {
            visit_wait(preferred_until, rank_wait, visitor);
        }
        self.failback_delay.visit(visitor);
        if let Some(peer_feed) = &mut self.peer_feed {
            peer_feed.visit(visitor);
        }
        self.release_by.iter_mut().chain(&mut self.forgets_at).for_each(|at| visitor.timer(at));
    }
}

/// Shows a moment after which the candidate waits for `further`. For the visitor, the timer is the end of this wait.
fn visit_wait(moment: &mut LocalInstant, further: Duration, visitor: &mut impl Visitor) {
    let mut timer = *moment + further;
    visitor.timer(&mut timer);
    *moment = timer - further;
}

/// Shows the moments of the kernel. The duration is how long the candidate waits after another's lease has expired.
pub(crate) struct OfKernel<'a, V>(pub(crate) &'a mut V, pub(crate) Duration);

impl<V: Visitor> lease::Visitor<LeaderElectionRecord> for OfKernel<'_, V> {
    fn expiry(&mut self, at: &mut LocalInstant) {
        visit_wait(at, self.1, self.0);
    }

    fn timer(&mut self, at: &mut LocalInstant) {
        self.0.timer(at);
    }

    fn moment(&mut self, at: &mut LocalInstant) {
        self.0.moment(at);
    }

    fn may_commit(&mut self, id: &String) -> bool {
        self.0.may_commit(id)
    }
}
