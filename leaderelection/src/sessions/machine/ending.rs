//! Rule S6: the end of a term whose session continues, and the end of the work of any term.

use std::time::Duration;

use leaderelection_protocol::policy::back_off::BackOff;
use leaderelection_protocol::session::LockView;

use super::LockId;
use super::lock::{Job, Lock, Phase};
use super::member::Member;
use crate::clock::LocalInstant;
use crate::election::{Command, Effect, Fact};
use crate::lock::job::JobId;
use crate::term::{BeginReason, Ending, TermEndReason, Timeout, WorkEnd};

impl Member {
    /// Begins a candidacy: see [`Input::Compete`](super::Input::Compete).
    pub(super) fn compete(
        &mut self,
        now: LocalInstant,
        id: LockId,
        stand_back: Duration,
        ends_with_work: bool,
        job: Option<JobId>,
        one_attempt: bool,
    ) {
        let lists = self.lists_locks_instead_of_reading();
        let is_unknown = self.table.view(id.0) == LockView::Unknown;
        let Some(lock) = self.lock_mut(id) else { return };
        if lock.phase != Phase::Idle {
            return;
        }
        lock.phase = Phase::Competing;
        lock.ends_with_work = ends_with_work;
        lock.failures = BackOff::default();
        // A wait of an earlier candidacy continues. A single attempt that waited would end without a request.
        lock.not_before = if one_attempt { now } else { lock.not_before.max(now + stand_back) };
        (lock.work_end, lock.stop_asked) = (None, false);
        // One listing shows which locks do not exist, and costs less than a read of each. But it shows no job marks.
        lock.must_read |= one_attempt || job.is_some() || is_unknown && !lists;
        lock.read_failed &= !one_attempt;
        if let Some(job) = job {
            self.jobs.insert(id.0, Job { id: job, done: false });
        }
        if one_attempt {
            self.attempts.insert(id.0);
        }
        // The member has ended, so nothing else would ever end this candidacy.
        if self.stop_asked && self.own.is_none() {
            return self.finish(now, id);
        }
        if is_unknown && lists {
            self.poll_locks_soon(now);
        }
        self.begin_waits(now, id);
    }

    pub(super) fn on_command(&mut self, now: LocalInstant, id: LockId, command: Command) {
        match command {
            // While the member is leaving, `leave` or the end of the session releases each lock.
            Command::Stop if self.leaving.is_some() && self.lock(id).is_some_and(Lock::leads) => {}
            Command::Stop => self.stop_elector(now, id),
            Command::StepDown => self.end_term(now, id, TermEndReason::SteppedDown),
            Command::TransferTo(to) => self.end_term(now, id, TermEndReason::Transferred { to }),
        }
        self.plan(now, id);
    }

    /// Ends a candidacy. A lock that was won, or may have been won, is released.
    pub(super) fn stop_elector(&mut self, now: LocalInstant, id: LockId) {
        let may_be_ours = self.table.session_of_take(id.0).is_some() || self.is_ours(id);
        let lease_until = self.lease_until();
        let Some(lock) = self.lock_mut(id) else { return };
        lock.stop_asked = true;
        match (&lock.phase, lease_until) {
            (Phase::Leading { .. }, _) => self.end_term(now, id, TermEndReason::Cancelled),
            // A take that is committed later would give the lock to a live session that has no candidate for it.
            (Phase::Competing, Some(until)) if lock.in_doubt || may_be_ours => {
                lock.must_read |= lock.in_doubt;
                lock.phase = Phase::Ending(Box::new(Ending::of_candidacy(until)));
                self.set_ending_timer(now, id);
            }
            (Phase::Competing, _) => self.finish(now, id),
            (Phase::Ending(_), _) => self.set_ending_timer(now, id),
            (Phase::Idle, _) => {}
        }
    }

    /// The moment at which the session's lease would expire without further renewals. Rules 8 and 9 use this deadline
    /// for each lock, although the session is still renewed (rule S6).
    fn lease_until(&self) -> Option<LocalInstant> {
        self.window().map(|window| window.sent_at + self.rules.election.lease_duration)
    }

    /// Sets the timer for the next deadline in the end of a term. If a release is not committed at its deadline, only
    /// the caller stops waiting. The release is retried as long as the session lasts (rule S6).
    fn set_ending_timer(&mut self, now: LocalInstant, id: LockId) {
        let patience = self.rules.election.release_patience;
        let Some(lock) = self.lock_mut(id) else { return };
        let (Phase::Ending(ending), stop_asked) = (&mut lock.phase, lock.stop_asked) else { return };
        if stop_asked {
            ending.shorten_deadline(now + patience);
        }
        if let Some(at) = ending.deadline() {
            self.ending_deadlines.set(id.0, at);
        }
    }

