//! Rules 15 to 17: a candidate that gets the leader's messages reads the store less often.

use std::time::Duration;

use leaderelection_protocol::policy::peer_feed::{Compared, HeardWrite, Unheard};
use leaderelection_protocol::policy::{JITTER_FACTOR, Jitter, Pace};

use super::effect::Fact;
use super::input::Heard;
use super::machine::{Election, Found};
use super::rules::ElectionConfig;
use crate::clock::LocalInstant;
use crate::lock::record::LeaderElectionRecord;
use crate::term::FencingToken;

/// The divisor of the infrequent interval for its shortening, so that candidates do not read at the same moments.
const SHORTENING: u32 = 16;

impl Election {
    /// The id of the newest write of this term that a message has reported.
    #[must_use]
    pub fn last_heard(&self) -> Option<&str> {
        Some(&self.hearing.as_ref()?.newest.as_ref()?.write_id)
    }

    /// The mean pause between two reads of a follower that sees renewals, and has no peers (rules 10 and 20).
    #[must_use]
    pub fn mean_pause(&self) -> Duration {
        self.rules.follower_interval + self.rules.retry_period.mul_f64(JITTER_FACTOR / 2.0)
    }

    pub(super) fn on_heard(&mut self, now: LocalInstant, heard: Heard) {
        let counts = match heard {
            Heard::Landed { holder, fencing_token, write_id, number } => {
                let id = write_id.clone();
                let counts = self
                    .lease_of_term(&holder, fencing_token)
                    .and_then(|(lease, patience)| self.hear_of_write(now, lease, patience, write_id, number));
                if self.last_heard() == Some(&*id) {
                    self.lease.hint(now, id);
                }
                counts.map(|()| Fact::Heard)
            }
            Heard::Ended { holder, fencing_token } => {
                self.lease_of_term(&holder, fencing_token).and_then(|_| self.hear_of_end(now)).map(|()| Fact::HeardEnd)
            }
            Heard::Nothing => return self.hear_nothing(now),
            // No lease is the lock of a session.
            Heard::Released { .. } => return,
        };
        self.emit(counts.unwrap_or_else(Fact::NotHeard));
    }

    /// The lease duration and the patience in the term that the store showed last, if it is this term and another holder's.
    fn lease_of_term(&self, holder: &str, token: FencingToken) -> Result<(Duration, Duration), Unheard> {
        match self.lease.watch().found().map(|found| &found.record) {
            Some(record) if self.competes() && !record.is_released() => {
                let is_same = record.holder_identity == holder && token == record.leader_transitions;
                if is_same {
                    Ok((record.lease_duration, patience(&self.rules, record)))
                } else {
                    Err(Unheard::OtherTerm)
                }
            }
            _ => Err(Unheard::NoLeader),
        }
    }

    /// Handles a message about a write of the term.
    fn hear_of_write(
        &mut self,
        now: LocalInstant,
        lease: Duration,
        patience: Duration,
        write_id: String,
        number: u64,
    ) -> Result<(), Unheard> {
        let heard = HeardWrite::new(write_id, number, now);
        let was_shown = self.lease.watch().found().is_some_and(|found| heard.wrote(&*found.record));
        let hearing = self.hearing.get_or_insert_default();
        hearing.hear(heard, was_shown)?;
        if let Some(suppress_polls_until) = hearing.suppress_polls_until {
            self.pacing.put_off(suppress_polls_until.min(now + patience));
        }
        self.pacing.look_by(now + lease);
        Ok(())
    }

    /// Handles a message about the end of the term. The store decides whether the lease is free.
    fn hear_of_end(&mut self, now: LocalInstant) -> Result<(), Unheard> {
        let hearing = self.hearing.get_or_insert_default();
        if !hearing.end() {
            return Err(Unheard::Closed);
        }
        hearing.suppress_polls_until = None;
        self.pacing.look_by(now);
        Ok(())
    }

    /// Handles the silence of the peer. This brings a read forward only if the peer's messages have postponed it. If
    /// they have not, another read of the write that is known would not end the wait earlier, and an unseen write is
    /// read as soon as without peers.
    fn hear_nothing(&mut self, now: LocalInstant) {
        if self.hearing.as_mut().is_some_and(|hearing| hearing.suppress_polls_until.take().is_some()) {
            self.pacing.look_by(now);
        }
    }

    /// Compares the messages with a read, before the read changes the sight. Returns `true` if the read shows the term
    /// that the store showed before.
    pub(super) fn compare_with_heard(&mut self, now: LocalInstant, found: Option<&Found>, jitter: Jitter) -> bool {
        let (Some(before), Some(found)) = (self.lease.watch().found(), found) else { return false };
        if !is_same_term(&before.record, &found.record) {
            return false;
        }
        let Some(hearing) = &mut self.hearing else { return true };
        match hearing.compare(Some(&*found.record), is_same_write(before, found)) {
            Compared::Confirmed => {
                let interval = self.rules.background_interval;
                let suppress_polls_until = now + (interval - jitter.of(interval / SHORTENING));
                let heard_at = hearing.newest.as_ref().map_or(now, |newest| newest.at);
                let silent_at = heard_at + patience(&self.rules, &found.record);
                hearing.suppress_polls_until = Some(suppress_polls_until);
                self.pacing.put_off(suppress_polls_until.min(silent_at));
            }
            Compared::Contradicted => self.emit(Fact::Contradicted),
            Compared::Neither => {}
        }
        true
    }

    /// The end of the lease of a write that a message has reported and no read has answered so far. The first read that
    /// is due decides about such a lease; this moment is for a store that answers no read.
    pub(super) fn heard_lease_until(&self) -> LocalInstant {
        let lease = self.lease.watch().found().map(|found| found.record.lease_duration);
        let heard_at = self.hearing.as_ref().and_then(|hearing| hearing.unanswered_since());
        heard_at
            .zip(lease)
            .map_or(LocalInstant::default(), |(at, lease)| at + lease + self.rules.pace().longest_spread())
    }
}

/// The time after a message of the leader at which the leader counts as silent (rule 16).
pub(crate) fn patience(rules: &ElectionConfig, record: &LeaderElectionRecord) -> Duration {
    let retry_period = record.leader_retry_period().unwrap_or(rules.retry_period);
    Pace::patience(record.lease_duration, retry_period)
}

fn is_same_term(before: &LeaderElectionRecord, found: &LeaderElectionRecord) -> bool {
    !found.is_released()
        && found.holder_identity == before.holder_identity
        && found.leader_transitions == before.leader_transitions
}

/// Returns `true` if the leader has written nothing between the two reads. An operator may have written a request.
fn is_same_write(before: &Found, found: &Found) -> bool {
    found.version == before.version
        || found.record.write_id.is_some() && found.record.write_id == before.record.write_id
}
