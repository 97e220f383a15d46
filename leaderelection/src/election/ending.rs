//! Rules 8, 9 and 14: the end of a term. Leadership ends first, then the work, then the lease.

use std::mem::replace;

use super::effect::{Effect, Fact};
use super::input::{Command, WorkEnd};
use super::job::Job;
use super::machine::Election;
use super::phase::{Ended, Hold, Phase, Seen};
use super::reason::EndReason;
use crate::clock::LocalInstant;

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
        match &mut self.phase {
            Phase::Stopping { until, dropped, margin, .. } if now >= *until => {
                if replace(dropped, true) {
                    self.effects.push_back(Effect::Abandon);
                    self.conclude(now, false);
                } else {
                    // The work takes a moment to be dropped, counted from now: after a suspend, `until` is long past.
                    *until = now + *margin;
                    self.effects.push_back(Effect::DropWork);
                }
            }
            Phase::Releasing { give_up_at, .. } if now >= *give_up_at => {
                self.tell(Fact::ReleaseGivenUp);
                self.finish_release(now, |_| true);
            }
            _ => {}
        }
    }

    pub(super) fn on_command(&mut self, now: LocalInstant, command: Command) {
        match (command, &self.phase) {
            (Command::Stop, phase) => {
                self.stop_asked = true;
                match phase {
                    Phase::Leading(_) => self.end_term(EndReason::Cancelled, true),
                    Phase::Following | Phase::Won { .. } => self.stop_competing(now),
                    Phase::Releasing { .. } => self.hurry_if_asked_to_stop(now),
                    Phase::Idle | Phase::Stopping { .. } => {}
                }
            }
            (Command::StepDown, _) => self.end_term(EndReason::SteppedDown, true),
            (Command::TransferTo(to), _) => self.end_term(EndReason::Transferred { to }, true),
        }
    }

    /// Stops a candidacy without a term. A lease that was won, or may have been won, is released like any other.
    fn stop_competing(&mut self, now: LocalInstant) {
        let until = self.phase.hold().map(Hold::lease_until).or_else(|| self.may_hold_until());
        match (until, replace(&mut self.phase, Phase::Following)) {
            (Some(until), phase) if self.rules.release_on_cancel => {
                let held = if let Phase::Won { hold, .. } = phase { Some(hold) } else { None };
                self.begin_release(now, held, None, until);
            }
            (_, phase) => {
                self.phase = phase;
                self.finish(now, None);
            }
        }
    }

    pub(super) fn on_work_ended(&mut self, end: WorkEnd) {
        self.work_end = Some(end);
        if let Some(job) = &mut self.job
            && end == WorkEnd::Complete
        {
            job.succeeded();
        }
        match end {
            WorkEnd::Panicked => self.end_term(EndReason::WorkPanicked, true),
            WorkEnd::Failed => self.end_term(EndReason::WorkFailed, true),
            WorkEnd::Complete if self.ends_with_work => self.end_term(EndReason::WorkFinished, true),
            // The work's task found the window over, because of time or of a command. The command follows as an input.
            WorkEnd::NotBegun => self.end_term(EndReason::RenewDeadline, true),
            WorkEnd::Complete | WorkEnd::Dropped => {}
        }
    }

    /// Ends the term, if one has started. Leadership is over when the driver has carried out [`Effect::Stop`].
    /// `still_ours` is `true` if the record still names this candidate, as far as is known.
    pub(super) fn end_term(&mut self, reason: EndReason, still_ours: bool) {
        let mut hold = match replace(&mut self.phase, Phase::Following) {
            Phase::Leading(hold) => hold,
            other => {
                self.phase = other;
                return;
            }
        };
        if let EndReason::Transferred { to } = &reason {
            hold.name_successor(Some(to.clone()));
        }
        let fencing_token = hold.token;
        // This is shortly before the first moment at which another candidate may take the lease.
        let margin = hold.limits.stop_margin();
        let drop_by = hold.lease_until() - margin;
        self.effects.push_back(Effect::Stop { fencing_token, reason: reason.clone(), drop_by });
        let (held, ended) = (still_ours.then_some(hold), Ended { fencing_token, reason });
        self.phase = Phase::Stopping { held, ended, until: drop_by, dropped: false, margin };
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
        if let Phase::Stopping { ended, .. } = &self.phase
            && self.work_end.is_some()
        {
            // The lease carries the mark of a job, so the lease is given back even after a cancellation.
            let has_mark = self.job.as_ref().is_some_and(Job::has_succeeded);
            let releases = has_mark || ended.reason.releases(self.rules.release_on_cancel);
            self.conclude(now, releases);
        }
    }

    fn conclude(&mut self, now: LocalInstant, releases: bool) {
        let Phase::Stopping { held, ended, .. } = &mut self.phase else { return };
        let (ended, held) = (ended.clone(), held.take_if(|_| releases));
        match held {
            Some(hold) => {
                let until = hold.lease_until();
                self.begin_release(now, Some(hold), Some(ended), until);
            }
            None => self.finish(now, Some(ended)),
        }
    }

    /// Releases the lease (rule 9). Without a known version, a read must first show whether this candidate holds the
    /// lease. With a known version, the release replaces that version, so a renewal under way can no longer land.
    fn begin_release(&mut self, now: LocalInstant, held: Option<Hold>, ended: Option<Ended>, give_up_at: LocalInstant) {
        self.attempts.must_read = held.is_none();
        self.pacing.restart(now);
        self.phase = Phase::Releasing { held, ended, give_up_at };
        self.hurry_if_asked_to_stop(now);
        self.expire(now);
    }

    /// A process that is to end must not wait for a store that is away until a long lease has run out.
    fn hurry_if_asked_to_stop(&mut self, now: LocalInstant) {
        if let Phase::Releasing { give_up_at, .. } = &mut self.phase
            && self.stop_asked
        {
            *give_up_at = (*give_up_at).min(now + self.rules.release_patience);
        }
    }

    pub(super) fn on_released(&mut self, now: LocalInstant, written: Seen) {
        self.tell(Fact::Released);
        if let Some(job) = &mut self.job {
            job.released();
        }
        self.announce("");
        if let Phase::Releasing { held, .. } = &mut self.phase {
            *held = None;
        }
        self.remember_our_write(now, written);
        self.finish_release(now, |_| true);
    }

    /// Finishes if the lease is being released, and `is_over` returns `true` for the held lease: nothing is left to
    /// release.
    pub(super) fn finish_release(&mut self, now: LocalInstant, is_over: impl FnOnce(&Option<Hold>) -> bool) {
        if let Phase::Releasing { held, ended, .. } = &mut self.phase
            && is_over(held)
        {
            let ended = ended.take();
            self.finish(now, ended);
        }
    }
}
