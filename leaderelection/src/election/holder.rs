//! Rules 5 and 6: find out whether the lease is still ours.

use super::input::Jitter;
use super::machine::Election;
use super::phase::{Phase, Sight, is_annotation};
use super::reason::EndReason;
use crate::clock::LocalInstant;
use crate::lock::VersionedRecord;

impl Election {
    /// Takes a read that showed no write of ours but the last one that is known, or somebody else's.
    pub(super) fn on_read_while_holding(&mut self, now: LocalInstant, found: Option<VersionedRecord>, jitter: Jitter) {
        match (self.phase.hold_mut(), &found) {
            (Some(hold), Some(found)) if hold.version == found.version => {
                self.attempts.forget_old(now, self.rules.lease_duration);
                return self.pacing.write_again(&self.rules, now, jitter);
            }
            (Some(hold), Some(found)) if is_annotation(&found.record, &hold.record) => {
                hold.annotate(found.clone());
                // Nothing of ours can replace the version that this one replaced.
                self.give_up_attempts();
                return self.pacing.write_at_once(now);
            }
            _ => {}
        }
        let reason = match &found {
            None => EndReason::Deleted,
            Some(found) if found.record.is_released() => EndReason::Emptied,
            Some(found) => EndReason::TakenOver { by: found.record.holder_identity.clone() },
        };
        self.lose(now, reason);
        self.see(now, found, jitter);
        self.finish_release(now, |held| held.is_none());
    }

    /// The object is no record any more. It is not to be written over.
    pub(super) fn on_unreadable_while_holding(&mut self, now: LocalInstant) {
        self.lose(now, EndReason::Unreadable);
        self.finish_release(now, |held| held.is_none());
    }

    /// The lease is somebody else's: whatever we were doing with it is over.
    fn lose(&mut self, now: LocalInstant, reason: EndReason) {
        self.give_up_attempts();
        // Should the object have vanished, our own lease is waited out by rule 3.
        if let Some(hold) = self.phase.hold() {
            let found = VersionedRecord { record: hold.record.clone(), version: hold.version.clone() };
            let lease_until = (hold.sent_at + hold.record.lease_duration).max(now);
            self.sight = Some(Sight::new(Some(found), lease_until));
        }
        match &mut self.phase {
            Phase::Won { .. } => self.phase = Phase::Following,
            Phase::Leading(_) => self.end_term(reason, false),
            Phase::Stopping { held, .. } | Phase::Releasing { held, .. } => *held = None,
            Phase::Idle | Phase::Following => {}
        }
    }
}
