//! Rules 15 to 17: a candidate that gets the leader's messages reads the store less often.

use std::time::Duration;

use leaderelection_protocol::policy::peer_feed::{Compared, IgnoredReason, ReportedWrite};
use leaderelection_protocol::policy::{JITTER_FACTOR, Jitter, Pace};

use super::effect::Fact;
use super::input::PeerMessage;
use super::machine::{Election, Found};
use super::rules::ElectionConfig;
use crate::clock::LocalInstant;
use crate::lock::record::LeaderElectionRecord;
use crate::term::FencingToken;

/// Each candidate's background interval is shorter by up to `interval / SHORTENING`, so that candidates do not all read at once.
const SHORTENING: u32 = 16;

impl Election {
    /// The id of the newest write of this term that a message has reported.
    #[must_use]
    pub fn last_message(&self) -> Option<&str> {
        Some(&self.peer_feed.as_ref()?.newest.as_ref()?.write_id)
    }

    /// The mean pause between two reads of a follower that sees renewals and gets no messages (rules 10 and 20).
    #[must_use]
    pub fn mean_pause(&self) -> Duration {
        self.rules.follower_interval + self.rules.retry_period.mul_f64(JITTER_FACTOR / 2.0)
    }

    pub(super) fn on_message(&mut self, now: LocalInstant, message: PeerMessage) {
        let counts = match message {
            PeerMessage::Committed { holder, fencing_token, write_id, number } => {
                let id = write_id.clone();
                let counts = self
                    .lease_of_term(&holder, fencing_token)
                    .and_then(|(lease, patience)| self.on_reported_write(now, lease, patience, write_id, number));
                // The first message about the newest reported write dates it (rule 15).
                if self.last_message() == Some(&*id) {
                    self.lease.hint(now, id);
                }
                counts.map(|()| Fact::WriteReported)
            }
            PeerMessage::Ended { holder, fencing_token } => self
                .lease_of_term(&holder, fencing_token)
                .and_then(|_| self.on_reported_end(now))
                .map(|()| Fact::EndReported),
            PeerMessage::Nothing => return self.on_silence(now),
            // Only the machine of sessions uses reports of released locks.
            PeerMessage::Released { .. } => return,
        };
        self.emit(counts.unwrap_or_else(Fact::MessageIgnored));
    }

    /// The leader's lease duration, and its [`patience`], if the last read showed this term, and this candidate follows.
    fn lease_of_term(&self, holder: &str, token: FencingToken) -> Result<(Duration, Duration), IgnoredReason> {
        match self.lease.watch().found().map(|found| &found.record) {
            Some(record) if self.competes() && !record.is_released() => {
                let is_same = record.holder_identity == holder && token == record.leader_transitions;
                if is_same {
                    Ok((record.lease_duration, patience(&self.rules, record)))
                } else {
                    Err(IgnoredReason::OtherTerm)
                }
            }
            _ => Err(IgnoredReason::NoLeader),
        }
    }

    /// Handles a message about a write of the term.
    fn on_reported_write(
        &mut self,
        now: LocalInstant,
        lease: Duration,
        patience: Duration,
        write_id: String,
        number: u64,
    ) -> Result<(), IgnoredReason> {
        let write = ReportedWrite::new(write_id, number, now);
        let was_shown = self.lease.watch().found().is_some_and(|found| write.wrote(&*found.record));
        let peer_feed = self.peer_feed.get_or_insert_default();
        peer_feed.on_write(write, was_shown)?;
        if let Some(suppress_polls_until) = peer_feed.suppress_polls_until {
            self.pacing.put_off(suppress_polls_until.min(now + patience));
        }
        self.pacing.poll_by(now + lease);
        Ok(())
    }

    /// Handles a message about the end of the term. The store decides whether the lease is free.
    fn on_reported_end(&mut self, now: LocalInstant) -> Result<(), IgnoredReason> {
        let peer_feed = self.peer_feed.get_or_insert_default();
        if !peer_feed.end() {
            return Err(IgnoredReason::Closed);
        }
        peer_feed.suppress_polls_until = None;
        self.pacing.poll_by(now);
        Ok(())
    }

    /// Handles the silence of the peer. If its messages have postponed the next read, that read becomes due now.
    /// Otherwise, the read keeps its time, because an earlier read would not shorten the wait for the lease.
    fn on_silence(&mut self, now: LocalInstant) {
        if self.peer_feed.as_mut().is_some_and(|peer_feed| peer_feed.suppress_polls_until.take().is_some()) {
            self.pacing.poll_by(now);
        }
    }

    /// Compares the messages with a read. Call this before the read replaces what was observed. Returns `true` if the read shows the same
    /// term as before.
    pub(super) fn compare_with_messages(&mut self, now: LocalInstant, found: Option<&Found>, jitter: Jitter) -> bool {
        let (Some(before), Some(found)) = (self.lease.watch().found(), found) else { return false };
        if !is_same_term(&before.record, &found.record) {
            return false;
        }
        let Some(peer_feed) = &mut self.peer_feed else { return true };
        match peer_feed.compare(Some(&*found.record), is_same_write(before, found)) {
            Compared::Confirmed => {
                let interval = self.rules.background_interval;
                let suppress_polls_until = now + (interval - jitter.of(interval / SHORTENING));
                let reported_at = peer_feed.newest.as_ref().map_or(now, |newest| newest.at);
                let silent_at = reported_at + patience(&self.rules, &found.record);
                peer_feed.suppress_polls_until = Some(suppress_polls_until);
                self.pacing.put_off(suppress_polls_until.min(silent_at));
            }
            Compared::Contradicted => self.emit(Fact::Contradicted),
            Compared::Neither => {}
        }
        true
    }

    /// The end of the lease of the last reported write, until a read confirms or contradicts that write. This matters only if the store
    /// answers no reads.
    pub(super) fn reported_lease_until(&self) -> LocalInstant {
        let lease = self.lease.watch().found().map(|found| found.record.lease_duration);
        let reported_at = self.peer_feed.as_ref().and_then(|peer_feed| peer_feed.unanswered_since());
        reported_at
            .zip(lease)
            .map_or(LocalInstant::default(), |(at, lease)| at + lease + self.rules.pace().longest_spread())
    }
}

/// How long after its last message a leader counts as silent (rule 16).
pub(crate) fn patience(rules: &ElectionConfig, record: &LeaderElectionRecord) -> Duration {
    let retry_period = record.leader_retry_period().unwrap_or(rules.retry_period);
    Pace::patience(record.lease_duration, retry_period)
}

fn is_same_term(before: &LeaderElectionRecord, found: &LeaderElectionRecord) -> bool {
    !found.is_released()
        && found.holder_identity == before.holder_identity
        && found.leader_transitions == before.leader_transitions
}

/// Returns `true` if the leader wrote nothing between the two reads. Somebody else may have written a transfer request.
fn is_same_write(before: &Found, found: &Found) -> bool {
    found.version == before.version
        || found.record.write_id.is_some() && found.record.write_id == before.record.write_id
}
