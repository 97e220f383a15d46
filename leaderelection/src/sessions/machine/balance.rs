//! Rule S9: hands over locks for balance.
//!
//! Other members learn of a release from the session's next renewal. So locks are handed over in batches, each shortly
//! before a renewal. The next batch waits until the previous one was taken.

use std::sync::Arc;
use std::time::Duration;

use leaderelection_protocol::policy::ranking;
use leaderelection_protocol::session::LockView;

use super::LockId;
use super::hand_over::Handoff;
use super::member::{Housekeeping, Member};
use crate::clock::LocalInstant;
use crate::election::TermEndReason;

/// A batch begins 1/8 of a retry period before a renewal. If work stops at once, this renewal reports the release.
pub(super) const BEFORE_RENEWAL: u32 = 8;

/// The time from a release to the first poll for the lock's new holder, in eighths of the retry period. It is enough
/// for this member's renewal, and for the other member's poll of the session, read of the lock, and write.
const UNTIL_TAKEN: u32 = 5;

/// How often the pause doubles, at most, for a member that does not take the locks offered to it.
const MOST_DOUBLINGS: u32 = 6;

impl Member {
    /// If a renewal follows soon, hands over a batch of the locks for which another member is first in rank. Then plans
    /// the next batch or search, if one is needed.
    pub(super) fn balance(&mut self, now: LocalInstant) {
        let Some(window) = self.window().filter(|_| !self.stop_asked) else { return };
        let (retry, lease) = (self.rules.election.retry_period, self.rules.election.lease_duration);
        if !self.is_release_noticed_soon(now) {
            self.rebalance_scan = None;
            return;
        }
        let batch_at = window.sent_at + (retry - retry / BEFORE_RENEWAL);
        // Nobody knows when an overdue renewal comes. If checks were a retry period apart, each could find it overdue.
        if now < batch_at || now > window.sent_at + retry + retry / BEFORE_RENEWAL {
            let at = if now < batch_at { batch_at } else { now + retry / BEFORE_RENEWAL };
            return self.housekeeping.set(Housekeeping::Balance, at);
        }
        let mut scan = self.rebalance_scan.take().unwrap_or_default();
        let most = self.rules.max_handoffs(self.number_of_locks());
        while let Some(lock) = self.locks.get(scan.next as usize) {
            if self.handing_over.len() >= most {
                // The locks in `handing_over` must be taken first.
                self.rebalance_scan = Some(scan);
                return self.housekeeping.set(Housekeeping::Balance, batch_at + retry);
            }
            let id = LockId(scan.next);
            scan.next += 1;
            let first = if lock.leads() { self.first_in_rank(now, lock.hash) } else { None };
            if let Some((to, its_lease)) = first {
                // The other member may have released the lock itself. Then it competes again only one lease later.
                let ready_at = lock.free_since + lease.max(its_lease);
                if now < ready_at {
                    scan.ready_at = Some(scan.ready_at.map_or(ready_at, |earlier| earlier.min(ready_at)));
                    continue;
                }
                scan.has_found = true;
                self.handing_over.insert(id.0, Handoff { to: to.clone(), released: None });
                self.end_term(now, id, TermEndReason::Transferred { to: to.to_string() });
            }
        }
        // This member may have taken locks during the search, so only a search that finds none is the last.
        let again = scan.has_found.then(|| now + lease);
        let of_peers = self.peers.iter().filter(|(_, session, peer)| peer.is_member(session));
        let members_ready_at =
            of_peers.map(|(.., peer)| peer.takes_locks_at(lease).max(peer.no_handoff_until)).filter(|at| *at > now);
        if let Some(at) = members_ready_at.chain(again).chain(scan.ready_at).min() {
            self.housekeeping.set(Housekeeping::Balance, at);
        }
    }

    /// If another member is first in rank for this lock, plans a search for locks to hand over, one lease from now.
    pub(super) fn balance_soon(&mut self, now: LocalInstant, id: LockId) {
        let is_possible = self.rules.balance && self.rebalance_scan.is_none() && self.is_release_noticed_soon(now);
        let lock = if is_possible { self.lock(id) } else { None };
        if lock.is_some_and(|lock| self.first_in_rank(now, lock.hash).is_some()) {
            self.housekeeping.set_earlier(Housekeeping::Balance, now + self.rules.election.lease_duration);
        }
    }

