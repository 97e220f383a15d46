//! Rules 1 to 4, 10, 14, 19, 20 and 23: a candidate watches the lease of another holder, and takes the lease when it is free.

use std::sync::Arc;
use std::time::Duration;

use leaderelection_protocol::record::is_same_write;

use super::effect::{Effect, Fact, Purpose};
use super::input::Jitter;
use super::machine::Election;
use super::phase::{InFlight, Phase, Seen, Sight};
use crate::clock::LocalInstant;
use crate::lock::record::{HolderRank, LeaderElectionRecord, MAX_LEADER_TRANSITIONS, Stamp, UnknownFields};
use crate::store::Version;
use crate::term::{BeginReason, RunOutcome};

/// The divisor of the retry period for the spread of takeovers, so that candidates that saw a lease at the same
/// moment do not collide.
pub(super) const SPREAD: u32 = 20;

impl Election {
    /// Takes a read of the object that shows none of the candidate's unanswered writes. The version that the read shows
    /// has existed for `age` at least.
    pub(super) fn follow(&mut self, now: LocalInstant, found: Option<Seen>, age: Duration, jitter: Jitter) {
        self.pacing.looked(&self.rules, now, self.shows_renewal(found.as_ref()), jitter);
        let goes_on = self.compare_with_heard(now, found.as_ref(), jitter);
        if let Some(sight) = &self.sight
            && sight.version() == found.as_ref().map(|found| &found.version)
        {
            // Unanswered writes on this version may still land.
            self.attempts.forget_old(now);
        } else {
            // After a write of its own, the candidate may have changed the object itself, and reached too little of it (M7).
            if self.attempts.last().is_none() {
                self.pacing.made_progress();
            }
            self.give_up_attempts();
            self.see(now, found, age, jitter);
        }
        if !goes_on {
            self.hearing = None;
        }
        self.settle(now);
    }

    /// Ends the candidacy if the record that was seen last says that its job is done (rule 18).
    pub(super) fn finish_if_job_is_done(&mut self, now: LocalInstant) {
        let record = self.sight.as_ref().and_then(|sight| Some(&sight.found.as_ref()?.record));
        if let (Phase::Following, Some(job), Some(record)) = (&self.phase, &self.job, record)
            && job.is_done(record)
        {
            self.rest(now);
            self.effects.push_back(Effect::Finished(RunOutcome::JobDone { fencing_token: None }));
        }
    }

    /// Returns `true` if a read shows that a leader has renewed its lease since the last read. A request to hand over is no
    /// renewal: the lease may be free soon.
    fn shows_renewal(&self, found: Option<&Seen>) -> bool {
        let before = self.sight.as_ref().and_then(|sight| sight.found.as_ref());
        before.zip(found).is_some_and(|(before, found)| {
            before.version != found.version
                && !found.record.is_released()
                && !is_same_write(&*found.record, &*before.record)
        })
    }

    /// Remembers the object and the moment of this read, and the time for which the object bars this candidate
    /// (rules 1, 2, 14, 15 and 19).
    pub(super) fn see(&mut self, now: LocalInstant, found: Option<Seen>, age: Duration, jitter: Jitter) {
        let heard_until = self.heard_lease_until();
        let before = self.sight.take();
        let Some(found) = found else {
            if before.as_ref().is_some_and(|sight| sight.found.is_some()) {
                self.tell(Fact::Vanished);
            }
            // The candidate waits for the end of a lease even after a deletion of the object (rule 3).
            let free_at = before.map_or(now, |sight| sight.free_at(&self.rules.identity).max(heard_until));
            self.sight = Some(Sight { found: None, lease_until: free_at, courtesy_until: None });
            self.announce("");
            return;
        };
        self.saw_token(found.record.leader_transitions);
        if is_exhausted(&found.record) {
            self.tell(Fact::TokensExhausted);
        }
        let record = Arc::clone(&found.record);
        let sight = match before {
            Some(before) if before.found.as_ref().is_some_and(|old| is_same_write(&*found.record, &*old.record)) => {
                self.see_annotation(now, before, found)
            }
            _ => self.see_write(now, found, age, jitter),
        };
        self.sight = Some(sight);
        self.announce(&record.holder_identity);
    }

    /// Returns the sight of a write that was not seen before. The lease of that write runs from the earliest moment at
    /// which the write is known to have existed: from now, from the message that reported it (rule 15), or from `age`
    /// ago (rule 19).
    fn see_write(&self, now: LocalInstant, found: Seen, age: Duration, jitter: Jitter) -> Sight {
        let record = &found.record;
        let free = record.is_released() || self.is_us(record) && self.rules.reclaim_own_identity;
        // A lease that is free at once needs no spread, because no other candidate waits for the same moment.
        let spread = jitter.of(self.rules.retry_period / SPREAD);
        let known_since = self.hearing.as_ref().and_then(|hearing| hearing.date_of(record)).unwrap_or(now);
        let lasts = record.lease_duration.saturating_add(spread);
        let lease_until = if free { now } else { (known_since + lasts).min(now + lasts.saturating_sub(age)) };
        let courtesy_until = self.courtesy(record).map(|courtesy| lease_until.max(now) + courtesy);
        Sight { found: Some(found), lease_until, courtesy_until }
    }

    /// Returns the sight of a request to hand over. Such a request is no renewal, so the lease runs on. A request that
    /// replaces another request begins no second courtesy, because requests without end would then bar every candidate.
    fn see_annotation(&self, now: LocalInstant, before: Sight, found: Seen) -> Sight {
        let begins_now = || self.courtesy(&found.record).map(|courtesy| before.lease_until.max(now) + courtesy);
        let courtesy_until = before.courtesy_until.or_else(begins_now);
        Sight { found: Some(found), lease_until: before.lease_until, courtesy_until }
    }

