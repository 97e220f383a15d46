//! Rules S6 and S9: the end of a term whose session continues, and the end of the work of any term.

use std::time::Duration;

use super::LockId;
use super::effect::{Effect, Fact};
use super::lock::{Phase, Seen, Stopping};
use super::member::{Housekeeping, Member};
use super::ranking;
use crate::clock::LocalInstant;
use crate::election::{BeginReason, Command, EndReason, RunOutcome, WorkEnd};

impl Member {
    pub(super) fn compete(&mut self, now: LocalInstant, id: LockId, stand_back: Duration, ends_with_work: bool) {
        let lists = self.lists_locks_instead_of_reading();
        let Some(lock) = self.lock_mut(id) else { return };
        if lock.phase != Phase::Idle {
            return;
        }
        lock.phase = Phase::Competing;
        lock.ends_with_work = ends_with_work;
        lock.failures = 0;
        // A wait that has begun goes on, although the candidacy is a new one.
        lock.not_before = lock.not_before.max(now + stand_back);
        (lock.work_missed, lock.stop_asked) = (false, false);
        let is_unknown = matches!(lock.seen, Seen::Unknown);
        // One listing shows which of thousands of locks are free, where a read for each would cost more.
        lock.must_read |= is_unknown && !lists;
        // The member has ended, and nothing would ever answer this candidacy.
        if self.stop_asked && self.own.is_none() {
            return self.finish(now, id, RunOutcome::NeverLed);
        }
        if is_unknown && lists {
            self.look_at_locks_soon(now);
        }
        self.freed(now, id);
    }

    pub(super) fn on_command(&mut self, now: LocalInstant, id: LockId, command: Command) {
        match command {
            Command::Stop => self.stop_elector(now, id),
            Command::StepDown => self.end_term(now, id, EndReason::SteppedDown, true),
            Command::TransferTo(to) => self.end_term(now, id, EndReason::Transferred { to }, true),
        }
        self.plan(now, id);
    }

    /// Ends a candidacy. A lock that was won, or may have been won, is released.
    fn stop_elector(&mut self, now: LocalInstant, id: LockId) {
        let takes = self.flights.get(&id.0).is_some_and(super::flight::Flight::takes);
        let is_open = self.window().is_some();
        let Some(lock) = self.lock_mut(id) else { return };
        lock.stop_asked = true;
        match lock.phase {
            Phase::Leading { .. } => self.end_term(now, id, EndReason::Cancelled, true),
            // A write that may still land would leave the lock to a session that lives on without a candidate for it.
            Phase::Competing if is_open && (takes || lock.in_doubt || matches!(lock.seen, Seen::Ours { .. })) => {
                lock.must_read |= lock.in_doubt;
                lock.phase = Phase::Releasing(Box::new(RunOutcome::NeverLed));
                self.limit_release(now, id);
            }
            Phase::Competing => self.finish(now, id, RunOutcome::NeverLed),
            Phase::Releasing(_) => self.limit_release(now, id),
            _ => {}
        }
    }

    /// Sets the deadline at which the caller of a release returns (rule 9). The release continues in the background,
    /// for as long as the session lasts.
    fn limit_release(&mut self, now: LocalInstant, id: LockId) {
        let (lease, patience) = (self.rules.election.lease_duration, self.rules.election.release_patience);
        let (Some(window), Some(lock)) = (self.window(), self.lock(id)) else { return };
        // Rule 9 for a lock: the caller waits no longer than for a lease that is not renewed any more.
        let runs_out = window.sent_at + lease;
        let give_up_at = if lock.stop_asked { runs_out.min(now + patience) } else { runs_out };
        self.drop_by.hurry(id.0, give_up_at);
    }

