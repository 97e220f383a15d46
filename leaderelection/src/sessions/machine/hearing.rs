//! Rule S10: the words of other sessions.
//!
//! A word puts looks off, or makes the member look sooner. Only the store's answers decide what is ended or taken.

use std::time::Duration;

use leaderelection_protocol::policy::peer_feed::{Compared, HeardWrite};
use leaderelection_protocol::session::LockView;

use super::member::Member;
use super::peer::{Peer, Session};
use super::{LockId, SessionId};
use crate::clock::LocalInstant;
use crate::election::Heard;
use crate::lock::record::LeaderElectionRecord;

impl Member {
    /// Takes a word of another session.
    pub(super) fn on_heard(&mut self, now: LocalInstant, id: &SessionId, heard: Heard) {
        let scan_interval = self.rules.scan_interval;
        let Some((session, peer)) = self.peers.get_mut(id).filter(|(session, _)| !session.is_over()) else { return };
        match heard {
            Heard::Landed { write_id, number, .. } => {
                let counts = peer.hear(now, session, scan_interval, HeardWrite::new(write_id.clone(), number, now));
                self.peers.hint(now, id, write_id);
                if counts {
                    self.tell_of_peer(id, Some(now));
                }
            }
            Heard::Released { count, locks } => self.hear_of_releases(now, id, count, &locks),
            Heard::Ended { .. } => {
                if peer.hearing.get_or_insert_default().end() {
                    peer.doubt(now);
                }
            }
            Heard::Nothing if peer.suppresses_polls() => peer.doubt(now),
            Heard::Nothing => {}
        }
        self.plan_peer(now, id);
    }

    /// Takes a word about the locks that a session has released. It causes a read of each, or a look at all. A retry period has one
    /// such look, and no more of these reads than there are locks, so that false words cost no more than that.
    fn hear_of_releases(&mut self, now: LocalInstant, id: &SessionId, count: u64, locks: &[u64]) {
        let Some((_, peer)) = self.peers.get_mut(id) else { return };
        // A false count must not hide what the session's record tells, so the two are kept apart.
        let known = peer.released.max(peer.released_by_word);
        let counts = peer.identity.is_some() && !peer.hearing.as_ref().is_some_and(|hearing| hearing.is_closed());
        if counts && count > known {
            peer.released_by_word = count;
            let releases = count - known;
            self.heard_releases = self.heard_releases.saturating_add(releases);
            if releases > locks.len() as u64 || self.heard_releases > self.number_of_locks() as u64 {
                return self.look_at_locks_soon(now.max(self.looked_at + self.rules.election.retry_period));
            }
            self.look_at_released(now, id, releases, locks);
        }
    }

    /// Forgets who gave a lock up, as soon as somebody has taken it.
    pub(super) fn forget_last_releaser(&mut self, id: LockId) {
        if self.table.view(id.0) != LockView::Free {
            self.last_releaser.remove(&id.0);
        }
    }

    /// The number of other sessions whose words put looks off.
    #[must_use]
    pub fn hears(&self) -> usize {
        self.peers.iter().filter(|(.., peer)| peer.suppresses_polls()).count()
    }

    /// Returns the number of other members whose words do not put looks off.
    pub(super) fn unheard_members(&self) -> usize {
        self.peers.iter().filter(|(_, session, peer)| peer.is_member(session) && !peer.suppresses_polls()).count()
    }

    /// Returns `true` if listings of the sessions cost less than reads of each that is not heard. A listing takes place once in
    /// 1.6 retry periods, and a session is read once in each.
    pub(super) fn lists_instead_of_reading(&self) -> bool {
        self.unheard_members() * 8 > self.rules.reads_per_listing * 5
    }
}

impl Peer {
    /// Takes a word about a renewal. Returns `true` if it puts looks off.
    fn hear(&mut self, now: LocalInstant, session: &Session, scan_interval: Duration, heard: HeardWrite) -> bool {
        let was_shown = !self.is_unread && session.found().is_some_and(|found| heard.wrote(&*found.record));
        let hearing = self.hearing.get_or_insert_default();
        if was_shown {
            // Looks come soon after renewals, so often before the words about them.
            let agrees = hearing.agrees(heard);
            return agrees && self.confirm(now, scan_interval);
        }
        if hearing.hear(heard, was_shown).is_err() {
            return false;
        }
        let Some(suppress_polls_until) = hearing.suppress_polls_until else { return false };
        // No earlier look is due: whatever gives a reason for one ends the sparing.
        self.look_at = suppress_polls_until.min(now + self.patience);
        true
    }

    /// Compares the words with a read, before the read changes what is known.
    pub(super) fn compare(&mut self, found: Option<&LeaderElectionRecord>, is_same_write: bool) -> bool {
        self.hearing.as_mut().is_some_and(|hearing| hearing.compare(found, is_same_write) == Compared::Confirmed)
    }

    /// The store has shown a renewal of a session that speaks. Its words put looks off for as long as two looks around take.
    /// Returns `true` unless the session is silent, because it may have died since.
    pub(super) fn confirm(&mut self, now: LocalInstant, scan_interval: Duration) -> bool {
        let Some(hearing) = self.hearing.as_mut().filter(|hearing| !hearing.is_closed()) else { return false };
        let Some(newest) = &hearing.newest else { return false };
        let (suppress_polls_until, silent_at) = (now + scan_interval * 2, newest.at + self.patience);
        if now >= silent_at {
            return false;
        }
        hearing.suppress_polls_until = Some(suppress_polls_until);
        self.look_at = suppress_polls_until.min(silent_at);
        true
    }

    /// Looks at once, whatever the session says.
    pub(super) fn doubt(&mut self, now: LocalInstant) {
        if let Some(hearing) = &mut self.hearing {
            hearing.suppress_polls_until = None;
        }
        self.look_at = now;
    }

    /// Returns `true` if words put looks off.
    pub(super) fn suppresses_polls(&self) -> bool {
        self.hearing.as_ref().is_some_and(|hearing| hearing.suppress_polls_until.is_some() && !hearing.is_closed())
    }

    /// Returns `true` if the content of the object is known and nothing newer was heard of, so that the session may be ended when
    /// it has expired.
    pub(super) fn may_be_ended(&self) -> bool {
        !self.is_said_to_live() && !self.is_unread
    }

    /// Returns `true` if a write was reported that no read has confirmed or contradicted so far.
    fn is_said_to_live(&self) -> bool {
        self.hearing.as_ref().is_some_and(|hearing| !hearing.is_closed() && hearing.unanswered_since().is_some())
    }
}
