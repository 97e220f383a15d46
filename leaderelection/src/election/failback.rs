//! Rule 24: a candidate with a better rank than the leader's asks for the lease.
//!
//! The record counts the requests, because a candidate that has restarted remembers nothing.

use leaderelection_protocol::lease::Shown;
use leaderelection_protocol::policy::Jitter;
use leaderelection_protocol::policy::failback_delay::{FailbackDelay, FailbackTimes};

use super::effect::{Effect, Fact, Request, Write};
use super::input::Failure;
use super::machine::Election;
use crate::clock::LocalInstant;
use crate::lock::record::LeaderElectionRecord;
use crate::store::{StoreErrorKind, Version};

impl Election {
    /// Handles an answered read. If this candidate is to ask for the lease, it reads again no later than the moment of
    /// that request, whatever a peer says.
    pub(super) fn note_read_for_failback(&mut self, now: LocalInstant) {
        if !self.rules.failback {
            return;
        }
        self.failback_delay.read(self.may_write_at(now));
        let Some(asks_at) = self.asks_at() else { return };
        self.may_ask = true;
        if let Some(suppress_polls_until) =
            self.peer_feed.as_mut().and_then(|peer_feed| peer_feed.suppress_polls_until.as_mut())
        {
            *suppress_polls_until = (*suppress_polls_until).min(asks_at);
        }
        if now < asks_at {
            self.pacing.poll_by(asks_at);
        }
    }

    /// Handles a failed read, which postpones the request for the lease.
    pub(super) fn defer_failback(&mut self, now: LocalInstant) {
        let requests = self.lease.watch().found().map_or(0, |found| found.record.failbacks);
        let FailbackTimes { lease_duration, .. } = self.rules.failback_times();
        self.failback_delay.failed(now, self.rules.failback_times().after(requests), lease_duration);
    }

    /// Restarts the fail-back delay, because a term of this candidate begins or ends, a request for the lease was
    /// denied or has an unknown outcome, or a read was late by a lease.
    pub(super) fn restart_failback_delay(&mut self) {
        self.failback_delay = FailbackDelay::default();
    }

    /// When this candidate asks the observed leader for the lease; `None` if it does not ask.
    fn asks_at(&self) -> Option<LocalInstant> {
        let record = &self.lease.watch().found()?.record;
        let is_worse = record.leader_rank() > self.rules.rank && record.holder_identity != self.rules.identity;
        let prefers_another = record.prefers_other_than(&record.holder_identity).is_some();
        let asks = self.competes() && !self.lease.has_job() && is_worse && !prefers_another;
        self.failback_delay.ends_at(self.rules.failback_times().after(record.failbacks)).filter(|_| asks)
    }

    /// The next moment at which this candidate may write.
    fn may_write_at(&self, now: LocalInstant) -> LocalInstant {
        self.pacing.write(now).max(self.pacing.silent_until(None))
    }

    /// Asks for the lease if that is due, and a read has just shown the leader. Returns `true` if the request was sent.
    pub(super) fn ask_for_lease(&mut self, now: LocalInstant) -> bool {
        let has_unanswered_write = self.lease.unanswered().next().is_some();
        if !std::mem::take(&mut self.may_ask) || has_unanswered_write || now < self.may_write_at(now) {
            return false;
        }
        let is_due = self.asks_at().is_some_and(|asks_at| now >= asks_at);
        // An expired lease is acquired instead.
        if !is_due || self.expires_at().is_none_or(|expires_at| now >= expires_at) {
            return false;
        }
        let Ok(permit) = self.lease.may_request(now) else { return false };
        let Some(mut record) = permit.replaces().map(|found| LeaderElectionRecord::clone(&found.record)) else {
            return false;
        };
        record.failbacks = record.failbacks.saturating_add(1).min(self.rules.failback_doublings);
        // A transfer request keeps the id of the holder's write, so no new id is drawn.
        let write = permit.write(String::new, record);
        self.effects.push_back(Effect::Send(Request::Write(Write::from(write))));
        true
    }

    /// Handles the answer to a request for the lease. If the request was rejected or had a conflict, the next read
    /// decides whether to ask again.
    pub(super) fn on_transfer_request_answer(
        &mut self,
        now: LocalInstant,
        answer: Result<Version, Failure>,
        jitter: Jitter,
    ) {
        self.lease.write_answered(now, answer.as_ref().ok().cloned());
        match answer {
            Ok(_) => {
                self.emit(Fact::FailbackRequested);
                self.observe(now, Shown::Named, LocalInstant::default(), jitter);
            }
            Err(failure) if matches!(failure.kind, StoreErrorKind::Conflict | StoreErrorKind::Rejected) => {}
            // This candidate may be unable to write, so it should not lead.
            Err(_) => self.restart_failback_delay(),
        }
    }
}
