//! Rules 1 to 3 and 10: watch the lease of another, and take it when it is free.

use std::time::Duration;

use super::{BeginReason, Election, Event, InFlight, Jitter, Phase, Purpose, Sight, Stamp};
use crate::clock::LocalInstant;
use crate::config::JITTER_FACTOR;
use crate::lock::VersionedRecord;
use crate::record::{LeaderElectionRecord, MAX_LEADER_TRANSITIONS, UnknownFields};
use crate::store::Version;

/// A candidate whose requests are refused for good asks this many times more slowly.
const SLOW: u32 = 5;

/// Candidates that saw a lease at the same moment go for it this part of a retry period apart.
const SPREAD: u32 = 10;

impl Election {
    /// A read of the object, by a candidate whose unanswered writes did not make it.
    pub(super) fn follow(&mut self, now: LocalInstant, found: Option<VersionedRecord>, jitter: Jitter) {
        self.next_read = now + self.poll_pause(jitter);
        if let Some(sight) = &self.sight
            && sight.version() == found.as_ref().map(|found| &found.version)
        {
            // Unanswered writes on this version may still land; they stay remembered.
            return;
        }
        self.failures = 0;
        self.attempts.clear();
        self.see(now, found, jitter);
    }

    /// Remembers what the object shows since now, and until when it bars us (rules 1 and 2).
    pub(super) fn see(&mut self, now: LocalInstant, found: Option<VersionedRecord>, jitter: Jitter) {
        let free_at = match &found {
            // A lease that was cut short by a deletion is waited out all the same (rule 3).
            None => self.sight.as_ref().map_or(now, |sight| sight.free_at),
            Some(VersionedRecord { record, .. }) => {
                let free = record.is_released() || self.is_us(record) && self.rules.reclaim_own_identity;
                let lease = if free { Duration::ZERO } else { record.lease_duration };
                let wait = lease + self.courtesy(record);
                // Nobody waits with us for what is free at once.
                let spread = if wait.is_zero() { wait } else { jitter.of(self.rules.retry_period / SPREAD) };
                now + wait + spread
            }
        };
        match &found {
            Some(VersionedRecord { record, .. }) => {
                if self.is_exhausted() {
                    self.events.push_back(Event::TokensExhausted);
                }
                self.check_for_clash(record);
                let holder = record.holder_identity.clone();
                self.announce(&holder);
            }
            None => {
                if self.sight.as_ref().is_some_and(|sight| sight.found.is_some()) {
                    self.events.push_back(Event::Vanished);
                }
                self.announce("");
            }
        }
        self.sight = Some(Sight { found, free_at });
    }

    /// How long after the lease is free another candidate goes first, because it is to lead (rule 14).
    pub(super) fn courtesy(&self, record: &LeaderElectionRecord) -> Duration {
        let lets_another = record.prefers_other_than(&self.rules.identity).is_some();
        if lets_another { self.rules.lease_duration } else { Duration::ZERO }
    }

    /// A lease under our name that changes without us is alive: somebody shares our identity.
    fn check_for_clash(&mut self, record: &LeaderElectionRecord) {
        if !self.is_us(record) {
            self.clash_reported = false;
            return;
        }
        let Some(Sight { found: Some(before), .. }) = &self.sight else { return };
        let write_id = record.write_id.as_deref();
        // One of ours may have landed late. And who only says who is to lead next leaves the id alone.
        let is_known = |id: &str| before.record.write_id.as_deref() == Some(id) || self.attempts.gave_up(id);
        if self.is_us(&before.record) && !write_id.is_some_and(is_known) && !self.clash_reported {
            self.clash_reported = true;
            self.events.push_back(Event::IdentityClash);
        }
    }

    /// Why a term of ours may begin: what its first write replaces.
    pub(super) fn opening(&self) -> BeginReason {
        match self.sight.as_ref().and_then(|sight| sight.found.as_ref()) {
            None => BeginReason::Created,
            Some(VersionedRecord { record, .. }) if record.is_released() => {
                let preferred = record.preferred_holder.is_some() && self.courtesy(record).is_zero();
                if preferred { BeginReason::Transferred } else { BeginReason::Released }
            }
            Some(VersionedRecord { record, .. }) if self.is_us(record) && self.rules.reclaim_own_identity => {
                BeginReason::Reclaimed
            }
            Some(VersionedRecord { record, .. }) => BeginReason::Expired { of: record.holder_identity.clone() },
        }
    }

    /// Whether no token is left that readers would believe.
    fn is_exhausted(&self) -> bool {
        self.highest_token.is_some_and(|highest| highest >= MAX_LEADER_TRANSITIONS)
    }

    /// When a new term of ours may begin; `None` if nothing has been read yet, or if none may.
    pub(super) fn takeover_at(&self) -> Option<LocalInstant> {
        self.sight.as_ref().filter(|_| !self.is_exhausted()).map(|sight| sight.free_at.max(self.write_after))
    }

    /// The write that begins a new term: its token, its record and the version it replaces (rule 3).
    pub(super) fn candidacy(&self, stamp: &Stamp) -> (u64, LeaderElectionRecord, Option<Version>) {
        let seen = self.sight.as_ref().and_then(|sight| sight.found.as_ref());
        let token = self.highest_token.map_or(0, |highest| highest + 1);
        let record = LeaderElectionRecord {
            holder_identity: self.rules.identity.clone(),
            lease_duration: self.rules.lease_duration,
            acquire_time: Some(stamp.time),
            renew_time: Some(stamp.time),
            leader_transitions: token,
            write_id: Some(stamp.write_id.clone()),
            preferred_holder: None,
            unknown: seen.map_or_else(UnknownFields::default, |seen| seen.record.unknown.clone()),
        };
        (token, record, seen.map(|seen| seen.version.clone()))
    }

    /// Whether a write of this candidacy may have made us the holder.
    pub(super) fn may_have_acquired(&self) -> bool {
        self.last_acquire_sent().is_some()
    }

    pub(super) fn last_acquire_sent(&self) -> Option<LocalInstant> {
        let in_flight = match &self.in_flight {
            Some(InFlight::Write { attempt, .. }) => Some(attempt),
            _ => None,
        };
        let last = in_flight.or(self.attempts.last())?;
        (last.purpose == Purpose::Acquire).then_some(last.sent_at)
    }

    /// client-go's pause between a candidate's tries: a retry period and up to 1.2 more (rule 10).
    pub(super) fn poll_pause(&self, jitter: Jitter) -> Duration {
        self.rules.retry_period + jitter.of(self.rules.retry_period.mul_f64(JITTER_FACTOR))
    }

    pub(super) fn slow_pause(&self, jitter: Jitter) -> Duration {
        self.poll_pause(jitter) * SLOW
    }

    fn is_us(&self, record: &LeaderElectionRecord) -> bool {
        record.holder_identity == self.rules.identity
    }

    /// Begins the term if its window is still open; if not, it must be renewed first (rule 4).
    pub(super) fn start_if_valid(&mut self, now: LocalInstant) {
        let Phase::Holding(hold) = &self.phase else { return };
        if hold.started || now >= self.valid_until(hold) {
            return;
        }
        let fencing_token = hold.token;
        if let Phase::Holding(hold) = &mut self.phase {
            hold.started = true;
        }
        self.events.push_back(Event::Started { fencing_token });
        let identity = self.rules.identity.clone();
        self.announce(&identity);
    }
}

impl Sight {
    fn version(&self) -> Option<&Version> {
        self.found.as_ref().map(|found| &found.version)
    }
}
