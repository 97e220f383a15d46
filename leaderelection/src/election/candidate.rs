//! Rules 2, 3, 10, 14, 19, 20 and 23: how long a candidate waits before it acquires a lease, in addition to what the kernel requires.

use std::time::Duration;

use leaderelection_protocol::lease::Shown;
use leaderelection_protocol::policy::Jitter;
use leaderelection_protocol::record::is_same_write;

use super::effect::Fact;
use super::machine::{Election, Found};
use crate::clock::LocalInstant;
use crate::lock::record::{LeaderElectionRecord, MAX_LEADER_TRANSITIONS};
use crate::term::BeginReason;

impl Election {
    /// Returns `true` if a read shows that a leader has renewed its lease since the last read. A transfer request is not a renewal: the
    /// lease may be free soon.
    pub(super) fn shows_renewal(&self, found: Option<&Found>) -> bool {
        self.lease.watch().found().zip(found).is_some_and(|(before, found)| {
            before.version != found.version
                && !found.record.is_released()
                && !is_same_write(&*found.record, &*before.record)
        })
    }

    /// Updates the waits after a read, and reports what the read has shown. `blocked_until` is the moment at which the lease would have
    /// become free without this read.
    pub(super) fn observe(&mut self, now: LocalInstant, shown: Shown, blocked_until: LocalInstant, jitter: Jitter) {
        let Some(expires_at) = self.lease.watch().expires_at() else { return };
        let spread = jitter.of(self.rules.pace().longest_spread());
        let grace = self.lease.watch().found().and_then(|found| self.preferred_grace(&found.record));
        if !self.wait.saw(now, shown, [blocked_until, expires_at], spread, grace) {
            return;
        }
        self.begin_reason = None;
        if shown == Shown::Vanished {
            self.emit(Fact::Vanished);
        }
        let record = self.lease.watch().found().map(|found| found.record.clone());
        if record.as_deref().is_some_and(is_exhausted) {
            self.emit(Fact::TokensExhausted);
        }
        self.announce(record.as_ref().map_or("", |record| &record.holder_identity));
    }

    /// How long the candidate that `record` names goes first once the lease is free (rule 14); `None` if it names none.
    pub(super) fn preferred_grace(&self, record: &LeaderElectionRecord) -> Option<Duration> {
        record.preferred_holder.as_ref().map(|_| self.rules.lease_duration)
    }

    /// Why a new term may begin. This follows from the record that the term's first write replaces.
    pub(super) fn acquire_reason(&self) -> BeginReason {
        match self.lease.watch().found().map(|found| &found.record) {
            None => BeginReason::Created,
            Some(record) if record.is_released() => {
                if record.preferred_holder.as_ref() == Some(&self.rules.identity) {
                    BeginReason::Transferred
                } else {
                    BeginReason::Released
                }
            }
            Some(record) if self.is_reclaimed(record) => BeginReason::Reclaimed,
            Some(record) => BeginReason::Expired { of: record.holder_identity.clone() },
        }
    }

    /// The moment from which a new term may begin; `None` before the first read, or if the tokens are exhausted.
    pub(super) fn takeover_at(&self) -> Option<LocalInstant> {
        let is_exhausted = self.lease.watch().found().is_some_and(|found| is_exhausted(&found.record));
        let free_at = self.free_at().filter(|_| !is_exhausted)?;
        Some(self.pacing.write(free_at + self.rank_wait()))
    }

    /// The moment from which the lease is free for this candidate, if the object does not change.
    pub(super) fn free_at(&self) -> Option<LocalInstant> {
        let found = self.lease.watch().found();
        let prefers_another =
            found.is_some_and(|found| found.record.prefers_other_than(&self.rules.identity).is_some());
        let preferred_until = self.wait.preferred_until.filter(|_| prefers_another).unwrap_or_default();
        Some(self.expires_at()?.max(preferred_until).max(self.reported_lease_until()))
    }

    /// The end of the lease plus the random spread (rule 10), unless the object changes; `None` before the first read.
    pub(super) fn expires_at(&self) -> Option<LocalInstant> {
        self.lease.watch().expires_at().map(|expires_at| expires_at + self.wait.spread)
    }

    /// How long this candidate lets better ranks go first when a lease is free (rule 23). It does not wait if it was named as the next
    /// leader, or reclaims its own lease.
    pub(super) fn rank_wait(&self) -> Duration {
        let is_exempt = self.lease.watch().found().is_some_and(|found| {
            found.record.preferred_holder.as_ref() == Some(&self.rules.identity) || self.is_reclaimed(&found.record)
        });
        if is_exempt { Duration::ZERO } else { self.rules.pace().rank_wait(self.rules.rank) }
    }

    /// Returns `true` if this candidate may reclaim the record, no matter which process wrote it.
    fn is_reclaimed(&self, record: &LeaderElectionRecord) -> bool {
        self.rules.reclaim_own_identity && record.holder_identity == self.rules.identity
    }
}

/// Returns `true` if no term can follow, because readers reject a larger token.
fn is_exhausted(record: &LeaderElectionRecord) -> bool {
    record.leader_transitions >= MAX_LEADER_TRANSITIONS
}
