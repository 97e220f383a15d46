//! Rules S3 and S4: sessions whose objects are missing, or no records.

use super::SessionId;
use super::effect::Fact;
use super::member::Member;
use super::peer::Sight;
use super::watch::SPREAD;
use crate::clock::LocalInstant;
use crate::election::Jitter;

impl Member {
    /// Takes the end of a listing: the sessions that it has not shown have no object, or it is false.
    pub(super) fn look_for_missing_sessions(&mut self, now: LocalInstant) {
        let listed = std::mem::take(&mut self.listed_sessions);
        self.junk.retain(|id, _| listed.contains(id));
        let missing: Vec<SessionId> = self.peers.keys().filter(|id| !listed.contains(*id)).cloned().collect();
        for id in missing {
            let Some(peer) = self.peers.get_mut(&id) else { continue };
            match &mut peer.sight {
                // Nothing is left to delete. A false listing would leave an object that nobody uses.
                Some(sight) if peer.ended => sight.version = None,
                // Only a read shows that there is no object.
                Some(Sight { version: Some(_), .. }) => peer.doubt(now),
                _ => {}
            }
            self.plan_peer(now, &id);
        }
    }

    /// Takes a read that shows no object, or an unreadable one.
    pub(super) fn saw_no_record(&mut self, now: LocalInstant, id: &SessionId, unreadable: bool, jitter: Jitter) {
        let spread = jitter.of(self.rules.election.retry_period / SPREAD);
        let pause = if self.lists_instead_of_reading() { self.rules.look_around } else { self.poll_pause(jitter) };
        let Some(peer) = self.peers.get_mut(id) else { return };
        peer.look_at = now + pause;
        if peer.ended {
            return;
        }
        // The wait begins with the first of the reads that agree (rule S3).
        let is_known =
            peer.sight.as_ref().is_some_and(|sight| sight.version.is_none() && sight.unreadable == unreadable);
        peer.compare(None, is_known);
        if !is_known {
            peer.sight = Some(Sight { unreadable, ..Sight::of(None, now, spread) });
        } else if unreadable && peer.expires_at().is_some_and(|at| at <= peer.asked_at) {
            // This read was sent a lease after the first. One that was sent before shows nothing about the time since.
            // No write can name the version of an unreadable object (rule S4). As long as listings show this one, it is not
            // looked at again.
            self.junk.insert(id.clone(), peer.listed.take());
            self.end_peer(now, id, None);
        }
    }

    /// Forgets a session without an object that no lock names. Nothing has to be ended, and whatever shows the session again begins
    /// another wait.
    pub(super) fn forget(&mut self, now: LocalInstant, id: &SessionId) {
        self.past.retain(|past| past != id);
        if self.peers.remove(id).is_some_and(|peer| peer.identity.is_some()) {
            self.tell(Fact::PeerEnded { session: id.clone() });
        }
        self.open_soon(now);
    }
}