    /// Ends the term of a lock whose session continues.
    pub(super) fn end_term(&mut self, now: LocalInstant, id: LockId, reason: TermEndReason) {
        let margin = self.rules.election.stop_margin();
        let (Some(lease_until), Some(lock)) = (self.lease_until(), self.lock_mut(id)) else { return };
        let Phase::Leading { token: fencing_token } = lock.phase else { return };
        let ending = Ending::of_term(fencing_token, reason.clone(), lease_until, margin);
        let drop_by = ending.drop_by();
        lock.phase = Phase::Ending(Box::new(ending));
        self.table.end_term(id.0);
        self.order(id, Effect::Stop { fencing_token, reason, drop_by });
        self.release_after_work(now, id);
    }

    /// Ends the term or the release of a lock that the session no longer holds.
    pub(super) fn lose(&mut self, now: LocalInstant, id: LockId, reason: TermEndReason) {
        let Some(lock) = self.lock(id) else { return };
        if lock.is_being_released() {
            self.finish(now, id);
        } else {
            self.end_term(now, id, reason);
        }
    }

    /// Begins the release once both the term and its work have ended, in either order (rule 8).
    fn release_after_work(&mut self, now: LocalInstant, id: LockId) {
        let (works, is_ours) = (self.table.work_of(id.0).is_some(), self.is_ours(id));
        let (Some(lease_until), Some(lock)) = (self.lease_until(), self.lock_mut(id)) else { return };
        let Phase::Ending(ending) = &mut lock.phase else { return };
        if works || !ending.awaits_work() {
            return self.set_ending_timer(now, id);
        }
        // Somebody else's record must not be released.
        if !is_ours {
            return self.finish(now, id);
        }
        ending.release(lease_until);
        // No earlier wait applies to the release: until it is committed, the lock blocks others.
        lock.not_before = now;
        self.set_ending_timer(now, id);
        self.plan(now, id);
    }

    pub(super) fn on_work_ended(&mut self, now: LocalInstant, id: LockId, end: WorkEnd) {
        let Some(lock) = self.locks.get_mut(id.0 as usize).filter(|_| self.table.work_of(id.0).is_some()) else {
            return;
        };
        lock.work_end = Some(end);
        let ends_term = end.ends_term(lock.ends_with_work);
        self.table.work_ended(id.0);
        match (&self.locks[id.0 as usize].phase, ends_term) {
            // Only the term ends; the session may continue.
            (Phase::Leading { .. }, Some(reason)) => self.end_term(now, id, reason),
            (Phase::Ending(_), _) => self.release_after_work(now, id),
            // This work was abandoned. While it ran, the lock could have no other term.
            (Phase::Competing, _) => self.follow_record(now, id, BeginReason::Released),
            _ => {}
        }
        self.begin_waits(now, id);
    }

    /// Drops work that has not stopped in time, abandons work that cannot be dropped (rule 8), and ends the wait for a release (rule 9).
    pub(super) fn drop_late_work(&mut self, now: LocalInstant) {
        while let Some(index) = self.ending_deadlines.pop_due(now) {
            let id = LockId(index);
            let Some(Phase::Ending(ending)) = self.lock_mut(id).map(|lock| &mut lock.phase) else { continue };
            match ending.pass(now) {
                None => {}
                Some(Timeout::Work) => {
                    self.order(id, Effect::DropWork);
                    self.set_ending_timer(now, id);
                }
                Some(Timeout::DroppedWork) => {
                    // The table still counts this work, so neither the lock nor the session is released while it runs.
                    self.order(id, Effect::Abandon);
                    self.finish(now, id);
                }
                Some(Timeout::Release) => {
                    self.order(id, Effect::Fact(Fact::ReleaseGivenUp));
                    self.finish(now, id);
                }
            }
        }
    }

    /// Drops the work of all terms, because their session is over.
    pub(super) fn drop_all_work(&mut self) {
        for index in self.locks_at_work() {
            self.order(LockId::of(index), Effect::DropWork);
        }
    }

    /// Abandons the work of all terms. The session is not released, because that work still runs.
    pub(super) fn abandon_all_work(&mut self) {
        for index in self.locks_at_work() {
            // The lock gets no other term until this work ends (rule 8), but a new session can open before that.
            self.order(LockId::of(index), Effect::Abandon);
        }
    }

    /// The locks whose work the session waits for.
    fn locks_at_work(&self) -> Vec<usize> {
        let own = self.own.as_ref().map(|own| &own.id);
        let is_of_own = |index: &usize| own.is_some() && self.table.work_of(LockId::of(*index).0) == own;
        (0..self.locks.len()).filter(is_of_own).collect()
    }

    /// Ends the term of a lock whose record asks for another leader (rule 14).
    pub(super) fn hand_over_if_asked(&mut self, now: LocalInstant, id: LockId) {
        let Some(lock) = self.lock(id) else { return };
        let successor = lock.prefers_other_than(&self.identity).filter(|_| lock.leads());
        if let Some(to) = successor.map(ToOwned::to_owned) {
            self.end_term(now, id, TermEndReason::Transferred { to });
        }
    }
}
