//! Rules 8, 9 and 14: what ends a term or a candidacy, and the lease that is left of it. The [`Ending`] has the order.

use std::mem::replace;

use super::effect::{Effect, Fact};
use super::input::Command;
use super::job::Job;
use super::machine::Election;
use super::phase::{Hold, Phase, Seen};
use crate::clock::LocalInstant;
use crate::term::{EndReason, Ending, Late, WorkEnd};

impl Election {
    /// Ends the term, the wait for its work, or the release, if its time is over.
    pub(super) fn expire(&mut self, now: LocalInstant) {
        if let Phase::Leading(hold) = &self.phase
            && now >= hold.valid_until()
        {
            self.end_term(EndReason::RenewDeadline, true);
            // Work that has ended already needs no time to stop.
            self.conclude_if_work_ended(now);
        }
        let Phase::Ending { ending, .. } = &mut self.phase else { return };
        match ending.pass(now) {
            None => {}
            Some(Late::Work) => self.effects.push_back(Effect::DropWork),
            Some(Late::DroppedWork) => {
                self.effects.push_back(Effect::Abandon);
                // The work may run on beside any other term, so the lease is kept as long as it lasts.
                self.finish(now);
            }
            Some(Late::Release) => {
                self.tell(Fact::ReleaseGivenUp);
                self.finish(now);
            }
        }
    }

    pub(super) fn on_command(&mut self, now: LocalInstant, command: Command) {
        match (command, &self.phase) {
            (Command::Stop, phase) => {
                self.stop_asked = true;
                match phase {
                    Phase::Leading(_) => self.end_term(EndReason::Cancelled, true),
                    Phase::Following | Phase::Won { .. } => self.stop_competing(now),
                    Phase::Ending { .. } => self.hurry_if_asked_to_stop(now),
                    Phase::Idle => {}
                }
            }
            (Command::StepDown, _) => self.end_term(EndReason::SteppedDown, true),
            (Command::TransferTo(to), _) => self.end_term(EndReason::Transferred { to }, true),
        }
    }

    /// Stops a candidacy without a term. A lease that was won, or may have been won, is released like any other.
    fn stop_competing(&mut self, now: LocalInstant) {
        let until = self.phase.hold().map(Hold::lease_until).or_else(|| self.may_hold_until());
        match until.filter(|_| self.rules.release_on_cancel) {
            Some(until) => {
                self.shadow.withdraw();
                let phase = replace(&mut self.phase, Phase::Following);
                let held = if let Phase::Won { hold, .. } = phase { Some(hold) } else { None };
                self.phase = Phase::Ending { held, ending: Box::new(Ending::of_candidacy(until)) };
                self.begin_release(now);
            }
            None => self.finish(now),
        }
    }

    pub(super) fn on_work_ended(&mut self, end: WorkEnd) {
        self.shadow.work_ended(end);
        self.work_end = Some(end);
        if let Some(job) = &mut self.job
            && end == WorkEnd::Complete
        {
            job.succeeded();
        }
        if let Some(reason) = end.ends_term(self.ends_with_work) {
            self.end_term(reason, true);
        }
    }

    /// Ends the term, if one has started. Leadership is over when the driver has carried out [`Effect::Stop`].
    /// `still_ours` is `true` if the record still names this candidate, as far as is known.
    pub(super) fn end_term(&mut self, reason: EndReason, still_ours: bool) {
        let Phase::Leading(hold) = &self.phase else { return };
        let mut hold = hold.clone();
        self.shadow.end_term(&reason);
        if let EndReason::Transferred { to } = &reason {
            hold.name_successor(Some(to.clone()));
        }
        let fencing_token = hold.token;
        let (lease_until, margin) = (hold.lease_until(), hold.limits.stop_margin());
        let ending = Box::new(Ending::of_term(fencing_token, reason.clone(), lease_until, margin));
        self.effects.push_back(Effect::Stop { fencing_token, reason, drop_by: ending.drop_by() });
        self.phase = Phase::Ending { held: still_ours.then_some(hold), ending };
    }

    /// Ends the term if the record asks for another leader (rule 14).
    pub(super) fn hand_over_if_asked(&mut self, now: LocalInstant) {
        if let Phase::Leading(hold) = &self.phase
            && let Some(to) = hold.seen.record.prefers_other_than(&self.rules.identity)
        {
            let to = to.to_owned();
            self.end_term(EndReason::Transferred { to }, true);
            self.conclude_if_work_ended(now);
        }
    }

    /// Continues with the release as soon as the work of the term has ended (rule 8).
    pub(super) fn conclude_if_work_ended(&mut self, now: LocalInstant) {
        let Phase::Ending { held, ending } = &mut self.phase else { return };
        if !ending.awaits_work() || self.work_end.is_none() {
            return;
        }
        // The lease carries the mark of a job, so the lease is given back even after a cancellation.
        let has_mark = self.job.as_ref().is_some_and(Job::has_succeeded);
        let releases = has_mark || ending.reason().is_some_and(|reason| reason.releases(self.rules.release_on_cancel));
        match held {
            Some(hold) if releases => {
                ending.release(hold.lease_until());
                self.begin_release(now);
            }
            _ => self.finish(now),
        }
    }

    /// Begins to release the lease (rule 9). Without a known version, a read must first show whether this candidate holds
    /// the lease. With a known version, the release replaces that version, so a renewal under way can no longer land.
    fn begin_release(&mut self, now: LocalInstant) {
        self.attempts.must_read = self.phase.hold().is_none();
        self.pacing.restart(now);
        self.hurry_if_asked_to_stop(now);
        self.expire(now);
    }

    fn hurry_if_asked_to_stop(&mut self, now: LocalInstant) {
        if let Phase::Ending { ending, .. } = &mut self.phase
            && self.stop_asked
        {
            ending.hurry(now + self.rules.release_patience);
        }
    }

    pub(super) fn on_released(&mut self, now: LocalInstant, written: Seen) {
        self.tell(Fact::Released);
        if let Some(job) = &mut self.job {
            job.released();
        }
        self.announce("");
        if let Phase::Ending { held, .. } = &mut self.phase {
            *held = None;
        }
        self.remember_our_write(now, written);
        self.finish_if_released(now);
    }

    /// Finishes if the lease is being released, and is not this candidate's any more.
    pub(super) fn finish_if_released(&mut self, now: LocalInstant) {
        if let Phase::Ending { held: None, ending } = &self.phase
            && ending.is_release()
        {
            self.finish(now);
        }
    }
}