    /// Ends the term of a lock whose session continues. `held` is `true` if the record still names the session, as far
    /// as is known.
    pub(super) fn end_term(&mut self, now: LocalInstant, id: LockId, reason: EndReason, held: bool) {
        let rules = &self.rules.election;
        let (lease, margin) = (rules.lease_duration, rules.stop_margin());
        let Some(window) = self.window() else { return };
        let Some(lock) = self.lock_mut(id) else { return };
        let Phase::Leading { token } = lock.phase else { return };
        // Counted from the session's last renewal, although the session is renewed on: rule 8 holds for the work of
        // each lock (rule S6).
        let drop_by = window.sent_at + lease - margin;
        lock.phase = Phase::Stopping(Box::new(Stopping { token, reason: reason.clone(), held, dropped: false }));
        let works = lock.works;
        self.effects.push_back(Effect::Stop { lock: id, fencing_token: token, reason, drop_by });
        // The work may have ended before its term did.
        if works {
            self.drop_by.set(id.0, drop_by);
        } else {
            self.conclude(now, id);
        }
    }

    /// Ends every use of a lock that another holder has now, or none.
    pub(super) fn lose(&mut self, now: LocalInstant, id: LockId, reason: EndReason) {
        let Some(lock) = self.lock_mut(id) else { return };
        match &mut lock.phase {
            Phase::Leading { .. } => self.end_term(now, id, reason, false),
            // Somebody else's record must not be released.
            Phase::Stopping(stopping) => stopping.held = false,
            Phase::Releasing(outcome) => {
                let outcome = (**outcome).clone();
                self.finish(now, id, outcome);
            }
            Phase::Idle | Phase::Competing | Phase::Ended(_) => {}
        }
    }

    /// Continues with the release, because the work of the term has ended (rule 8).
    fn conclude(&mut self, now: LocalInstant, id: LockId) {
        self.drop_by.cancel(&id.0);
        let Some(lock) = self.lock_mut(id) else { return };
        let Phase::Stopping(stopping) = &lock.phase else { return };
        let outcome = RunOutcome::Led { fencing_token: stopping.token, reason: stopping.reason.clone() };
        if stopping.held {
            lock.phase = Phase::Releasing(Box::new(outcome));
            // The waits before this were a candidate's. A release that waits keeps others from the lock.
            lock.not_before = now;
            self.limit_release(now, id);
            self.plan(now, id);
        } else {
            self.finish(now, id, outcome);
        }
    }

    pub(super) fn on_work_ended(&mut self, now: LocalInstant, id: LockId, end: WorkEnd) {
        let Some(lock) = self.lock_mut(id) else { return };
        if !std::mem::take(&mut lock.works) {
            return;
        }
        let (was_forsaken, ends_with_work) = (std::mem::take(&mut lock.forsaken), lock.ends_with_work);
        // Work that was given up with its session was taken from the count then.
        self.at_work -= usize::from(!was_forsaken);
        self.locks[id.0 as usize].work_missed = end == WorkEnd::NotBegun;
        match (end, &self.locks[id.0 as usize].phase) {
            (WorkEnd::Panicked, Phase::Leading { .. }) => self.end_term(now, id, EndReason::WorkPanicked, true),
            (WorkEnd::Failed, Phase::Leading { .. }) => self.end_term(now, id, EndReason::WorkFailed, true),
            // The work's task found the window closed, and the session may be renewed on: the term ends alone (rule
            // 12).
            (WorkEnd::NotBegun, Phase::Leading { .. }) => self.end_term(now, id, EndReason::RenewDeadline, true),
            (WorkEnd::Complete, Phase::Leading { .. }) if ends_with_work => {
                self.end_term(now, id, EndReason::WorkFinished, true);
            }
            (_, Phase::Stopping(_)) => self.conclude(now, id),
            // Work that nobody waited for kept the lock from its next term.
            (_, Phase::Competing) => self.settle(now, id, BeginReason::Released),
            _ => {}
        }
        self.freed(now, id);
    }

