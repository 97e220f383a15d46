//! Rule S9: the moment at which a member may take a free lock.

use std::time::Duration;

use leaderelection_protocol::policy::ranking;

use super::LockId;
use super::lock::{Lock, Phase};
use super::member::Member;
use super::peer::{Peer, Session};
use crate::clock::LocalInstant;

/// When this member may take a lock that nothing holds.
pub(super) struct TakeoverRank {
    /// The number of members that go first.
    pub(super) rank: u32,
    /// The moment before which this member writes nothing.
    pub(super) at: LocalInstant,
}

impl Member {
    /// Begins the waits of this member (rule S9) for a lock that may be free from now on, and plans its next request.
    pub(super) fn begin_waits(&mut self, now: LocalInstant, id: LockId) {
        if let Some(lock) = self.lock_mut(id) {
            (lock.free_since, lock.has_read) = (now, false);
        }
        self.plan(now, id);
    }

    /// The moment of the next read of a lock. If others may take the lock first, the read waits for them. Then it shows
    /// who has taken the lock, and does not delay their requests.
    pub(super) fn next_read_at(&self, now: LocalInstant, id: LockId, lock: &Lock) -> LocalInstant {
        // If this member hands the lock over, it has to find out who takes the lock.
        let is_urgent = self.attempts.contains(&id.0)
            || lock.phase != Phase::Competing
            || lock.in_doubt
            || self.handing_over.contains_key(&id.0);
        let has_releaser = self.last_releaser.contains_key(&id.0);
        if is_urgent || !has_releaser && self.acquire_reason(id, lock).is_none() {
            return now;
        }
        // A report of a release does not say who is preferred, so the read comes after one retry period at the latest.
        let most = if has_releaser { 1 } else { u32::MAX };
        lock.free_since + self.rules.election.retry_period * self.rank(id, lock).min(most)
    }

    /// When this member may take a lock. Members that are before it in rank go first.
    ///
    /// The order only saves requests: of two writes on one version, one fails with a conflict.
    pub(super) fn takeover_rank(&self, id: LockId, lock: &Lock) -> TakeoverRank {
        let preferred = lock.extras.as_ref().and_then(|extras| extras.preferred.as_deref());
        let (retry, lease) = (self.rules.election.retry_period, self.rules.election.lease_duration);
        let rank = if preferred == Some(&*self.identity) { 0 } else { self.rank(id, lock) };
        let waits =
            lock.prefers_other_than(&self.identity).is_some_and(|preferred| !self.has_just_ended(preferred, lock));
        let preferred_wait = if waits { lease } else { Duration::ZERO };
        if self.attempts.contains(&id.0) {
            // A single attempt does not let better ranks go first.
            return TakeoverRank { rank: 0, at: lock.not_before.max(lock.free_since + preferred_wait) };
        }
        let mut at = lock.not_before.max(lock.free_since + retry * rank + preferred_wait);
        if let Some(own) = self.own.as_ref().filter(|_| !self.knows_members) {
            // If members open sessions at the same time, each believes to be the first until it knows of the others.
            at = at.max(own.opened_at + retry);
        }
        TakeoverRank { rank, at }
    }

    /// Returns `true` if nobody has to wait for this preferred candidate: all its sessions have ended, one of them
    /// after the lock became free or shortly before. The releaser probably meant that session, and did not know of its
    /// end. If all have ended earlier, it knew that, so it meant a session that is still to come.
    fn has_just_ended(&self, identity: &str, lock: &Lock) -> bool {
        let shortly = (self.rules.election.retry_period * 3).min(self.rules.election.lease_duration / 2);
        let sessions = || self.peers.iter().filter(|(.., peer)| peer.identity.as_deref() == Some(identity));
        let ended_late = |peer: &Peer| peer.changed_at + shortly > lock.free_since;
        sessions().all(|(_, session, _)| session.is_over()) && sessions().any(|(.., peer)| ended_late(peer))
    }

    /// Plans the requests for locks that this member has left to a preferred one, whose session has ended.
    pub(super) fn stop_waiting_for(&mut self, now: LocalInstant, identity: &str) {
        for index in 0..self.locks.len() {
            if self.locks[index].prefers_other_than(&self.identity) == Some(identity) {
                self.plan(now, LockId::of(index));
            }
        }
    }

    /// The number of live members with a better rank for a lock. The member that has just released it is not counted.
    fn rank(&self, id: LockId, lock: &Lock) -> u32 {
        let releaser = self.last_releaser.get(&id.0);
        let own = (ranking::score(self.identity_hash, self.rules.weight, lock.hash), &*self.identity);
        let others = self.peers.iter().filter(|(id, session, peer)| peer.is_member(session) && Some(*id) != releaser);
        let before = others.filter(|(.., peer)| {
            let score = ranking::score(peer.identity_hash, peer.weight, lock.hash);
            (score, peer.identity.as_deref().unwrap_or_default()) > own
        });
        u32::try_from(before.count()).unwrap_or(u32::MAX)
    }

    /// Begins to take locks in the order of rule S9 as soon as all members are known: the sessions were listed since
    /// the local one was opened, and every listed session was read, or nothing waits for it any more.
    pub(super) fn learn_members(&mut self, now: LocalInstant) {
        let is_read = |(_, session, peer): (_, &Session, &Peer)| {
            session.is_over() || peer.identity.is_some() || session.expires_at().is_some() || peer.is_given_up(now)
        };
        if self.knows_members || !self.has_listed_members || !self.peers.iter().all(is_read) {
            return;
        }
        self.knows_members = true;
        for index in 0..self.locks.len() {
            if self.locks[index].phase == Phase::Competing {
                self.plan(now, LockId::of(index));
            }
        }
    }
}
