//! Rules 8, 9 and 14: what ends a term or a candidacy, and the release of the lease afterwards.

use leaderelection_protocol::lease::Stage;

use super::effect::Fact;
use super::input::Command;
use super::machine::Election;
use crate::clock::LocalInstant;
use crate::term::{TermEndReason, WorkEnd};

impl Election {
    /// Ends what is over at `now`: the term, the wait for its work, or the release.
    pub(super) fn expire(&mut self, now: LocalInstant) {
        self.lease.tick(now);
        self.follow_lease(now, || TermEndReason::RenewDeadline);
        // If the work has already ended, the release begins at once.
        self.conclude_if_work_ended(now);
        if self.release_by.is_some_and(|give_up_at| now >= give_up_at) {
            self.emit(Fact::ReleaseGivenUp);
            self.give_up(now);
        }
    }

    pub(super) fn on_command(&mut self, now: LocalInstant, command: Command) {
        match command {
            Command::Stop => {
                self.stop_asked = true;
                match self.lease.stage() {
                    Stage::Leading => self.end_term(now, TermEndReason::Cancelled),
                    Stage::Candidate | Stage::Won if self.runs => self.stop_competing(now),
                    _ => self.shorten_release_if_asked_to_stop(now),
                }
            }
            Command::StepDown => self.end_term(now, TermEndReason::SteppedDown),
            Command::TransferTo(to) => self.end_term(now, TermEndReason::Transferred { to }),
        }
    }

    /// Stops a candidacy without a term. With `release_on_cancel`, a lease that was won, or may have been won, is released.
    fn stop_competing(&mut self, now: LocalInstant) {
        match self.lease.may_hold_until().filter(|_| self.rules.release_on_cancel) {
            Some(until) => {
                self.lease.withdraw(now);
                self.begin_release(now, until);
            }
            None => self.give_up(now),
        }
    }

    pub(super) fn on_work_ended(&mut self, now: LocalInstant, end: WorkEnd) {
        self.work_end = Some(end);
        self.lease.work_ended(now, end == WorkEnd::Complete);
        self.follow_lease(now, || TermEndReason::RenewDeadline);
        if let Some(reason) = end.ends_term(self.ends_with_work) {
            self.end_term(now, reason);
        }
    }

    /// Ends the term, if one has started. Leadership is over once the driver has carried out [`Effect::Stop`](super::Effect::Stop).
    pub(super) fn end_term(&mut self, now: LocalInstant, reason: TermEndReason) {
        let transfer_to = if let TermEndReason::Transferred { to } = &reason { Some(to.clone()) } else { None };
        self.lease.end_term(now, transfer_to);
        self.follow_lease(now, || reason.clone());
    }

    /// Hands over if a request in this leader's record asks for it (rule 14).
    pub(super) fn hand_over_if_asked(&mut self, now: LocalInstant) {
        let successor = self.lease.successor().filter(|_| self.lease.stage() == Stage::Leading);
        if let Some(to) = successor.cloned() {
            self.end_term(now, TermEndReason::Transferred { to });
            self.conclude_if_work_ended(now);
        }
    }

    /// Continues with the release as soon as the work of the term has ended (rule 8).
    pub(super) fn conclude_if_work_ended(&mut self, now: LocalInstant) {
        if !self.runs || self.lease.stage() != Stage::Over || self.release_by.is_some() {
            return;
        }
        // The release carries the mark of a job that has succeeded, so it is written even after a cancellation.
        let releases = self.lease.work_succeeded()
            || self.ended.as_ref().is_some_and(|ended| ended.1.releases(self.rules.release_on_cancel));
        match self.lease.own().and_then(|_| self.lease.may_hold_until()) {
            Some(until) if releases => self.begin_release(now, until),
            _ => self.give_up(now),
        }
    }

    /// Begins to release the lease (rule 9). If the version is known, the release replaces it, so no unanswered renewal can be committed
    /// afterwards. Otherwise, a read must first show whether this candidate holds the lease. The release is given up when the lease has
    /// expired.
    fn begin_release(&mut self, now: LocalInstant, lease_until: LocalInstant) {
        self.release_by = Some(lease_until);
        self.must_read = false;
        self.pacing.restart(now);
        self.shorten_release_if_asked_to_stop(now);
        self.expire(now);
    }

    /// Limits the time of a release after a request to stop: if the store is unavailable, a process must not have to wait for the end of a
    /// long lease before it exits.
    fn shorten_release_if_asked_to_stop(&mut self, now: LocalInstant) {
        if let (true, Some(release_by)) = (self.stop_asked, &mut self.release_by) {
            *release_by = (*release_by).min(now + self.rules.release_patience);
        }
    }

    /// Ends the release if a read has shown that the lease no longer belongs to this candidate.
    pub(super) fn leave_if_lost(&mut self, now: LocalInstant) {
        if self.lease.stage() == Stage::Over && self.lease.own().is_none() {
            self.give_up(now);
        }
    }

    /// Ends a candidacy whose term has not begun, if the lock shows that its job is done (rule 18).
    pub(super) fn finish_if_job_is_done(&mut self, now: LocalInstant) {
        let has_no_term = self.runs && matches!(self.lease.stage(), Stage::Candidate | Stage::Won);
        if has_no_term && self.lease.is_job_done() {
            self.give_up(now);
        }
    }
}