    /// Returns `true` if the others soon notice a release: they read each session, or scan often while a member is new.
    /// Their clocks may be faster, so here a member is new for two leases, and in `scan_pause` for three.
    fn is_release_noticed_soon(&self, now: LocalInstant) -> bool {
        !self.lists_instead_of_reading() || self.has_newer_member(now, self.rules.election.lease_duration * 2)
    }

    /// Returns the member that is first in rank for a lock, and its lease. `None` if this member is first, or if the
    /// first gets no locks now: it has not lived for one lease, or did not take the locks offered to it.
    fn first_in_rank(&self, now: LocalInstant, lock: u64) -> Option<(Arc<str>, Duration)> {
        let own = (ranking::score(self.identity_hash, self.rules.weight, lock), &self.identity);
        let members = self.peers.iter().filter(|(_, session, peer)| peer.is_member(session));
        let scores = members.filter_map(|(_, session, peer)| {
            let identity = peer.identity.as_ref()?;
            Some(((ranking::score(peer.identity_hash, peer.weight, lock), identity), (session, peer)))
        });
        let (best, (session, peer)) = scores.max_by_key(|(score, _)| *score).filter(|(best, _)| *best > own)?;
        // Otherwise, a process that crashes repeatedly would get locks after each start, and leave them without a leader for one lease.
        let takes = peer.takes_locks_at(self.rules.election.lease_duration).max(peer.no_handoff_until) <= now;
        takes.then(|| (best.1.clone(), session.lease_duration()))
    }

    /// If the lock that was released is being handed over, plans the first poll for its new holder.
    pub(super) fn on_handed_over(&mut self, now: LocalInstant, id: LockId) {
        let (retry, lease) = (self.rules.election.retry_period, self.rules.election.lease_duration);
        if let Some(handoff) = self.handing_over.get_mut(&id.0) {
            handoff.released = Some((now + retry / 8 * UNTIL_TAKEN, now + lease));
        }
    }

    /// The next poll of a lock that was released for a hand-over; `None` for another lock, or once it is taken.
    pub(super) fn taker_poll_at(&self, id: LockId) -> Option<LocalInstant> {
        let handoff = self.handing_over.get(&id.0).filter(|_| self.table.view(id.0) == LockView::Free)?;
        handoff.released.map(|(poll_at, _)| poll_at)
    }

    /// Plans the next poll for the new holder one retry period from now, because a request about the lock is sent now.
    pub(super) fn plan_taker_poll(&mut self, now: LocalInstant, id: LockId) {
        let retry = self.rules.election.retry_period;
        if let Some(Handoff { released: Some((poll_at, _)), .. }) = self.handing_over.get_mut(&id.0) {
            *poll_at = now + retry;
        }
    }

    /// After a read, finds out if the other member has taken the lock that was handed over, or has refused it.
    pub(super) fn observe_taker(&mut self, now: LocalInstant, id: LockId) {
        let Some(handoff) = self.handing_over.get(&id.0) else { return };
        let Some((_, until)) = handoff.released else { return };
        let is_taken = match self.table.view(id.0) {
            LockView::Free if now < until => return,
            LockView::Free => false,
            LockView::Held(session) if !self.is_own(session) => {
                let by = self.peers.get(session).and_then(|(_, peer)| peer.identity.as_ref());
                by.is_none_or(|by| *by == handoff.to)
            }
            _ => true,
        };
        let to = handoff.to.clone();
        self.handing_over.remove(&id.0);
        self.note_offer(now, &to, is_taken);
    }

    /// Notes if a member has taken a lock. If not, it is offered none for four leases. This pause doubles each time.
    fn note_offer(&mut self, now: LocalInstant, identity: &Arc<str>, is_taken: bool) {
        let (lease, mut again) = (self.rules.election.lease_duration, None);
        for (.., peer) in self.peers.iter_mut().filter(|(.., peer)| peer.identity.as_ref() == Some(identity)) {
            if is_taken {
                peer.refused_handoffs = 0;
            } else if peer.no_handoff_until <= now {
                let pause = lease * 4 * (1 << peer.refused_handoffs.min(MOST_DOUBLINGS));
                (peer.refused_handoffs, peer.no_handoff_until) = (peer.refused_handoffs.saturating_add(1), now + pause);
                again = Some(peer.no_handoff_until);
            }
        }
        if let Some(at) = again {
            self.housekeeping.set_earlier(Housekeeping::Balance, at);
        }
    }
}
