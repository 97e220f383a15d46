//! Turns the decisions of the lease into effects: the start and the end of a term, and the outcome of a candidacy.

use leaderelection_protocol::lease::{self, Why};
use leaderelection_protocol::policy::wait::Wait;

use super::effect::{Effect, Fact, Term};
use super::machine::Election;
use crate::clock::LocalInstant;
use crate::term::{BeginReason, RunOutcome, TermEndReason};

impl Election {
    /// Carries out what the lease has decided. If a term has ended, but not at its renew deadline, `reason` gives the reason.
    pub(super) fn follow_lease(&mut self, now: LocalInstant, reason: impl Fn() -> TermEndReason) {
        while let Some(effect) = self.lease.next_effect() {
            match effect {
                lease::Effect::Acquired { token } => {
                    self.emit(Fact::Acquired { fencing_token: token });
                    (self.wait, self.peer_feed) = (Wait::default(), None);
                    self.restart_failback_delay();
                    let has_requests = self.lease.own().is_some_and(|own| own.record.failbacks > 0);
                    self.forgets_at = has_requests.then(|| now + self.rules.failback_times().forgets_after());
                }
                lease::Effect::Start(term) => {
                    self.work_end = None;
                    let reason = self.begin_reason.take().map_or(BeginReason::Created, |reason| *reason);
                    self.effects.push_back(Effect::Start { term: Term::from(term), reason });
                    let identity = self.rules.identity.clone();
                    self.announce(&identity);
                }
                lease::Effect::Extend(term) => self.effects.push_back(Effect::Extend(Term::from(term))),
                lease::Effect::Stop { token, why, drop_by } => {
                    let reason = if why == Why::RenewDeadline { TermEndReason::RenewDeadline } else { reason() };
                    self.ended = Some(Box::new((token, reason.clone())));
                    self.effects.push_back(Effect::Stop { fencing_token: token, reason, drop_by });
                }
                lease::Effect::DropWork => self.effects.push_back(Effect::DropWork),
                lease::Effect::Abandon => {
                    self.effects.push_back(Effect::Abandon);
                    // The lease is not released, so others acquire it only after it has expired: the work may still run.
                    self.finish(now);
                }
                lease::Effect::Released => {
                    self.emit(Fact::Released);
                    self.announce("");
                }
                lease::Effect::Finished => self.finish(now),
            }
        }
    }

    /// Ends the candidacy, and lets the lease expire if it is held.
    pub(super) fn give_up(&mut self, now: LocalInstant) {
        // The outcome of these writes will never be known.
        self.doubts.clear();
        let transferred = match self.ended.as_deref() {
            Some((_, TermEndReason::Transferred { to })) => *to != self.rules.identity,
            _ => false,
        };
        if transferred && self.lease.own().is_some() {
            // Without a release, the record may not name the new leader, which this candidate still lets go first.
            self.wait.spread = self.rules.lease_duration;
        }
        self.lease.give_up(now);
        self.follow_lease(now, || TermEndReason::RenewDeadline);
    }

    /// Reports to the caller that the candidacy has ended. If the term ended before its work could begin, the candidate competes again
    /// instead.
    fn finish(&mut self, now: LocalInstant) {
        if !self.runs {
            return;
        }
        let (work_succeeded, is_job_done) = (self.lease.work_succeeded(), self.lease.is_job_done());
        let ended = self.reset(now);
        let work = self.work_end.take();
        let outcome = match ended {
            Some((fencing_token, _)) if is_job_done && work_succeeded => {
                Some(RunOutcome::JobDone { fencing_token: Some(fencing_token.into()) })
            }
            None if is_job_done => Some(RunOutcome::JobDone { fencing_token: None }),
            ended => RunOutcome::of(ended, work, self.stop_asked),
        };
        self.runs = outcome.is_none();
        match outcome {
            Some(outcome) => self.effects.push_back(Effect::Finished(outcome)),
            None => self.pacing.begin(now, std::time::Duration::ZERO),
        }
    }

    /// Forgets everything about the ended candidacy except the last known state of the object. Returns the term that is over.
    pub(super) fn reset(&mut self, now: LocalInstant) -> Option<(u64, TermEndReason)> {
        let ended = self.ended.take().map(|ended| *ended);
        self.doubts.clear();
        (self.must_read, self.peer_feed) = (false, None);
        (self.release_by, self.forgets_at) = (None, None);
        self.begin_reason = None;
        self.restart_failback_delay();
        self.pacing.restart(now);
        // The candidate that the record names also goes first after a release that was given up.
        let free_at = self.expires_at().unwrap_or(now).max(now);
        let grace = self.found().and_then(|found| self.preferred_grace(&found.record));
        self.wait.preferred_until = self.wait.preferred_until.or(grace.map(|grace| free_at + grace));
        ended
    }
}
