//! Rule S10: the messages of other sessions.
//!
//! A message postpones reads, or makes the member read sooner. Only the store's answers decide what is ended or taken.

use std::time::Duration;

use leaderelection_protocol::policy::peer_feed::{Compared, ReportedWrite};
use leaderelection_protocol::session::LockView;

use super::member::Member;
use super::peer::{Peer, Session};
use super::{LockId, SessionId};
use crate::clock::LocalInstant;
use crate::election::PeerMessage;
use crate::lock::record::LeaderElectionRecord;

impl Member {
    /// Handles a message of another session.
    pub(super) fn on_message(&mut self, now: LocalInstant, id: &SessionId, message: PeerMessage) {
        let scan_interval = self.rules.scan_interval;
        let Some((session, peer)) = self.peers.get_mut(id).filter(|(session, _)| !session.is_over()) else { return };
        match message {
            PeerMessage::Committed { write_id, number, .. } => {
                let counts =
                    peer.on_renewal(now, session, scan_interval, ReportedWrite::new(write_id.clone(), number, now));
                self.peers.hint(now, id, write_id);
                if counts {
                    self.report_peer(id, Some(now));
                }
            }
            PeerMessage::Released { count, locks } => self.on_reported_releases(now, id, count, &locks),
            PeerMessage::Ended { .. } => {
                if peer.peer_feed.get_or_insert_default().end() {
                    peer.poll_at_once(now);
                }
            }
            PeerMessage::Nothing if peer.suppresses_polls() => peer.poll_at_once(now),
            PeerMessage::Nothing => {}
        }
        self.plan_peer(now, id);
    }

    /// Handles a message about the locks that a session has released: each is read, or all locks are scanned. To limit
    /// the cost of false messages, they cause at most one scan per retry period, and in between one read per lock.
    fn on_reported_releases(&mut self, now: LocalInstant, id: &SessionId, count: u64, locks: &[u64]) {
        let Some((_, peer)) = self.peers.get_mut(id) else { return };
        // The count of messages is kept separately, because a false one must not hide what the session's record says.
        let known = peer.released.max(peer.released_by_message);
        let counts = peer.identity.is_some() && !peer.peer_feed.as_ref().is_some_and(|peer_feed| peer_feed.is_closed());
        if counts && count > known {
            peer.released_by_message = count;
            let releases = count - known;
            self.reported_releases = self.reported_releases.saturating_add(releases);
            if releases > locks.len() as u64 || self.reported_releases > self.number_of_locks() as u64 {
                return self.poll_locks_soon(now.max(self.scanned_at + self.rules.election.retry_period));
            }
            self.poll_released(now, id, releases, locks);
        }
    }

    /// Forgets who released a lock, once somebody has taken it.
    pub(super) fn forget_last_releaser(&mut self, id: LockId) {
        if self.table.view(id.0) != LockView::Free {
            self.last_releaser.remove(&id.0);
        }
    }

    /// The number of other sessions whose messages postpone reads.
    #[must_use]
    pub fn connected_sessions(&self) -> usize {
        self.peers.iter().filter(|(.., peer)| peer.suppresses_polls()).count()
    }

    /// Returns the number of other members whose messages do not postpone reads.
    pub(super) fn silent_members(&self) -> usize {
        self.peers.iter().filter(|(_, session, peer)| peer.is_member(session) && !peer.suppresses_polls()).count()
    }

    /// Returns `true` if listing the sessions costs less than reading each one that sends no messages. Listings are 1.6
    /// retry periods apart on average, and reads of one session are one retry period apart.
    pub(super) fn lists_instead_of_reading(&self) -> bool {
        self.silent_members() * 8 > self.rules.reads_per_listing * 5
    }
}

impl Peer {
    /// Handles a message about a renewal. Returns `true` if the message postpones reads.
    fn on_renewal(
        &mut self,
        now: LocalInstant,
        session: &Session,
        scan_interval: Duration,
        write: ReportedWrite,
    ) -> bool {
        let was_shown = !self.is_unread && session.found().is_some_and(|found| write.wrote(&*found.record));
        let peer_feed = self.peer_feed.get_or_insert_default();
        if was_shown {
            // Often, a read shows a renewal before the message about it comes. Then the store has confirmed it already.
            let agrees = peer_feed.agrees(write);
            return agrees && self.postpone_polls(now, scan_interval);
        }
        if peer_feed.on_write(write, was_shown).is_err() {
            return false;
        }
        let Some(suppress_polls_until) = peer_feed.suppress_polls_until else { return false };
        // No urgent read is postponed here: `poll_at_once` also clears `suppress_polls_until`.
        self.poll_at = suppress_polls_until.min(now + self.patience);
        true
    }

    /// Compares the messages with what a read has `found`, before the read changes what is known. Returns `true` if this
    /// read is the first to confirm the newest message.
    pub(super) fn compare_messages(&mut self, found: Option<&LeaderElectionRecord>, is_same_write: bool) -> bool {
        self.peer_feed.as_mut().is_some_and(|peer_feed| peer_feed.compare(found, is_same_write) == Compared::Confirmed)
    }

    /// Lets messages postpone reads for two scan intervals, because the store has shown a renewal. Returns `false` if
    /// no message counts, or if the newest is so old that the session may have ended since.
    pub(super) fn postpone_polls(&mut self, now: LocalInstant, scan_interval: Duration) -> bool {
        let Some(peer_feed) = self.peer_feed.as_mut().filter(|peer_feed| !peer_feed.is_closed()) else { return false };
        let Some(newest) = &peer_feed.newest else { return false };
        let (suppress_polls_until, silent_at) = (now + scan_interval * 2, newest.at + self.patience);
        if now >= silent_at {
            return false;
        }
        peer_feed.suppress_polls_until = Some(suppress_polls_until);
        self.poll_at = suppress_polls_until.min(silent_at);
        true
    }

    /// Plans a read at once, whatever the session's messages say.
    pub(super) fn poll_at_once(&mut self, now: LocalInstant) {
        if let Some(peer_feed) = &mut self.peer_feed {
            peer_feed.suppress_polls_until = None;
        }
        self.poll_at = now;
    }

    /// Returns `true` if messages postpone reads.
    pub(super) fn suppresses_polls(&self) -> bool {
        self.peer_feed
            .as_ref()
            .is_some_and(|peer_feed| peer_feed.suppress_polls_until.is_some() && !peer_feed.is_closed())
    }

    /// Returns `true` if a read has shown the newest known content, and no message has reported a newer write.
    /// Otherwise, the session is not ended even if it has expired.
    pub(super) fn may_be_ended(&self) -> bool {
        !self.has_unconfirmed_message() && !self.is_unread
    }

    /// Returns `true` if a write was reported that no read has confirmed or contradicted so far.
    fn has_unconfirmed_message(&self) -> bool {
        self.peer_feed
            .as_ref()
            .is_some_and(|peer_feed| !peer_feed.is_closed() && peer_feed.unanswered_since().is_some())
    }
}
