//! Rule 22: new timings while the candidate runs.

use std::sync::Arc;

use leaderelection_protocol::policy::Jitter;

use super::machine::Election;
use super::rules::ElectionConfig;
use crate::clock::LocalInstant;
use crate::term::TermEndReason;

impl Election {
    /// Applies new settings. Shorter durations may end the term at once.
    pub(super) fn reconfigure(&mut self, now: LocalInstant, rules: Arc<ElectionConfig>, jitter: Jitter) {
        let before = std::mem::replace(&mut self.rules, rules);
        if before.durations() == self.rules.durations() {
            // Other settings apply from the next write on.
            return;
        }
        self.lease.set_limits(now, self.rules.limits());
        self.follow_lease(now, || TermEndReason::RenewDeadline);
        self.expire(now);
        if self.competes() {
            self.pacing.poll_by(now + self.rules.pace().poll_pause(jitter));
        }
    }
}
