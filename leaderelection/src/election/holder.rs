//! Rules 5 and 6: a holder checks that the lease is still its own.

use std::time::Duration;

use leaderelection_protocol::record::is_same_write;

use super::input::Jitter;
use super::machine::Election;
use super::phase::{Phase, Seen, Sight};
use crate::clock::LocalInstant;
use crate::term::EndReason;

impl Election {
    /// Handles a read by a holder. The object shows the holder's last write, or another process's.
    pub(super) fn on_read_while_holding(
        &mut self,
        now: LocalInstant,
        found: Option<Seen>,
        age: Duration,
        jitter: Jitter,
    ) {
        match (self.phase.hold_mut(), &found) {
            (Some(hold), Some(found)) if hold.seen.version == found.version => {
                self.attempts.forget_old(now);
                return self.pacing.write_again(&self.rules, now, jitter);
            }
            (Some(hold), Some(found)) if is_same_write(&*found.record, &*hold.seen.record) => {
                hold.annotate(found);
                // The unanswered writes name a version that no longer exists, so none of them can land. The pause after the
                // last one stays, because this may be a part of it (M7).
                return self.give_up_attempts();
            }
            _ => {}
        }
        let reason = EndReason::of_loss(found.as_ref().map(|found| &*found.record));
        self.lose(now, reason);
        self.see(now, found, age, jitter);
        self.finish_if_released(now);
    }

    /// Takes a read that showed an object that is not a record. Such an object must not be overwritten.
    pub(super) fn on_unreadable_while_holding(&mut self, now: LocalInstant) {
        self.lose(now, EndReason::Unreadable);
        self.finish_if_released(now);
    }

    /// Ends every use of the lease, which belongs to another holder now.
    fn lose(&mut self, now: LocalInstant, reason: EndReason) {
        self.give_up_attempts();
        // If the object has vanished, rule 3 makes this candidate wait for the end of its own lease. If the record comes
        // back, the candidate that it names goes first (rule 14).
        if let Some(hold) = self.phase.hold() {
            let found = hold.seen.clone();
            let lease_until = (hold.sent_at + found.record.lease_duration).max(now);
            let courtesy_until = self.courtesy(&found.record).map(|courtesy| lease_until + courtesy);
            self.sight = Some(Sight { found: Some(found), lease_until, courtesy_until });
        }
        match &mut self.phase {
            Phase::Won { .. } => self.phase = Phase::Following,
            Phase::Leading(_) => self.end_term(reason, false),
            Phase::Ending { held, .. } => *held = None,
            Phase::Idle | Phase::Following => {}
        }
    }
}
