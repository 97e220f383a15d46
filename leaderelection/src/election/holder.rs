//! Rules 5, 6, 8 and 9: keep the lease, notice its loss, give it back.

use super::{Election, EndReason, Event, Hold, Jitter, Phase, Rules, Stamp};
use crate::clock::LocalInstant;
use crate::lock::VersionedRecord;
use crate::record::{LeaderElectionRecord, RELEASED_LEASE};

impl Election {
    /// A read that showed no write of ours but the last one that is known, or somebody else's.
    pub(super) fn on_read_while_holding(&mut self, now: LocalInstant, found: Option<VersionedRecord>, jitter: Jitter) {
        let held = match &mut self.phase {
            Phase::Holding(hold) => Some(hold),
            Phase::Stopping { held, .. } | Phase::Releasing { held, .. } => held.as_mut(),
            Phase::Idle | Phase::Following => None,
        };
        match (held, &found) {
            (Some(hold), Some(found)) if hold.version == found.version => {
                self.write_after = now + self.back_off(jitter, None);
                return;
            }
            (Some(hold), Some(found)) if hold.is_annotated_by(&found.record) => {
                hold.annotate(found.clone());
                // Nothing of ours can replace the version that this one replaced.
                self.attempts.clear();
                self.write_after = now;
                return;
            }
            _ => {}
        }
        let reason = match &found {
            None => EndReason::Deleted,
            Some(found) if found.record.is_released() => EndReason::Emptied,
            Some(found) => EndReason::TakenOver { by: found.record.holder_identity.clone() },
        };
        self.attempts.clear();
        self.remember_own_lease(now);
        self.see(now, found, jitter);
        self.not_ours_any_more(now, reason);
    }

    /// What the object was before somebody else changed it: a lease of ours, to be waited out by rule 3
    /// should the object have vanished.
    pub(super) fn remember_own_lease(&mut self, now: LocalInstant) {
        if let Phase::Holding(hold)
        | Phase::Stopping { held: Some(hold), .. }
        | Phase::Releasing { held: Some(hold), .. } = &self.phase
        {
            let found = Some(VersionedRecord { record: hold.record.clone(), version: hold.version.clone() });
            let free_at = (hold.sent_at + hold.record.lease_duration).max(now);
            self.sight = Some(super::Sight { found, free_at });
        }
    }

    /// The lease is somebody else's: whatever we were doing with it is over.
    pub(super) fn not_ours_any_more(&mut self, now: LocalInstant, reason: EndReason) {
        self.attempts.clear();
        match &mut self.phase {
            Phase::Holding(_) => self.lose(reason, false),
            Phase::Stopping { held, .. } => *held = None,
            Phase::Releasing { held, .. } => {
                *held = None;
                self.rest(now);
            }
            Phase::Idle | Phase::Following => {}
        }
    }

    /// Ends a hold. `still_ours` if the record still names us, as far as is known.
    pub(super) fn lose(&mut self, reason: EndReason, still_ours: bool) {
        let Phase::Holding(mut hold) = std::mem::replace(&mut self.phase, Phase::Following) else { return };
        if let EndReason::Transferred { to } = &reason {
            hold.record.preferred_holder = Some(to.clone());
        }
        let (started, fencing_token) = (hold.started, hold.token);
        let stop_by = if started { self.stop_work_by(&hold) } else { hold.sent_at };
        if started || still_ours {
            self.phase = Phase::Stopping { held: still_ours.then_some(hold), stop_by };
        }
        if started {
            self.events.push_back(Event::Stopped { fencing_token, reason });
        }
    }

    /// Rule 14: ends the term if the record asks for another leader.
    pub(super) fn hand_over_if_asked(&mut self) {
        if let Phase::Holding(hold) = &self.phase
            && hold.started
            && let Some(to) = hold.record.prefers_other_than(&self.rules.identity)
        {
            let to = to.to_owned();
            self.lose(EndReason::Transferred { to }, true);
        }
    }

    /// Shortly before the first moment at which another may take the lease.
    fn stop_work_by(&self, hold: &Hold) -> LocalInstant {
        hold.sent_at + self.rules.lease_duration - self.rules.stop_margin()
    }

    pub(super) fn on_released(&mut self, now: LocalInstant, written: VersionedRecord) {
        self.phase = Phase::Idle;
        self.rest(now);
        let free_at = now + self.courtesy(&written.record);
        self.sight = Some(super::Sight { found: Some(written), free_at });
        self.events.push_back(Event::Released);
        self.announce("");
    }
}

impl Hold {
    pub(super) fn renew(&mut self, newer: Hold) {
        let started = self.started;
        *self = Hold { started, ..newer };
    }

    /// Takes over a newer write of a term that is ending, but keeps who is to lead next.
    pub(super) fn replace(held: &mut Option<Hold>, mut newer: Hold) {
        if let Some(preferred) = held.take().and_then(|hold| hold.record.preferred_holder) {
            newer.record.preferred_holder = Some(preferred);
        }
        *held = Some(newer);
    }

    /// Whether `record` is our last write, with nothing changed but who is to lead next (rule 14), and what
    /// others keep in fields of their own.
    fn is_annotated_by(&self, record: &LeaderElectionRecord) -> bool {
        // The times are not compared: JSON keeps fewer digits of them.
        record.write_id.is_some()
            && record.write_id == self.record.write_id
            && record.holder_identity == self.record.holder_identity
            && record.leader_transitions == self.token
            && record.lease_duration == self.record.lease_duration
    }

    /// Takes over what [`is_annotated_by`](Self::is_annotated_by) allows to. A wish of ours goes first.
    fn annotate(&mut self, annotated: VersionedRecord) {
        self.version = annotated.version;
        self.record.unknown = annotated.record.unknown;
        let ours = self.record.preferred_holder.take();
        self.record.preferred_holder = ours.or(annotated.record.preferred_holder);
    }

    pub(super) fn renewed(&self, rules: &Rules, stamp: &Stamp) -> LeaderElectionRecord {
        LeaderElectionRecord {
            holder_identity: rules.identity.clone(),
            lease_duration: rules.lease_duration,
            acquire_time: self.record.acquire_time,
            renew_time: Some(stamp.time),
            leader_transitions: self.token,
            write_id: Some(stamp.write_id.clone()),
            preferred_holder: self.record.prefers_other_than(&rules.identity).map(str::to_owned),
            unknown: self.record.unknown.clone(),
        }
    }

    pub(super) fn released(&self, stamp: &Stamp) -> LeaderElectionRecord {
        LeaderElectionRecord {
            holder_identity: String::new(),
            lease_duration: RELEASED_LEASE,
            acquire_time: Some(stamp.time),
            renew_time: Some(stamp.time),
            leader_transitions: self.token,
            write_id: Some(stamp.write_id.clone()),
            preferred_holder: self.record.preferred_holder.clone(),
            unknown: self.record.unknown.clone(),
        }
    }
}