    /// The time for which the named candidate goes first after the lease is free (rule 14).
    pub(super) fn courtesy(&self, record: &LeaderElectionRecord) -> Option<Duration> {
        record.preferred_holder.as_ref().map(|_| self.rules.lease_duration)
    }

    /// Remembers a write of this candidate by which no candidate leads any more.
    pub(super) fn remember_our_write(&mut self, now: LocalInstant, written: Seen) {
        let courtesy_until = self.courtesy(&written.record).map(|courtesy| now + courtesy);
        self.sight = Some(Sight { found: Some(written), lease_until: now, courtesy_until });
    }

    /// The reason for which a new term may begin. The reason follows from the record that the term's first write
    /// replaces.
    pub(super) fn opening(&self) -> BeginReason {
        match self.sight.as_ref().and_then(|sight| sight.found.as_ref()) {
            None => BeginReason::Created,
            Some(Seen { record, .. }) if record.is_released() => {
                if record.preferred_holder.as_ref() == Some(&self.rules.identity) {
                    BeginReason::Transferred
                } else {
                    BeginReason::Released
                }
            }
            Some(Seen { record, .. }) if self.is_us(record) && self.rules.reclaim_own_identity => {
                BeginReason::Reclaimed
            }
            Some(Seen { record, .. }) => BeginReason::Expired { of: record.holder_identity.clone() },
        }
    }

    /// The moment from which a new term of this candidate may begin; `None` before the first read, or if no term may
    /// begin.
    pub(super) fn takeover_at(&self) -> Option<LocalInstant> {
        let sight = self.sight.as_ref()?;
        let barred = sight.found.as_ref().is_some_and(|found| is_exhausted(&found.record));
        let free_at = sight.free_at(&self.rules.identity).max(self.heard_lease_until());
        (!barred).then(|| self.pacing.write(free_at + self.rank_wait()))
    }

    /// The time that this candidate leaves to better ranks when a lease is free (rule 23). The candidate that is to lead
    /// next waits for nobody, and neither does a candidate that takes its own lease.
    pub(super) fn rank_wait(&self) -> Duration {
        let found = self.sight.as_ref().and_then(|sight| sight.found.as_ref());
        let is_exempt = found.is_some_and(|Seen { record, .. }| {
            record.preferred_holder.as_ref() == Some(&self.rules.identity)
                || self.rules.reclaim_own_identity && self.is_us(record)
        });
        if is_exempt { Duration::ZERO } else { self.rules.retry_period.saturating_mul(self.rules.rank.into()) }
    }

    /// The write that begins a new term: its token, its record and the version that it replaces (rule 3).
    pub(super) fn candidacy(&self, stamp: Stamp) -> (u64, LeaderElectionRecord, Option<Version>) {
        let seen = self.sight.as_ref().and_then(|sight| sight.found.as_ref());
        let token = self.highest_token.map_or(0, |highest| highest + 1);
        let mut record = LeaderElectionRecord {
            leader_transitions: token,
            peer: self.rules.peer(token, None),
            rank: HolderRank::new(self.rules.rank, token),
            take_backs: seen.map_or(0, |seen| seen.record.take_backs),
            unknown: seen.map_or_else(UnknownFields::default, |seen| seen.record.unknown.clone()),
            ..LeaderElectionRecord::new(&*self.rules.identity, self.rules.lease_duration)
        };
        record.claim_for(self.rules.purpose.as_deref());
        (token, record.stamped(stamp), seen.map(|seen| seen.version.clone()))
    }

    /// The end of the lease of the last write that may have made this candidate the holder, if there is one.
    pub(super) fn may_hold_until(&self) -> Option<LocalInstant> {
        let in_flight = match &self.in_flight {
            Some(InFlight::Write { attempt, .. }) => Some(attempt),
            _ => None,
        };
        let last = in_flight.or(self.attempts.last().map(|write| &write.attempt))?;
        (last.purpose == Purpose::Acquire).then_some(last.lease_until())
    }

    /// Begins the term if its window is still open. Otherwise the lease must be renewed first (rule 4).
    pub(super) fn start_if_valid(&mut self, now: LocalInstant) {
        let phase = std::mem::replace(&mut self.phase, Phase::Idle);
        match phase {
            Phase::Won { hold, reason } if now < hold.valid_until() => {
                let term = self.term(&hold);
                self.phase = Phase::Leading(hold);
                self.work_end = None;
                self.effects.push_back(Effect::Start { term, reason });
                let rules = Arc::clone(&self.rules);
                self.announce(&rules.identity);
            }
            other => self.phase = other,
        }
    }

    /// Remembers a token. A token without a successor is not remembered: it bars the candidate only as long as the
    /// record shows it, so that an operator can correct the record.
    pub(super) fn saw_token(&mut self, token: u64) {
        if token < MAX_LEADER_TRANSITIONS {
            self.highest_token = self.highest_token.max(Some(token));
        }
    }

    fn is_us(&self, record: &LeaderElectionRecord) -> bool {
        record.holder_identity == self.rules.identity
    }
}

/// Returns `true` if the record's token has no successor that readers would accept.
fn is_exhausted(record: &LeaderElectionRecord) -> bool {
    record.leader_transitions >= MAX_LEADER_TRANSITIONS
}