    /// Drops work that has not stopped in time, gives up work that cannot be dropped (rule 8), and ends the wait for a
    /// release (rule 9).
    pub(super) fn drop_late_work(&mut self, now: LocalInstant) {
        let margin = self.rules.election.stop_margin();
        while let Some(index) = self.drop_by.pop_due(now) {
            let id = LockId(index);
            let Some(lock) = self.lock_mut(id) else { continue };
            match &mut lock.phase {
                Phase::Stopping(stopping) if stopping.dropped => {
                    let outcome = RunOutcome::Led { fencing_token: stopping.token, reason: stopping.reason.clone() };
                    // The session still waits for this work: the lock is not released while the work runs.
                    self.effects.push_back(Effect::Abandon { lock: id });
                    self.finish(now, id, outcome);
                }
                Phase::Stopping(stopping) => {
                    stopping.dropped = true;
                    // From now and not from the moment that was due: after a suspend, that may be long past.
                    self.drop_by.set(index, now + margin);
                    self.effects.push_back(Effect::DropWork { lock: id });
                }
                Phase::Releasing(outcome) => {
                    let outcome = (**outcome).clone();
                    self.tell(Fact::ReleaseGivenUp { lock: id });
                    self.finish(now, id, outcome);
                }
                _ => {}
            }
        }
    }

    /// Drops the work of all terms, because their session is over.
    pub(super) fn drop_all_work(&mut self) {
        for (index, _) in self.locks.iter().enumerate().filter(|(_, lock)| lock.works && !lock.forsaken) {
            self.effects.push_back(Effect::DropWork { lock: LockId::of(index) });
        }
    }

    /// Gives up the work of all terms. The session is not released, because that work runs.
    pub(super) fn forsake_all_work(&mut self) {
        self.at_work = 0;
        for (index, lock) in self.locks.iter_mut().enumerate().filter(|(_, lock)| lock.works && !lock.forsaken) {
            // Its lock gets no other term before it ends (rule 8), but a new session need not wait for it.
            lock.forsaken = true;
            self.effects.push_back(Effect::Abandon { lock: LockId::of(index) });
        }
    }

    /// Ends the term of a lock whose record asks for another leader (rule 14).
    pub(super) fn hand_over_if_asked(&mut self, now: LocalInstant, id: LockId) {
        let Some(lock) = self.lock(id) else { return };
        if matches!((&lock.phase, &lock.seen), (Phase::Leading { .. }, Seen::Ours { .. }))
            && let Some(to) = lock.prefers_other_than(&self.identity)
        {
            let to = to.to_owned();
            self.end_term(now, id, EndReason::Transferred { to }, true);
        }
    }

    /// Begins to look for locks to hand over, and plans the next look for the member that settles next.
    pub(super) fn balance(&mut self, now: LocalInstant) {
        self.examine = Some(0);
        let lease = self.rules.election.lease_duration;
        // A member that is too young now is looked at again when it has lived for a lease.
        let settling = self.peers.values().filter(|peer| peer.is_member()).map(|peer| peer.settles_at(lease));
        if let Some(at) = settling.filter(|at| *at > now).min() {
            self.housekeeping.set(Housekeeping::Balance, at);
        }
    }

    /// Hands over the locks for which another member is first in rank, a few at a time (rule S9).
    pub(super) fn hand_over(&mut self, now: LocalInstant) {
        while let Some(index) = self.examine {
            // A lock has no leader while it moves, so only a few move at a time.
            if self.window().is_none() || self.handing_over.len() >= self.rules.hand_overs {
                return;
            }
            let id = LockId(index);
            let Some(lock) = self.lock(id) else {
                self.examine = None;
                return;
            };
            let (leads, hash) = (matches!(lock.phase, Phase::Leading { .. }), lock.hash);
            self.examine = Some(index + 1);
            if leads && let Some(to) = self.first_in_rank(now, hash) {
                self.handing_over.insert(index);
                self.end_term(now, id, EndReason::Transferred { to }, true);
            }
        }
    }

    /// The first in rank for a lock, if it is another member that has lived for a lease.
    fn first_in_rank(&self, now: LocalInstant, lock: u64) -> Option<String> {
        let lease = self.rules.election.lease_duration;
        let own = (ranking::score(self.identity_hash, self.rules.weight, lock), &*self.identity);
        // A process that crashes again and again would otherwise get locks each time, and lose them for a lease.
        let settled = self.peers.values().filter(|peer| peer.is_member() && peer.settles_at(lease) <= now);
        let scores = settled.map(|peer| {
            (ranking::score(peer.identity_hash, peer.weight, lock), peer.identity.as_deref().unwrap_or_default())
        });
        scores.max().filter(|best| *best > own).map(|(_, identity)| identity.to_owned())
    }
}
