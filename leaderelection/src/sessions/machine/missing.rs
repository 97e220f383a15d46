//! Rules S3 and S4: sessions whose objects are missing or unreadable.

use leaderelection_protocol::lease::ReadError;

use super::SessionId;
use super::effect::Fact;
use super::member::Member;
use crate::clock::LocalInstant;
use crate::election::Jitter;

impl Member {
    /// Handles the end of a listing: a session that was not listed has no object, unless the listing is false.
    pub(super) fn find_missing_sessions(&mut self, now: LocalInstant) {
        let listed = std::mem::take(&mut self.listed_sessions);
        self.unreadable_objects.retain(|id, _| listed.contains(id));
        let is_missing = |id: &&SessionId| !listed.contains(*id);
        let missing: Vec<_> = self.peers.iter().map(|(id, ..)| id).filter(is_missing).cloned().collect();
        for id in missing {
            // If the session is over, nothing is left to delete. If the listing is false, an unused object stays.
            self.peers.deleted(&id);
            let entry = self.peers.get_mut(&id);
            if let Some((_, peer)) = entry.filter(|(session, _)| !session.is_over() && session.found().is_some()) {
                // Only a read shows that there is no object.
                peer.poll_at_once(now);
            }
            self.plan_peer(now, &id);
        }
    }

    /// Handles a read that shows no object, or an unreadable one.
    pub(super) fn observe_no_record(&mut self, now: LocalInstant, id: &SessionId, is_unreadable: bool, jitter: Jitter) {
        let end_delay = jitter.of(self.rules.election.pace().longest_spread());
        let pause = if self.lists_instead_of_reading() { self.rules.scan_interval } else { self.poll_pause(jitter) };
        let Some((session, peer)) = self.peers.get_mut(id) else { return };
        peer.poll_at = now + pause;
        let was_over = session.is_over();
        // The wait begins with the first of the reads that agree (rule S3).
        let is_known = if is_unreadable { session.is_unreadable() } else { session.is_missing() };
        if !was_over {
            peer.compare_messages(None, is_known);
            peer.is_unread = false;
            if !is_known {
                (peer.changed_at, peer.end_delay) = (now, end_delay);
            }
        }
        self.peers.read_answered(now, id, if is_unreadable { Err(ReadError::Unreadable) } else { Ok(None) });
        let Some((session, peer)) = self.peers.get(id).filter(|_| !was_over) else { return };
        let has_ended = session.is_over();
        // The rules never end a session whose lease neither a record nor a lock states. If no lock names it, it is
        // forgotten instead.
        let is_unneeded = is_unreadable && is_known && peer.holds.is_empty() && peer.ends_at(session) <= Some(now);
        if !has_ended && !is_unneeded {
            return;
        }
        // As long as listings show this same object, it is not read again.
        self.unreadable_objects.insert(id.clone(), session.listed().cloned());
        if has_ended {
            self.on_peer_ended(now, id);
        } else {
            self.forget(now, id);
        }
    }

    /// Forgets a session that has no record and that no lock names. If it appears again, another wait begins.
    pub(super) fn forget(&mut self, now: LocalInstant, id: &SessionId) {
        self.past.retain(|past| past != id);
        if self.peers.forget(id).is_some_and(|peer| peer.identity.is_some()) {
            self.emit(Fact::PeerEnded { session: id.clone() });
        }
        self.open_soon(now);
    }
}
